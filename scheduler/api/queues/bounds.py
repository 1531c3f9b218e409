"""What containers may ask for: not more than their own limits, and within the LimitRanges of their namespace.

Source: Kueue (2026-08), ``pkg/workload/resources.go`` and ``pkg/util/limitrange``, whose words these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.api import values, wire
from scheduler.api.queues import amounts
from scheduler.api.queues.amounts import Amounts

_EXCEEDS = "requests must not exceed its limits"
_ABOVE = "requests must not be above the limitRange max"
_BELOW = "requests must not be below the limitRange min"
_CONTAINER, _POD = "Container", "Pod"


class ContainerAsk(NamedTuple):
    """What a container asks for, and where it stands in the spec of its pod."""

    path: str
    requests: Amounts
    limits: Amounts


class Bounds(NamedTuple):
    """The least and the most of each resource that one thing may ask for."""

    least: Mapping[str, int]
    most: Mapping[str, int]


class Ranges(NamedTuple):
    """What LimitRanges say of containers and of pods."""

    containers: Bounds
    pods: Bounds


def list_asks(spec: wire.PodSpec) -> Iterator[ContainerAsk]:
    """List what the containers of a pod ask for.

    Raises:
        BadInput: a quantity is malformed.
    """
    for field, given in ("initContainers", spec.init_containers), ("containers", spec.containers):
        for i, one in enumerate(given or ()):
            path, resources = f"{field}[{i}]", one.resources or wire.Resources()
            yield ContainerAsk(
                path,
                amounts.read_amounts(resources.requests, f"{path}.resources.requests"),
                amounts.read_amounts(resources.limits, f"{path}.resources.limits"),
            )


def read_limit_range(spec: Any) -> Ranges:
    """Read the spec of a LimitRange.

    Raises:
        BadInput: a quantity is malformed.
    """
    found: dict[str, list[Bounds]] = {_CONTAINER: [], _POD: []}
    raw = values.read_mapping(spec, "spec")
    for i, item in enumerate(values.read_items(raw.get("limits"), "spec.limits", dict)):
        where = f"spec.limits[{i}]"
        least, most = (
            dict(amounts.read_amounts(values.read_mapping(item.get(key), where), f"{where}.{key}"))
            for key in ("min", "max")
        )
        found.setdefault(str(item.get("type")), []).append(Bounds(least, most))
    return Ranges(_merge_bounds(found[_CONTAINER]), _merge_bounds(found[_POD]))


def merge_ranges(some: Iterable[Ranges]) -> Ranges:
    """Merge what several LimitRanges say: all have to be kept."""
    every = list(some)
    return Ranges(
        _merge_bounds([one.containers for one in every]), _merge_bounds([one.pods for one in every])
    )


def _merge_bounds(some: Sequence[Bounds]) -> Bounds:
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for one in some:
        for name, amount in one.least.items():
            least[name] = max(amount, least.get(name, amount))
        for name, amount in one.most.items():
            most[name] = min(amount, most.get(name, amount))
    return Bounds(least, most)


def find_excess(asks: Iterable[ContainerAsk], path: str) -> str:
    """Say which containers ask for more than their own limits; empty if none does."""
    found = [
        _describe(f"{path}.{one.path}", names, _EXCEEDS)
        for one in asks
        if (names := _list_greater(dict(one.requests), dict(one.limits)))
    ]
    return _aggregate(found)


def find_breach(asks: Iterable[ContainerAsk], of_pod: Amounts, path: str, ranges: Ranges) -> str:
    """Say what is outside the LimitRanges of a namespace; empty if nothing is."""
    found: list[str] = []
    for one in asks:
        requests, limits = dict(one.requests), dict(one.limits)
        both = requests.keys() | limits.keys()
        high = {name: max(requests.get(name, 0), limits.get(name, 0)) for name in both}
        low = {
            name: min(given[name] for given in (requests, limits) if name in given) for name in both
        }
        found += _compare(f"{path}.{one.path}", low, high, ranges.containers)
    total = dict(of_pod)
    found += _compare(path, total, total, ranges.pods)
    return _aggregate(found)


def _compare(
    path: str, low: Mapping[str, int], high: Mapping[str, int], bounds: Bounds
) -> Iterator[str]:
    if names := _list_greater(high, bounds.most):
        yield _describe(path, names, _ABOVE)
    if names := _list_greater(bounds.least, low):
        yield _describe(path, names, _BELOW)


def _list_greater(some: Mapping[str, int], other: Mapping[str, int]) -> list[str]:
    return sorted(name for name, amount in some.items() if name in other and amount > other[name])


def _describe(path: str, names: Sequence[str], what: str) -> str:
    said = ",".join(f'"{name}"' for name in names)
    return f"{path}: Invalid value: [{said}]: {what}"


def _aggregate(found: Sequence[str]) -> str:
    """Write several errors as Kubernetes does."""
    if len(found) > 1:
        return f"[{', '.join(dict.fromkeys(found))}]"
    return "".join(found)
