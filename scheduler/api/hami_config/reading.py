"""Reads ``device-config.yaml``, as HAMi's scheduler reads it: keys that it does not know are ignored.

Source: HAMi v2.10, ``pkg/scheduler/config/config.go`` and the config structs of ``pkg/device/*``. ``vnpus`` may also be a
plain list of chips, as it was up to v2.8, and ``knownMigGeometries`` are read as up to v2.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from scheduler.api import values
from scheduler.api.hami_config import fields, mig
from scheduler.api.hami_config.fields import Field, Table
from scheduler.api.hami_config.sections import (
    Ascend,
    DeviceConfig,
    Enflame,
    Iluvatar,
    Kunlun,
    Metax,
    Nvidia,
    Shares,
    Template,
)
from scheduler.documents import reading
from scheduler.documents.bounds import Unreadable
from scheduler.errors import BadInput

# The most characters; no ConfigMap can hold more.
TEXT_MAX = 2**20
# HAMi's words for the kinds of devices that are not in a list.
WORDS = (
    "NVIDIA", "MLU", "DCU", "GCU", "Enflame", "Mthreads", "Metax-GPU", "Metax-SGPU", "kunlun", "XPU", "AWSNeuron",
    "AMD", "Vastai", "Biren",
)  # fmt: skip

_COUNT = Field("resourceCountName", fields.read_resource)
_MEMORY = Field("resourceMemoryName", fields.read_resource)
_CORES = Field("resourceCoreName", fields.read_resource)
_FACTOR = Field("memoryFactor", fields.read_number)
_SHARES: Table = {"cards": _COUNT, "memory": _MEMORY, "cores": _CORES}
_NVIDIA: Table = {
    **_SHARES,
    "memory_percent": Field("resourceMemoryPercentageName", fields.read_resource),
    "priority": Field("resourcePriorityName", fields.read_resource),
    "factor": _FACTOR,
    "default_mib": Field("defaultMemory", fields.read_number),
    "default_cores": Field("defaultCores", fields.read_percentage),
    "default_count": Field("defaultGPUNum", fields.read_number),
    "hides_cards": Field("overwriteEnv", fields.read_flag),
    "core_policy": Field("gpuCorePolicy", fields.read_text),
    "runtime_class": Field("runtimeClassName", fields.read_text),
    "split_count": Field("deviceSplitCount", fields.read_positive),
    "memory_scaling": Field("deviceMemoryScaling", fields.read_scaling),
    "core_scaling": Field("deviceCoreScaling", fields.read_scaling),
    "unified_mib": Field("preConfiguredDeviceMemory", fields.read_number),
    "log_level": Field("libCudaLogLevel", fields.read_text),
    "has_numa": Field("enableNumaTopology", fields.read_flag),
    "ignores_cores": Field("disableCoreLimit", fields.read_flag),
    "profiles": Field("migProfileAllowlist", mig.read_profiles),
    "geometries": Field("knownMigGeometries", mig.read_geometries),
}
_METAX: Table = {
    "cards": _COUNT,
    "share_count": Field("resourceVCountName", fields.read_resource),
    "share_memory": Field("resourceVMemoryName", fields.read_resource),
    "share_cores": Field("resourceVCoreName", fields.read_resource),
    "is_topology_aware": Field("sgpuTopologyAware", fields.read_flag),
}
_OLD_SIZE = Field("resourceNameVGCU", fields.read_resource)
_ENFLAME: Table = {
    "cards": Field("resourceNameGCU", fields.read_resource),
    "size": Field("resourceNameDRSGCU", fields.read_resource),
    "memory": Field("resourceNameGCUMemory", fields.read_resource),
    "cores": Field("resourceNameGCUCore", fields.read_resource),
}
_KUNLUN: Table = {
    "cards": _COUNT,
    "share_count": Field("resourceVCountName", fields.read_resource),
    "share_memory": Field("resourceVMemoryName", fields.read_resource),
}
_ILUVATAR: Table = {
    "word": Field("commonWord", fields.read_word),
    "chip": Field("chipName", fields.read_text),
    **_SHARES,
}
_TEMPLATE: Table = {
    "name": Field("name", fields.read_name),
    "mib": Field("memory", fields.read_positive),
    "ai_cores": Field("aiCore", fields.read_number),
    "ai_cpus": Field("aiCPU", fields.read_number),
}


def _read_template(raw: Any, where: str) -> Template:
    fields.require(raw, where, "name", "memory")
    return fields.read_section(Template, raw, where, _TEMPLATE)


def _read_templates(raw: Any, where: str) -> tuple[Template, ...]:
    found = fields.read_list(raw, where, _read_template)
    return tuple(sorted(found, key=attrgetter("mib")))


_ASCEND: Table = {
    "word": Field("commonWord", fields.read_word),
    "chip": Field("chipName", fields.read_text),
    "cards": Field("resourceName", fields.read_resource),
    "memory": _MEMORY,
    "cores": _CORES,
    "factor": _FACTOR,
    "whole_mib": Field("memoryAllocatable", fields.read_number),
    "capacity_mib": Field("memoryCapacity", fields.read_number),
    "ai_cores": Field("aiCore", fields.read_number),
    "ai_cpus": Field("aiCPU", fields.read_number),
    "runtime_class": Field("runtimeClassName", fields.read_text),
    "hides_devices": Field("overwriteEnv", fields.read_flag),
    "is_in_pairs": Field("superPod", fields.read_flag),
    "templates": Field("templates", _read_templates),
}


def _read_shares(raw: Any, where: str) -> Shares:
    return fields.read_section(Shares, raw, where, _SHARES)


def _read_scaled(raw: Any, where: str) -> Shares:
    return fields.read_section(Shares, raw, where, {**_SHARES, "factor": _FACTOR})


def _read_counted(raw: Any, where: str) -> Shares:
    return fields.read_section(Shares, raw, where, {"cards": _COUNT})


def _read_cores(raw: Any, where: str) -> Shares:
    return fields.read_section(Shares, raw, where, {"cards": _COUNT, "cores": _CORES})


def _read_enflame(raw: Any, where: str) -> Enflame:
    given = dict(values.read_mapping(raw, where))
    # As HAMi does: an empty name is an absent one, and the older name of the size stands in for the newer.
    for name in ("size", "memory", "cores"):
        if given.get(_ENFLAME[name].key) == "":
            del given[_ENFLAME[name].key]
    found = fields.read_section(Enflame, given, where, _ENFLAME)
    old = fields.read_resource(given.get(_OLD_SIZE.key) or "", f"{where}.{_OLD_SIZE.key}")
    if old and given.get(_ENFLAME["size"].key) is None:
        return found._replace(size=old)
    return found


def _read_iluvatar(raw: Any, where: str) -> Iluvatar:
    fields.require(raw, where, "commonWord")
    return fields.read_section(Iluvatar, raw, where, _ILUVATAR)


def _read_ascend(raw: Any, where: str) -> Ascend:
    fields.require(raw, where, "commonWord")
    return fields.read_section(Ascend, raw, where, _ASCEND)


_SECTIONS: Table = {
    "nvidia": Field("nvidia", lambda raw, at: fields.read_section(Nvidia, raw, at, _NVIDIA)),
    "cambricon": Field("cambricon", _read_shares),
    "hygon": Field("hygon", _read_scaled),
    "metax": Field("metax", lambda raw, at: fields.read_section(Metax, raw, at, _METAX)),
    "mthreads": Field("mthreads", _read_shares),
    "enflame": Field("enflame", _read_enflame),
    "kunlun": Field("kunlun", lambda raw, at: fields.read_section(Kunlun, raw, at, _KUNLUN)),
    "awsneuron": Field("awsneuron", _read_cores),
    "amd": Field("amd", _read_shares),
    "vastai": Field("vastai", _read_counted),
    "biren": Field("biren", _read_counted),
    "iluvatars": Field("iluvatars", lambda raw, at: fields.read_list(raw, at, _read_iluvatar)),
}
_VNPUS, _SOFT, _CONFIGS = "vnpus", "hamiVnpuCore", "configs"
# The path of the list of chips, and up to HAMi 2.8 that of the section, which was the list.
_CHIPS = f"{_VNPUS}.{_CONFIGS}"


def read_config(text: str) -> DeviceConfig:
    """Read the text of ``device-config.yaml``.

    Raises:
        BadInput: the text is no YAML, sets nothing, or has a value that is not allowed; the error names the field.
    """
    if len(text) > TEXT_MAX:
        raise BadInput("", f"has {len(text)} characters; at most {TEXT_MAX} are allowed")
    try:
        raw = reading.read_first(text)
    except (Unreadable, UnicodeError) as error:
        raise BadInput("", str(error)) from error
    given = values.read_mapping(raw, "")
    found = fields.read_section(DeviceConfig, given, "", _SECTIONS)
    listed = isinstance(given.get(_VNPUS), list)
    chips, at = ({_CONFIGS: given[_VNPUS]}, _VNPUS) if listed else (given.get(_VNPUS), _CHIPS)
    found = _read_vnpus(found, chips, at)
    if found._replace(has_soft_split=False) == DeviceConfig():
        known = ", ".join((*_SECTIONS, _VNPUS))
        raise BadInput("", f"sets nothing; allowed are the sections {known}")
    _check_unique(found, at)
    return found


def _read_vnpus(config: DeviceConfig, raw: Any, at: str) -> DeviceConfig:
    given = values.read_mapping(raw, _VNPUS)
    soft = given.get(_SOFT)
    return config._replace(
        vnpus=fields.read_list(given.get(_CONFIGS), at, _read_ascend),
        has_soft_split=soft is not None and fields.read_flag(soft, f"{_VNPUS}.{_SOFT}"),
    )


def _check_unique(config: DeviceConfig, at: str) -> None:
    """Check that each resource and each word stands for one thing; ``at`` is the path of Ascend's chips."""
    seen: dict[str, str] = {}
    for name, where in _list_resources(config, at):
        if name in seen:
            raise BadInput(where, f"{name} is already {seen[name]}; each resource has its own name")
        seen[name] = where
    words = dict.fromkeys(WORDS, "a word of HAMi's")
    for chip, where in _list_chips(config, at):
        if chip.word in words:
            problem = f"{chip.word} is already {words[chip.word]}; each chip has its own word"
            raise BadInput(f"{where}.commonWord", problem)
        words[chip.word] = f"{where}.commonWord"


def _list_resources(config: DeviceConfig, at: str) -> Iterator[tuple[str, str]]:
    """List every name of a resource, with its field."""
    for section, field in _SECTIONS.items():
        table = {"nvidia": _NVIDIA, "metax": _METAX, "enflame": _ENFLAME, "kunlun": _KUNLUN}
        if section != "iluvatars":
            yield from _list_names(getattr(config, section), field.key, table.get(section, _SHARES))
    for chip, where in _list_chips(config, at):
        yield from _list_names(chip, where, _ASCEND if isinstance(chip, Ascend) else _ILUVATAR)


def _list_names(section: Any, where: str, table: Table) -> Iterator[tuple[str, str]]:
    for name, field in table.items():
        if field.read is fields.read_resource and (found := getattr(section, name)):
            yield found, f"{where}.{field.key}"


def _list_chips(config: DeviceConfig, at: str) -> Iterator[tuple[Iluvatar | Ascend, str]]:
    for i, iluvatar in enumerate(config.iluvatars):
        yield iluvatar, f"iluvatars[{i}]"
    for i, ascend in enumerate(config.vnpus):
        yield ascend, f"{at}[{i}]"
