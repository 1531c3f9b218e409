"""Defaults and rules of the kinds of ``resource.k8s.io/v1``, as far as schedulers, drivers and tests meet them.

Selectors in CEL are stored as they come: only a real server compiles them.
"""

from typing import Any

from scheduler.embedded.store.metadata import write_timestamp
from scheduler.embedded.store.statuses import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)

Json = dict[str, Any]

_CONSUMERS_MAX = 256
_IMMUTABLE = "field is immutable"
_NOT_EXTENDED = "must be a valid extended resource name"
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_NODES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
# What a driver may not change of a slice.
_FIXED = ("driver", "nodeName")

CLAIMS, TEMPLATES, SLICES, CLASSES, RULES = (
    f"{plural}.resource.k8s.io"
    for plural in (
        "resourceclaims",
        "resourceclaimtemplates",
        "resourceslices",
        "deviceclasses",
        "devicetaintrules",
    )
)


def are_devices(resource: str) -> bool:
    """Whether a kind is about devices."""
    return resource in {CLAIMS, TEMPLATES, SLICES, CLASSES, RULES}


def fill_in(resource: str, body: Json) -> None:
    """Set defaults."""
    spec = body.setdefault("spec", {})
    if resource in {CLAIMS, TEMPLATES}:
        for request in _list_requests(_find_claim_spec(resource, body)):
            for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
                if wanted is not None:
                    _fill_in_wanted(wanted)
    elif resource == SLICES:
        for device in spec.get("devices") or ():
            for taint in device.get("taints") or ():
                taint.setdefault("timeAdded", write_timestamp())
    elif resource == RULES and spec.get("taint"):
        spec["taint"].setdefault("timeAdded", write_timestamp())


def _fill_in_wanted(wanted: Json) -> None:
    if wanted.setdefault("allocationMode", "ExactCount") == "ExactCount":
        wanted.setdefault("count", 1)
    for one in wanted.get("tolerations") or ():
        one.setdefault("operator", "Equal")


def find_problems(resource: str, body: Json) -> list[Cause]:
    """Return what is wrong with an object, new or changed."""
    spec = body["spec"]
    if resource in {CLAIMS, TEMPLATES}:
        start = "spec" if resource == CLAIMS else "spec.spec"
        return _find_request_problems(_find_claim_spec(resource, body), start)
    if resource == RULES:
        return _find_taint_problems([spec.get("taint") or {}], "spec.taint")
    if resource == SLICES:
        return _find_slice_problems(spec)
    return _find_class_problems(spec) if resource == CLASSES else []


def _find_class_problems(spec: Json) -> list[Cause]:
    name = spec.get("extendedResourceName")
    if name is None or ("/" in name and "kubernetes.io/" not in name):
        return []
    return [invalid_value("spec.extendedResourceName", name, _NOT_EXTENDED)]


def _find_request_problems(spec: Json, start: str) -> list[Cause]:
    causes: list[Cause] = []
    for i, one in enumerate(_list_requests(spec)):
        where = f"{start}.devices.requests[{i}]"
        if not one.get("name"):
            causes.append(required(f"{where}.name"))
        wanted = one.get("exactly")
        if (wanted is None) == (not one.get("firstAvailable")):
            why = "exactly one of `exactly` or `firstAvailable` is required"
            causes.append(required(where, why))
        if wanted is not None and not wanted.get("deviceClassName"):
            causes.append(required(f"{where}.exactly.deviceClassName"))
    return causes


def _find_slice_problems(spec: Json) -> list[Cause]:
    causes = [required(f"spec.{name}") for name in ("driver",) if not spec.get(name)]
    if sum(bool(spec.get(name)) for name in _NODES) != 1:
        listed = ", ".join(f"`{name}`" for name in _NODES)
        causes.append(required("spec", f"exactly one of {listed} is required"))
    for i, device in enumerate(spec.get("devices") or ()):
        where = f"spec.devices[{i}]"
        causes += _find_taint_problems(device.get("taints") or (), f"{where}.taints")
        if device.get("allowMultipleAllocations"):
            continue
        causes += [
            forbidden_field(
                f"{where}.capacity[{name}].requestPolicy", "allowMultipleAllocations must be true"
            )
            for name, amount in (device.get("capacity") or {}).items()
            if amount.get("requestPolicy")
        ]
    return causes


