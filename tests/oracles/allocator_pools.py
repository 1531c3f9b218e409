"""Which pools of devices a node can use, from raw objects: upstream's steps, one after the other.

A pool is all slices of one driver with one pool name. Taints of rules are put on the devices first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.oracles import filters, quantities

Json = dict[str, Any]
Counters = dict[str, dict[str, Fraction]]
DEFAULTS = frozenset(
    {
        "AdminAccess",
        "ConsumableCapacity",
        "DeviceBindingAndStatus",
        "DeviceTaints",
        "FractionalCapacityRange",
        "PartitionableDevices",
        "PrioritizedList",
    }
)
# With one of these another variant of the allocator runs, which alone knows them.
LATER = frozenset(
    {"CompatibilityGroups", "DerivedAttributes", "ListTypeAttributes", "OptionalNodeOperations"}
)


def exact(text: Any) -> Fraction:
    value = quantities.exact(str(text))
    assert value is not None, text
    return value


def features_of(world: Json) -> frozenset[str]:
    given = world.get("features") or {}
    return frozenset(name for name in DEFAULTS | LATER if given.get(name, name in DEFAULTS))


@dataclass(frozen=True, eq=False)
class Device:
    driver: str
    pool: str
    body: Json
    slice: Json

    @property
    def id(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.body["name"]

    @property
    def words(self) -> str:
        return "/".join(self.id)

    @property
    def is_shareable(self) -> bool:
        return bool(self.body.get("allowMultipleAllocations"))

    @property
    def draws(self) -> list[Json]:
        return self.body.get("consumesCounters") or []


@dataclass(frozen=True, eq=False)
class Pool:
    """Devices that the node can use, those of the pool that it cannot, and the counters of both."""

    driver: str
    name: str
    is_incomplete: bool = False
    is_invalid: bool = False
    devices: list[Device] = field(default_factory=list)
    others: list[Device] = field(default_factory=list)
    counters: Counters = field(default_factory=dict)

    @property
    def words(self) -> str:
        return f"{self.driver}/{self.name}"


def with_taints_of_rules(slices: Iterable[Json], rules: Sequence[Json]) -> list[Json]:
    return [
        one
        | {"spec": one["spec"] | {"devices": [_tainted(one, device, rules) for device in devices]}}
        if (devices := one["spec"].get("devices"))
        else one
        for one in slices
    ]


def _tainted(of: Json, device: Json, rules: Sequence[Json]) -> Json:
    this = {
        "driver": of["spec"]["driver"],
        "pool": of["spec"]["pool"]["name"],
        "device": device["name"],
    }
    added = [
        rule["spec"]["taint"]
        for rule in rules
        if (chosen := rule["spec"].get("deviceSelector")) is not None
        and all(this[key] == value for key, value in chosen.items())
    ]
    return device | {"taints": [*(device.get("taints") or ()), *added]} if added else device


def gather(slices: Sequence[Json], node: Json, on: frozenset[str]) -> list[Pool]:
    """All pools with a slice for the node, in the order in which devices are tried."""
    name = node["metadata"]["name"]
    own = [one for one in slices if one["spec"].get("nodeName") == name]
    shared = [one for one in slices if not one["spec"].get("nodeName")]
    relevant = [one for one in own + shared if _is_known(one, on) and _is_for(one, node)]
    pools: dict[tuple[str, str], list[Json]] = {}
    for one in relevant:
        pools.setdefault(_pool_of(one), []).append(one)
    found = []
    for key, of_pool in pools.items():
        newest = max(one["spec"]["pool"]["generation"] for one in of_pool)
        current = [one for one in of_pool if one["spec"]["pool"]["generation"] == newest]
        if (pool := _pool(key, current, slices, on)) is not None:
            found.append(pool)
    return sorted(found, key=lambda pool: (_is_late(pool), pool.driver, pool.name))


def _pool(
    key: tuple[str, str], current: list[Json], slices: Sequence[Json], on: frozenset[str]
) -> Pool | None:
    stated = current[0]["spec"]["pool"]["resourceSliceCount"]
    if len(current) == stated:
        return _build(key, current, [], on)
    generation = current[0]["spec"]["pool"]["generation"]
    everywhere = [one for one in slices if _pool_of(one) == key]
    if any(one["spec"]["pool"]["generation"] > generation for one in everywhere):
        return None
    same = [one for one in everywhere if one["spec"]["pool"]["generation"] == generation]
    if "CompatibilityGroups" not in on:
        same = [one for one in same if not _has_groups(one)]
    if len(same) != stated:
        return Pool(*key, is_incomplete=True)
    names = {one["metadata"]["name"] for one in current}
    return _build(key, current, [one for one in same if one["metadata"]["name"] not in names], on)


def _build(
    key: tuple[str, str], current: list[Json], others: list[Json], on: frozenset[str]
) -> Pool:
    here = sorted(current, key=lambda one: one["metadata"]["name"])
    counts = "PartitionableDevices" in on
    with_sets = [one for one in here + others if counts and one["spec"].get("sharedCounters")]
    sets = [one for of in with_sets for one in of["spec"]["sharedCounters"]]
    devices, elsewhere = (
        [
            Device(*key, body, one)
            for one in part
            if one not in with_sets
            for body in one["spec"].get("devices") or ()
        ]
        for part in (here, others)
    )
    counters: Counters = {
        one["name"]: {name: exact(c["value"]) for name, c in (one.get("counters") or {}).items()}
        for one in sets
    }
    names = [device.body["name"] for device in devices]
    is_invalid = len(set(names)) < len(names) or (
        counts
        and (
            len(counters) < len(sets)
            or not all(_are_there(device, counters) for device in devices + elsewhere)
        )
    )
    if is_invalid:
        return Pool(*key, is_invalid=True)
    return Pool(*key, devices=devices, others=elsewhere, counters=counters)


def _are_there(device: Device, counters: Counters) -> bool:
    return all(
        draw["counterSet"] in counters
        and (draw.get("counters") or {}).keys() <= counters[draw["counterSet"]].keys()
        for draw in device.draws
    )


def _pool_of(one: Json) -> tuple[str, str]:
    return one["spec"]["driver"], one["spec"]["pool"]["name"]


def _is_late(pool: Pool) -> bool:
    return any(device.body.get("bindingConditions") is not None for device in pool.devices)


def _has_groups(one: Json) -> bool:
    return any(
        draw.get("compatibilityGroups")
        for device in one["spec"].get("devices") or ()
        for draw in device.get("consumesCounters") or ()
    )


def _is_known(one: Json, on: frozenset[str]) -> bool:
    spec = one["spec"]
    uses_parts = spec.get("perDeviceNodeSelection") is not None or spec.get("sharedCounters")
    if uses_parts and "PartitionableDevices" not in on:
        return False
    return "CompatibilityGroups" in on or not _has_groups(one)


def _is_for(one: Json, node: Json) -> bool:
    spec = one["spec"]
    if spec.get("nodeName") or spec.get("allNodes") or spec.get("nodeSelector") is not None:
        return suits(spec, node)
    return bool(spec.get("perDeviceNodeSelection")) and any(
        suits(device, node) for device in spec.get("devices") or ()
    )


def suits(chooser: Json, node: Json) -> bool:
    """Whether a slice or a device that says for which nodes it is, is for this one."""
    if chooser.get("nodeName"):
        return bool(chooser["nodeName"] == node["metadata"]["name"])
    if chooser.get("allNodes"):
        return True
    terms = (chooser.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return any(_holds(term, node) for term in terms)


def _holds(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    labels = node["metadata"].get("labels") or {}
    known = {"metadata.name": node["metadata"]["name"]}
    return (
        bool(expressions or fields)
        and all(filters.holds(one, labels) for one in expressions)
        and all(filters.holds(one, known) for one in fields)
    )
