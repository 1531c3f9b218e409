"""Reads ``config.json`` of HAMi's device plugin: what is different on single nodes.

Source: HAMi v2.10, ``readFromConfigFile`` of the plugin's ``server.go``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from scheduler.api import values
from scheduler.api.hami_config import fields
from scheduler.api.hami_config.fields import Field, Table
from scheduler.api.hami_config.reading import TEXT_MAX
from scheduler.api.hami_config.sections import Nvidia
from scheduler.errors import BadInput

HAMI_CORE, MIG, MPS = "hami-core", "mig", "mps"
MODES = (HAMI_CORE, MIG, MPS)


class NodeOverride(NamedTuple):
    """What is different on one node; 0, empty and false: as on every node.

    Attributes:
        hidden_uuids, hidden_indexes: cards that the plugin does not register.
        prefers_named: whether the kubelet is told which shares belong to the cards that are named on the pod.
    """

    node: str
    mode: str = ""
    split_count: int = 0
    memory_scaling: float = 0.0
    core_scaling: float = 0.0
    unified_mib: int = 0
    log_level: str = ""
    has_numa: bool = False
    mig_strategy: str = ""
    hidden_uuids: frozenset[str] = frozenset()
    hidden_indexes: frozenset[int] = frozenset()
    prefers_named: bool = False


class NodeSettings(NamedTuple):
    """How the device plugin works on a node; see ``NodeOverride``."""

    mode: str
    split_count: int
    memory_scaling: float
    core_scaling: float
    unified_mib: int
    log_level: str
    has_numa: bool
    hidden_uuids: frozenset[str]
    hidden_indexes: frozenset[int]
    prefers_named: bool


def _read_mode(raw: Any, where: str) -> str:
    text = fields.read_text(raw, where)
    if text and text not in MODES:
        raise BadInput(where, f"{values.quote(text)} is not one of {', '.join(MODES)}")
    return text


def _read_index(raw: Any, where: str) -> int:
    return fields.read_number(raw, where)


_OVERRIDE: Table = {
    "node": Field("name", fields.read_name),
    "mode": Field("operatingmode", _read_mode),
    "split_count": Field("devicesplitcount", fields.read_number),
    "memory_scaling": Field("devicememoryscaling", fields.read_scaling_or_none),
    "core_scaling": Field("devicecorescaling", fields.read_scaling_or_none),
    "unified_mib": Field("preconfigureddevicememory", fields.read_number),
    "log_level": Field("libcudaloglevel", fields.read_text),
    "has_numa": Field("enablenumatopology", fields.read_flag),
    "mig_strategy": Field("migstrategy", fields.read_text),
    "prefers_named": Field("enablegetpreferredallocation", fields.read_flag),
}


def read_overrides(text: str) -> tuple[NodeOverride, ...]:
    """Read the text of ``config.json``.

    Raises:
        BadInput: the text is no JSON, or has a value that is not allowed; the error names the field.
    """
    if len(text) > TEXT_MAX:
        raise BadInput("", f"has {len(text)} characters; at most {TEXT_MAX} are allowed")
    try:
        raw = msgspec.json.decode(text)
    except RecursionError:
        raise BadInput("", "is nested too deep") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput("", f"is not JSON: {error}") from error
    given = _lower(raw, "")
    return fields.read_list(given.get("nodeconfig"), "nodeconfig", _read_override)


def _lower(raw: Any, where: str) -> dict[str, Any]:
    """Read an object whose keys count in any case, as for Go."""
    return {key.lower(): value for key, value in values.read_mapping(raw, where).items()}


def _read_override(raw: Any, where: str) -> NodeOverride:
    given = _lower(raw, where)
    fields.require(given, where, "name")
    hidden = _lower(given.get("filterdevices"), f"{where}.filterdevices")
    uuids = fields.read_texts(hidden.get("uuid"), f"{where}.filterdevices.uuid")
    indexes = fields.read_list(hidden.get("index"), f"{where}.filterdevices.index", _read_index)
    found = fields.read_section(NodeOverride, given, where, _OVERRIDE)
    return found._replace(hidden_uuids=frozenset(uuids), hidden_indexes=frozenset(indexes))


def find_settings(nvidia: Nvidia, overrides: Iterable[NodeOverride], node: str) -> NodeSettings:
    """Find how the device plugin works on a node.

    Every entry with the node's name counts, the last one most. 0, an empty text and false change nothing, so an entry
    cannot take back ``has_numa`` of the section; only ``prefers_named`` is always that of the last entry.
    """
    found = NodeSettings(
        mode=HAMI_CORE,
        split_count=nvidia.split_count,
        memory_scaling=nvidia.memory_scaling,
        core_scaling=nvidia.core_scaling,
        unified_mib=nvidia.unified_mib,
        log_level=nvidia.log_level,
        has_numa=nvidia.has_numa,
        hidden_uuids=frozenset(),
        hidden_indexes=frozenset(),
        prefers_named=False,
    )
    for one in overrides:
        if one.node != node:
            continue
        if one.hidden_uuids or one.hidden_indexes:
            found = found._replace(hidden_uuids=one.hidden_uuids, hidden_indexes=one.hidden_indexes)
        found = found._replace(
            mode=one.mode or found.mode,
            split_count=one.split_count or found.split_count,
            memory_scaling=one.memory_scaling or found.memory_scaling,
            core_scaling=one.core_scaling or found.core_scaling,
            unified_mib=one.unified_mib or found.unified_mib,
            log_level=one.log_level or found.log_level,
            has_numa=one.has_numa or found.has_numa,
            prefers_named=one.prefers_named,
        )
    return found