def _find_taint_problems(taints: Any, where: str) -> list[Cause]:
    return [
        unsupported_value(f"{where}.effect", one.get("effect", ""), _EFFECTS)
        for one in taints
        if one.get("effect") not in _EFFECTS
    ]


def find_change_problems(resource: str, new: Json, old: Json) -> list[Cause]:
    """Return what is wrong with a change of anything but the status."""
    if resource in {CLAIMS, TEMPLATES} and new["spec"] != old["spec"]:
        return [invalid_value("spec", None, _IMMUTABLE)]
    if resource == SLICES:
        pairs = ((name, new["spec"].get(name), old["spec"].get(name)) for name in _FIXED)
        return [invalid_value(f"spec.{n}", now, _IMMUTABLE) for n, now, was in pairs if now != was]
    return []


def find_status_problems(resource: str, new: Json, old: Json) -> list[Cause]:
    """Return what is wrong with a change of the status, and drop what is told of devices that are not given any more."""
    if resource == "pods":
        return _find_pod_status_problems(new, old)
    if resource != CLAIMS:
        return []
    status, before = new.get("status") or {}, old.get("status") or {}
    given, users = status.get("allocation"), status.get("reservedFor") or []
    causes = []
    if before.get("allocation") and given and given != before["allocation"]:
        why = "field cannot be modified once set"
        causes.append(invalid_value("status.allocation", None, why))
    if len(users) > _CONSUMERS_MAX:
        why = f"Too many: {len(users)}: must have at most {_CONSUMERS_MAX} items"
        causes.append(Cause("FieldValueTooMany", "status.reservedFor", why))
    if users and not given:
        why = "may not be specified when `allocated` is not set"
        causes.append(forbidden_field("status.reservedFor", why))
    there = {one.get("uid") for one in before.get("reservedFor") or ()}
    if "deletionTimestamp" in old["metadata"] and any(one.get("uid") not in there for one in users):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        causes.append(forbidden_field("status.reservedFor", why))
    if status.get("devices"):
        results = (given or {}).get("devices", {}).get("results") or ()
        kept = {_get_key(one) for one in results}
        new["status"] = {
            **status,
            "devices": [one for one in status["devices"] if _get_key(one) in kept],
        }
    return causes


def _find_pod_status_problems(pod: Json, old: Json) -> list[Cause]:
    """Return what is wrong with the claim that stands for a pod's extended resources, as its status says.

    What it says can be changed, and not removed.
    """
    field = "extendedResourceClaimStatus"
    told, before = ((one.get("status") or {}).get(field) for one in (pod, old))
    if not told:
        if before:
            pod["status"] = {**(pod.get("status") or {}), field: before}
        return []
    where, causes = "status.extendedResourceClaimStatus", list[Cause]()
    spec = pod["spec"]
    requests = {
        one["name"]: (one.get("resources") or {}).get("requests") or {}
        for one in [*(spec.get("initContainers") or ()), *spec["containers"]]
    }
    mappings = told.get("requestMappings") or ()
    if not mappings:
        causes.append(
            required(f"{where}.requestMappings", "at least one request mapping is required")
        )
    for i, one in enumerate(mappings):
        container, resource = one.get("containerName"), one.get("resourceName")
        if container not in requests:
            why = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            causes.append(
                invalid_value(f"{where}.requestMappings[{i}].containerName", container, why)
            )
        elif resource not in requests[container]:
            why = "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"
            causes.append(
                invalid_value(f"{where}.requestMappings[{i}].resourceName", resource, why)
            )
    if not told.get("resourceClaimName"):
        causes.append(required(f"{where}.resourceClaimName"))
    return causes


def _get_key(one: Json) -> tuple[str, ...]:
    return tuple(str(one.get(name, "")) for name in ("driver", "pool", "device", "shareID"))


def _find_claim_spec(resource: str, body: Json) -> Json:
    spec: Json = body["spec"] if resource == CLAIMS else body["spec"].setdefault("spec", {})
    return spec


def _list_requests(spec: Json) -> list[Json]:
    return list((spec.get("devices") or {}).get("requests") or ())
