"""The claim that stands for the extended resources of a pod that classes back with devices.

The pod names no claim. Its scheduler makes one before the bind, with a request for each container and resource. Whether
a class or a device plugin serves a resource is decided for each node, so the claim depends on the node. Until it is made,
and afterwards, too, it goes by a key that no other claim can have: that of the pod.

Source: kube-scheduler 1.37.1, dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from scheduler.api.claims.answers import ClaimKey
from scheduler.api.claims.devices import DeviceClass
from scheduler.api.claims.objects import (
    ClaimSpec,
    DeviceClaim,
    DeviceRequest,
    ExactRequest,
)
from scheduler.api.claims.pods import PodClaim
from scheduler.api.claims.wanted import CLASS_PREFIX, Wanted

Json = dict[str, Any]

# No object can have such a name.
_NAME = "<extended-resources>"
# As the API server makes names of ``generateName``: so long is what it begins with, and of these letters so many follow.
_BASE_MAX, _LETTERS, _N_LETTERS = 58, "bcdfghjklmnpqrstvwxz2456789", 5


class Served(NamedTuple):
    """Which request of the claim serves which resource of which container."""

    container: str
    resource: str
    request: str


class Drawn(NamedTuple):
    """A claim as it is to be made: its requests, the resource that each stands for, and which containers they serve."""

    requests: tuple[DeviceRequest, ...]
    resources: tuple[str, ...]
    mappings: tuple[Served, ...]

    @property
    def spec(self) -> ClaimSpec:
        """The spec of the claim."""
        return ClaimSpec(DeviceClaim(list(self.requests)))


def make_key(namespace: str, uid: str) -> ClaimKey:
    """Make the key of the claim that stands for the extended resources of a pod."""
    return namespace, f"{_NAME}/{uid}"


def find_pod(key: ClaimKey) -> str:
    """Find the uid of the pod of such a key; empty for the key of any other claim."""
    name, _, uid = key[1].partition("/")
    return uid if name == _NAME else ""


def make_entry(uid: str) -> PodClaim:
    """Make the entry by which a pod has such a claim."""
    return PodClaim(_NAME, make_key("", uid)[1], _NAME)


def choose_classes(classes: Iterable[DeviceClass], implicit: Collection[str]) -> dict[str, str]:
    """Choose the class behind each extended resource: of several the one that was made last, then the first by name.

    ``implicit`` are the resources of the form ``deviceclass.resource.kubernetes.io/<class>`` that count.
    """
    found: dict[str, str] = {}
    by_name = {one.name: one for one in classes}
    for one in sorted(by_name.values(), key=lambda one: one.name, reverse=True):
        before = by_name.get(found.get(one.extended, ""))
        if one.extended and (before is None or one.created >= before.created):
            found[one.extended] = one.name
    for resource in implicit:
        name = resource.removeprefix(CLASS_PREFIX)
        if name in by_name:
            found[resource] = name
    return found


def draw_claim(wanted: Sequence[Wanted], classes: Mapping[str, str]) -> Drawn:
    """Draw the claim for those resources that have a class in ``classes``.

    An init container that ends may use what the containers after it get. What it lacks then is a request of its own; of
    several such requests for one resource only the largest is made, and serves all of these containers.
    """
    requests: list[tuple[DeviceRequest, str]] = []
    mappings: list[Served] = []
    for resource in dict.fromkeys(one.resource for one in wanted):
        if resource in classes:
            made, served = _draw_resource(
                [one for one in wanted if one.resource == resource], classes[resource]
            )
            requests += [(one, resource) for one in made]
            mappings += served
    requests.sort(key=lambda one: one[0].name)
    return Drawn(
        tuple(one for one, _ in requests), tuple(name for _, name in requests), tuple(mappings)
    )


def _draw_resource(
    wanted: Sequence[Wanted], of_class: str
) -> tuple[list[DeviceRequest], list[Served]]:
    """Draw the requests for one resource, by container."""
    lasting = [one for one in wanted if not one.is_short]
    requests = [_make_request(one, one.n, of_class) for one in lasting]
    mappings = [_serve(one, one) for one in lasting]
    used = {one: _list_used(one, lasting) for one in wanted if one.is_short}
    missing = {one: one.n - sum(other.n for other in there) for one, there in used.items()}
    largest = max(used, key=lambda one: (missing[one], -one.at), default=None)
    for one, there in used.items():
        mappings += [_serve(one, other) for other in there]
        if missing[one] > 0 and largest is not None:
            mappings.append(_serve(one, largest))
    if largest is not None and missing[largest] > 0:
        requests.append(_make_request(largest, missing[largest], of_class))
    return requests, mappings


def _list_used(one: Wanted, lasting: Sequence[Wanted]) -> list[Wanted]:
    """List the containers after one whose devices it may use: no more than it needs."""
    found: list[Wanted] = []
    for other in lasting:
        if other.at > one.at and sum(each.n for each in found) < one.n:
            found.append(other)
    return found


def _serve(one: Wanted, by: Wanted) -> Served:
    return Served(one.container, one.resource, _name(by))


def _name(one: Wanted) -> str:
    return f"container-{one.at}-request-{one.place}"


def _make_request(one: Wanted, n: int, of_class: str) -> DeviceRequest:
    exactly = ExactRequest(device_class_name=of_class, allocation_mode="ExactCount", count=n)
    return DeviceRequest(_name(one), exactly)


def write_claim(drawn: Drawn) -> bytes:
    """Write a claim that is to be made: its requests, and what its pod's status says of it; JSON."""
    return msgspec.json.encode({
        "requests": [
            {
                "name": one.name,
                "exactly": {
                    "deviceClassName": one.exactly.device_class_name,
                    "allocationMode": one.exactly.allocation_mode,
                    "count": one.exactly.count,
                },
            }
            for one in drawn.requests
            if one.exactly is not None
        ],
        "requestMappings": [
            {"containerName": one.container, "resourceName": one.resource, "requestName": one.request}
            for one in drawn.mappings
        ],
    })  # fmt: skip


def make_name(pod: str, uid: str) -> tuple[str, str]:
    """Make the name of the claim of a pod, and what the name begins with.

    The API server draws the end of such a name by lot. Here it follows from the pod's uid: a claim whose making was not
    answered is found again, and is not made twice.
    """
    base = f"{pod}-extended-resources-"
    rest = int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=8).digest())
    end = ""
    for _ in range(_N_LETTERS):
        rest, letter = divmod(rest, len(_LETTERS))
        end += _LETTERS[letter]
    return base[:_BASE_MAX] + end, base
