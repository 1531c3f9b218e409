"""Differences about ResourceClaims that stay, each with its reason; ``known`` has the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from tests.differential.compare import Difference, Known

Json = dict[str, Any]
_CONSUMERS_MAX = 256
_ALLOCATION_FAILS = 'running "DynamicResources" filter plugin: '
_SELECTOR_FAILS = "CEL runtime error: "
_FREED = "deallocation of ResourceClaim completed"
_TOO_MANY = " devices exceeds the claim limit of "


def _is_of_a_full_claim(_: Difference, objects: Sequence[Json]) -> bool:
    """Only of a pod that has a claim which as many pods have as the API server lets have it."""
    return any(
        len(one.get("status", {}).get("reservedFor") or ()) >= _CONSUMERS_MAX
        for one in _device_claims(objects)
    )


def _is_of_a_claim_with_others(difference: Difference, objects: Sequence[Json]) -> bool:
    """Only whether a claim loses its devices that another pod names, too."""
    theirs = str(difference.theirs).replace(f"{_FREED}, ", "").replace(f" {_FREED}", "")
    if difference.what != "message" or theirs != str(difference.ours):
        return False
    named = {
        (one["metadata"]["namespace"], each.get("resourceClaimName"))
        for one in objects[:-1]
        if one["kind"] == "Pod"
        for each in one["spec"].get("resourceClaims", ())
    }
    meta = [one["metadata"] for one in _device_claims(objects)]
    return any((one["namespace"], one["name"]) in named for one in meta)


def _is_of_a_failing_selector(difference: Difference, _: Sequence[Json]) -> bool:
    """Also where kube-scheduler does not get to the device, and no other would do."""
    is_told = difference.what == "message" and " nodes are available: claim " in str(
        difference.ours
    )
    is_told = is_told and _SELECTOR_FAILS in str(difference.ours)
    return is_told or _fails(difference, _SELECTOR_FAILS)


def _is_of_a_refused_constraint(difference: Difference, _: Sequence[Json]) -> bool:
    return _fails(difference, "because a claim constraint would not be satisfied")


def _is_of_an_unsure_pool(difference: Difference, _: Sequence[Json]) -> bool:
    return _fails(difference, "asks for all devices, but resource pool ")


def _fails(difference: Difference, why: str) -> bool:
    """Whether kube-scheduler gives a pod up because its allocator fails on some node."""
    theirs = str(difference.theirs)
    return difference.what == "error" and _ALLOCATION_FAILS in theirs and why in theirs


def _is_of_several_faults(difference: Difference, objects: Sequence[Json]) -> bool:
    """Only what is told of a pod that is kept back for its claims, and whose volumes are refused."""
    has_both = {"resourceClaims", "volumes"} <= objects[-1]["spec"].keys()
    is_kept_back = difference.what == "message" and " nodes are" not in str(difference.theirs)
    return has_both and is_kept_back and str(difference.ours).endswith(". not found")


def _is_of_administrators(_: Difference, objects: Sequence[Json]) -> bool:
    """Only of a pod that requests access for administrators, and more; or to devices that draw on counters."""
    requests = [
        one for claim in _device_claims(objects) for one in claim["spec"]["devices"]["requests"]
    ]
    is_admin = any(one.get("exactly", {}).get("adminAccess") for one in requests)
    return is_admin and (
        len(requests) > 1
        or any("sharedCounters" in one["spec"] for one in objects if one["kind"] == "ResourceSlice")
    )


def _is_of_too_many_devices(difference: Difference, _: Sequence[Json]) -> bool:
    return difference.what in {"error", "message"} and _TOO_MANY in str(difference.ours)


def _is_of_parts_of_units(difference: Difference, _: Sequence[Json]) -> bool:
    """Only of amounts that are rounded up to whole units."""
    return difference.what == "allocation" and _are_rounded(difference.theirs, difference.ours)


def _are_rounded(theirs: Any, ours: Any) -> bool:
    """Whether allocations are equal but for amounts that one has rounded up."""
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(_are_rounded, theirs, ours))
    if not (isinstance(theirs, dict) and isinstance(ours, dict)):
        return bool(theirs == ours)
    if theirs.keys() != ours.keys():
        return False
    return all(
        _are_amounts_rounded(one, ours[key])
        if key == "consumedCapacity"
        else _are_rounded(one, ours[key])
        for key, one in theirs.items()
    )


def _are_amounts_rounded(theirs: Json, ours: Json) -> bool:
    return theirs.keys() == ours.keys() and all(
        Fraction(amount) in {Fraction(ours[name]), ceil(Fraction(ours[name]))}
        for name, amount in theirs.items()
    )


def _is_of_overdrawn_counters(_: Difference, objects: Sequence[Json]) -> bool:
    """Only where devices are allocated that together draw more of a counter than there is."""
    slices = [one["spec"] for one in objects if one["kind"] == "ResourceSlice"]
    left = Counter(
        {
            (*_pool(spec), of["name"], name): int(counter["value"])
            for spec in slices
            for of in spec.get("sharedCounters", ())
            for name, counter in of["counters"].items()
        }
    )
    taken = {
        (result["driver"], result["pool"], result["device"])
        for one in objects
        if one["kind"] == "ResourceClaim" and "allocation" in one.get("status", {})
        for result in one["status"]["allocation"]["devices"].get("results", ())
        if not result.get("adminAccess")
    }
    for spec in slices:
        for device in spec.get("devices", ()):
            if (*_pool(spec), device["name"]) in taken:
                for of in device.get("consumesCounters", ()):
                    for name, counter in of["counters"].items():
                        left[(*_pool(spec), of["counterSet"], name)] -= int(counter["value"])
    return any(amount < 0 for amount in left.values())


def _pool(spec: Json) -> tuple[str, str]:
    return spec["driver"], spec["pool"]["name"]


def _device_claims(objects: Sequence[Json]) -> list[Json]:
    """The ResourceClaims of the last pod."""
    pod = objects[-1]
    made = pod.get("status", {}).get("resourceClaimStatuses") or ()
    names = {
        one.get("resourceClaimName") for one in (*pod["spec"].get("resourceClaims", ()), *made)
    }
    return [
        one
        for one in objects
        if one["kind"] == "ResourceClaim"
        and one["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and one["metadata"]["name"] in names
    ]


KNOWN: tuple[Known, ...] = (
    Known(
        "a claim that 256 pods have: kube-scheduler looks for a node, and the API server refuses the 257th"
        " (docs/claims.md)",
        _is_of_a_full_claim,
    ),
    Known(
        "a claim that another pod names, too, and nobody has reserved: in kube-scheduler it may lose its devices"
        " (docs/claims.md)",
        _is_of_a_claim_with_others,
    ),
    Known(
        "a selector that fails on a device: kube-scheduler gives up; Evenkeel refuses the node (docs/claims.md)",
        _is_of_a_failing_selector,
    ),
    Known(
        "all devices, and a constraint that refuses one: kube-scheduler gives up; Evenkeel tries other choices and"
        " other nodes (docs/claims.md)",
        _is_of_a_refused_constraint,
    ),
    Known(
        "all devices of a node with a pool that is not whole, or invalid: kube-scheduler gives up; Evenkeel refuses the"
        " node (docs/claims.md)",
        _is_of_an_unsure_pool,
    ),
    Known(
        "access for administrators: in kube-scheduler it draws counters, and may hide a device from later requests"
        " (docs/claims.md)",
        _is_of_administrators,
    ),
    Known(
        "a pod that kube-scheduler keeps back for its claims, without a word, and whose volumes are refused: Evenkeel"
        " tells of the volumes",
        _is_of_several_faults,
    ),
    Known(
        "more devices than a claim can have: kube-scheduler finds it out on a node; Evenkeel looks for no node"
        " (docs/claims.md)",
        _is_of_too_many_devices,
    ),
    Known(
        "ranges of capacity with parts of units: kube-scheduler rounds up to whole units (docs/claims.md)",
        _is_of_parts_of_units,
    ),
    Known(
        "a set of counters is overdrawn: kube-scheduler allocates no device of the pool; Evenkeel none that draws on the"
        " set (docs/claims.md)",
        _is_of_overdrawn_counters,
    ),
)
