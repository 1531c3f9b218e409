"""The twin of the admission of pods with devices: HAMi's steps, one after the other, on a copy of the pod.

Source: HAMi (v2.10), ``pkg/scheduler/webhook.go`` and ``MutateAdmission`` of ``pkg/device/nvidia/device.go``, in our own words.
"""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

from scheduler.api.admission.settings import AdmissionSettings, NvidiaAdmission

Json = dict[str, Any]
_SUFFIXES = {"m": Fraction(1, 1000), "k": Fraction(1000), "Ki": Fraction(1024)}


class Refused(Exception):  # noqa: N818
    """The pod may not be; the first argument: denied or error."""


def admit(pod: Json, settings: AdmissionSettings, *, is_over_quota: bool) -> Json:
    """Return the pod as it is created.

    Raises:
        Refused: it is not.
    """
    pod = copy.deepcopy(pod)
    spec = pod["spec"]
    if not spec.get("containers"):
        raise Refused("denied", "no containers")
    name = spec.get("schedulerName", "")
    ours, taken = settings.scheduler_names, settings.taken_over
    ours_to_be = {"", *ours, *taken, *(["default-scheduler"] * settings.overwrites_default)}
    if name not in ours_to_be:
        return pod
    containers = spec.get("initContainers", []) + spec["containers"]
    asking = [_mutate_by_nvidia(one, spec, settings.nvidia) for one in containers]
    asks = any(asking)
    if asks and any(one.get("securityContext", {}).get("privileged") for one in containers):
        raise Refused("denied", "privileged")
    if asks:
        if name not in ours:
            spec["schedulerName"] = ours[0]
        if spec.get("nodeName"):
            raise Refused("denied", "node")
    elif name in taken and name not in ours:
        spec["schedulerName"] = ours[0]
    if is_over_quota:
        raise Refused("denied", "quota")
    return pod


def _mutate_by_nvidia(container: Json, spec: Json, nvidia: NvidiaAdmission) -> bool:
    limits = container.get("resources", {}).get("limits", {})
    requests = container.get("resources", {}).get("requests", {})
    either = {**requests, **limits}
    env: list[Json] = []
    percent = _read(either[nvidia.memory_percent]) if nvidia.memory_percent in either else None
    if percent is not None and not 0 <= percent <= 100:
        raise Refused("error", "within 0..100")
    if nvidia.priority in limits:
        env.append({"name": "CUDA_TASK_PRIORITY", "value": str(_read(limits[nvidia.priority]))})
    if nvidia.core_policy not in ("", "default"):
        env.append({"name": "GPU_CORE_UTILIZATION_POLICY", "value": nvidia.core_policy})
    asks = nvidia.count in limits
    added = {}
    has_part = nvidia.cores in limits or nvidia.memory in limits or nvidia.memory_percent in limits
    if not asks and has_part and nvidia.default_count > 0:
        added[nvidia.count] = str(nvidia.default_count)
        asks = True
    has_count = nvidia.count in either or nvidia.count in added
    says_no_memory = percent is None and nvidia.memory not in either
    if has_count and nvidia.cores and nvidia.cores not in either and (percent == 100 or says_no_memory):  # fmt: skip
        added[nvidia.cores] = "100"
        asks = True
    if asks and nvidia.runtime_class and spec.get("runtimeClassName") is None:
        spec["runtimeClassName"] = nvidia.runtime_class
    if not asks and nvidia.hides_cards:
        env.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"})
    if added:
        container["resources"] = {**container.get("resources", {}), "limits": {**limits, **added}}
    if env:
        container["env"] = container.get("env", []) + env
    return asks


def _read(text: str) -> int:
    """An amount as a whole number, rounded up."""
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return math.ceil(Fraction(text.removesuffix(suffix)) * factor)
    return math.ceil(Fraction(text))
