"""Reads what the configuration file says of the webhook for pods with devices.

The fields of ``nvidia`` are those of the section ``nvidia`` of HAMi's ``device-config.yaml``, as far as HAMi's webhook reads
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scheduler.api import names, values
from scheduler.api.admission.backends import WAYS
from scheduler.api.admission.settings import (
    CORE_POLICIES,
    AdmissionSettings,
    DeviceWebhookSettings,
    NvidiaAdmission,
)
from scheduler.api.queues import configuration
from scheduler.errors import BadInput

_FIELD, _NVIDIA = "deviceWebhook", "nvidia"
_TAKE_OVER, _FORCE, _WAYS = "takeOver", "forceOverwriteDefaultScheduler", "shares"
_RESOURCES = {
    "resourceCountName": "count",
    "resourceMemoryName": "memory",
    "resourceMemoryPercentageName": "memory_percent",
    "resourceCoreName": "cores",
    "resourcePriorityName": "priority",
}
_COUNT, _POLICY, _RUNTIME_CLASS, _HIDE = (
    "defaultGPUNum",
    "gpuCorePolicy",
    "runtimeClassName",
    "overwriteEnv",
)
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SCHEDULER = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._]{0,251}[A-Za-z0-9])?")
_COUNT_MAX = 2**31 - 1


def read_settings(given: Any) -> DeviceWebhookSettings | None:
    """Read the settings; without any the webhook does not look at devices.

    Raises:
        BadInput: a field is unknown or not what is allowed; names it.
    """
    if given is None:
        return None
    raw, default = values.read_mapping(given, _FIELD), AdmissionSettings()
    values.refuse_unknown(raw, _FIELD, (*configuration.SERVING, _TAKE_OVER, _FORCE, _WAYS, _NVIDIA))
    taken_over = values.read_items(raw.get(_TAKE_OVER), f"{_FIELD}.{_TAKE_OVER}", str)
    for i, one in enumerate(taken_over):
        if not _SCHEDULER.fullmatch(one) or one == names.DEFAULT_SCHEDULER:
            problem = f"{values.quote(one)} is not the name of another scheduler than {names.DEFAULT_SCHEDULER}"
            raise BadInput(f"{_FIELD}.{_TAKE_OVER}[{i}]", problem)
    force = values.read_flag(raw.get(_FORCE, default.overwrites_default), f"{_FIELD}.{_FORCE}")
    admission = AdmissionSettings(
        overwrites_default=force,
        taken_over=tuple(taken_over),
        nvidia=_read_nvidia(raw.get(_NVIDIA), f"{_FIELD}.{_NVIDIA}"),
        ways=_read_ways(raw.get(_WAYS, list(WAYS)), f"{_FIELD}.{_WAYS}"),
    )
    return DeviceWebhookSettings(
        serving=configuration.read_serving(raw, _FIELD), admission=admission
    )


def _read_ways(given: Any, field: str) -> tuple[str, ...]:
    found = values.read_items(given, field, str)
    for i, one in enumerate(found):
        if one not in WAYS:
            raise BadInput(f"{field}[{i}]", f"{values.quote(one)} is not one of {', '.join(WAYS)}")
    return tuple(dict.fromkeys(found))


def _read_nvidia(given: Any, field: str) -> NvidiaAdmission:
    raw, default = values.read_mapping(given, field), NvidiaAdmission()
    values.refuse_unknown(raw, field, (*_RESOURCES, _COUNT, _POLICY, _RUNTIME_CLASS, _HIDE))
    policy = raw.get(_POLICY) or default.core_policy
    if policy not in CORE_POLICIES:
        allowed = ", ".join(CORE_POLICIES)
        raise BadInput(f"{field}.{_POLICY}", f"{values.quote(policy)} is not one of {allowed}")
    resources = {
        own: _read_text(raw, field, key, _RESOURCE, 'a resource such as "example.com/gpu"')
        for key, own in _RESOURCES.items()
        if key in raw
    }
    if resources.get("count") == "":
        raise BadInput(f"{field}.resourceCountName", "must not be empty")
    count = raw.get(_COUNT, default.default_count)
    return NvidiaAdmission(
        default_count=values.read_integer(count, f"{field}.{_COUNT}", 0, _COUNT_MAX),
        core_policy=policy,
        runtime_class=_read_text(raw, field, _RUNTIME_CLASS, _NAME, "the name of a RuntimeClass"),
        hides_cards=values.read_flag(raw.get(_HIDE, default.hides_cards), f"{field}.{_HIDE}"),
        **resources,
    )


def _read_text(
    raw: Mapping[str, Any], under: str, key: str, wanted: re.Pattern[str], words: str
) -> str:
    """Read a text, which may be empty."""
    found = raw.get(key, "")
    if not isinstance(found, str) or not (found == "" or wanted.fullmatch(found)):
        raise BadInput(f"{under}.{key}", f"{values.quote(found)} is neither {words} nor empty")
    return found
