"""The devices of random worlds: ResourceSlices as drivers publish them, DeviceClasses, DeviceTaintRules.

Each part of a world has pools of its own: a pool is named by its driver and by what it is about.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.differential.worlds import ZONE, World

Json = dict[str, Any]
GROUP = "resource.k8s.io/v1"
DRIVERS = ("a.example", "b.example")
KINDS, ROOTS, KEYS = ("big", "small"), ("r0", "r1", "r2"), ("fragile", "spare")
# Profile, how much of a card's counters it draws, and where it may start.
_PARTS = (("one", 1, range(4)), ("two", 2, (0, 2)), ("four", 4, (0,)))
_POLICIES: tuple[Json, ...] = (
    {},
    {"requestPolicy": {"default": "10", "validRange": {"min": "10", "max": "30", "step": "10"}}},
    {"requestPolicy": {"default": "5", "validRange": {"min": "5"}}},
    {"requestPolicy": {"default": "10", "validRange": {"min": "0", "max": "40"}}},
    {"requestPolicy": {"default": "20", "validValues": ["20", "30", "40"]}},
    {"requestPolicy": {"default": "500m", "validRange": {"min": "500m", "step": "250m"}}},
)


def add_classes(rng: Random, world: World) -> None:
    """Once a world, whichever features of claims it has."""
    if any(one["kind"] == "DeviceClass" for one in world.others):
        return
    expressions = {
        "any": [],
        "class-a": [f'device.driver == "{DRIVERS[0]}"'],
        "class-b": [f'device.driver == "{DRIVERS[1]}"'],
        "big-a": [
            f'device.driver == "{DRIVERS[0]}"',
            f'device.attributes["{DRIVERS[0]}"].?kind.orValue("") == "big"',
        ],
        "none": ["false"],
    }
    for name, texts in expressions.items():
        spec: Json = {"selectors": [{"cel": {"expression": one}} for one in texts]}
        if rng.random() < 0.3:
            spec["config"] = [make_config(rng) for _ in range(rng.randint(1, 2))]
        world.others.append(
            {"apiVersion": GROUP, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}
        )


def make_config(rng: Random) -> Json:
    parameters = {"speed": rng.randint(1, 9)}
    return {"opaque": {"driver": rng.choice(DRIVERS), "parameters": parameters}}


def add_pool(
    world: World, about: str, driver: str, slices: list[Json], *, missing: int = 0
) -> list[Json]:
    """Publish slices of one pool; so many are missing."""
    pool = {"name": about, "generation": 2, "resourceSliceCount": len(slices) + missing}
    made = [
        {
            "apiVersion": GROUP,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{about}-{driver[0]}-{i}"},
            "spec": {"driver": driver, "pool": dict(pool)} | spec,
        }
        for i, spec in enumerate(slices)
    ]
    world.others += made
    return made


def list_devices(world: World) -> Iterator[tuple[Json, Json]]:
    """All devices with the specs of their slices."""
    for one in world.others:
        if one["kind"] == "ResourceSlice":
            for device in one["spec"].get("devices", ()):
                yield one["spec"], device


def add_plain(rng: Random, world: World) -> None:
    """Of most nodes a pool of their own, and a pool that several nodes reach."""
    for node in world.nodes:
        if rng.random() < 0.8:
            name = node["metadata"]["name"]
            slices = [
                one | {"nodeName": name} for one in _cut(rng, _devices(rng, rng.randint(1, 4)))
            ]
            add_pool(world, name, DRIVERS[0], slices)
    if rng.random() < 0.6:
        slices = _cut(rng, _devices(rng, rng.randint(1, 3)))
        where = choose_nodes(rng, world)
        add_pool(world, "reached", DRIVERS[1], [one | where for one in slices])


def _devices(rng: Random, n: int) -> list[Json]:
    return [make_device(rng, i) for i in range(n)]


def _cut(rng: Random, devices: list[Json]) -> list[Json]:
    at = rng.randint(1, len(devices)) if rng.random() < 0.3 else len(devices)
    return [{"devices": part} for part in (devices[:at], devices[at:]) if part]


def make_device(rng: Random, number: int) -> Json:
    attributes: Json = {
        "kind": {"string": rng.choice(KINDS)},
        "numa": {"int": rng.randint(0, 1)},
        "fast": {"bool": rng.random() < 0.5},
        "firmware": {"version": rng.choice(["1.0.0", "1.1.0"])},
        "std.example/root": {"string": rng.choice(ROOTS)},
        "serial": {"int": number},
    }
    if rng.random() < 0.15:
        del attributes[rng.choice(sorted(attributes))]
    if rng.random() < 0.1:
        attributes["numa"] = rng.choice([{"string": "0"}, {"bool": True}, {"version": "1.0.0"}])
    return {
        "name": f"d{number}",
        "attributes": attributes,
        "capacity": {"memory": {"value": rng.choice(["16Gi", "40Gi", "80Gi"])}},
    }


def choose_nodes(rng: Random, world: World) -> Json:
    """The nodes that reach a slice or a device."""
    zones = rng.sample(["zone-0", "zone-1", "zone-2"], rng.choice([1, 2]))
    node = rng.choice(world.nodes)["metadata"]["name"]
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    zone = {"key": ZONE, "operator": "In", "values": zones}
    terms: list[Json] = [
        {"matchExpressions": [zone]},
        {"matchExpressions": [zone, {"key": "rack", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]},
        {"matchFields": [here]},
    ]
    selector = {"nodeSelector": {"nodeSelectorTerms": [rng.choice(terms)]}}
    return rng.choice([{"allNodes": True}, selector, selector, {"nodeName": node}])


def add_parts(rng: Random, world: World) -> None:
    """Cards that are whole or cut into parts which draw on the same counters; and devices that say their own nodes."""
    for node in world.nodes:
        if rng.random() < 0.7:
            name = node["metadata"]["name"]
            cards = [_cut_card(rng, i) for i in range(rng.randint(1, 2))]
            slices = [
                {"sharedCounters": [_count_card(i) for i in range(len(cards))]},
                *({"devices": devices} for devices in cards),
            ]
            if rng.random() < 0.3:
                slices.reverse()
            add_pool(
                world, f"{name}-cards", DRIVERS[0], [one | {"nodeName": name} for one in slices]
            )
    if rng.random() < 0.5:
        devices = [one | choose_nodes(rng, world) for one in _devices(rng, rng.randint(2, 4))]
        if rng.random() < 0.3:
            rng.choice(devices)["bindsToNode"] = True
        add_pool(
            world, "placed", DRIVERS[1], [{"devices": devices, "perDeviceNodeSelection": True}]
        )


def _count_card(card: int) -> Json:
    places = {f"place-{i}": {"value": "1"} for i in range(4)}
    return {"name": f"card-{card}", "counters": {"units": {"value": "4"}, **places}}


def _cut_card(rng: Random, card: int) -> list[Json]:
    devices = [_part(card, "whole", range(4))]
    for profile, size, starts in rng.sample(_PARTS, rng.randint(1, 2)):
        devices += [_part(card, profile, range(start, start + size)) for start in starts]
    return sorted(devices, key=lambda device: str(device["name"]))


def _part(card: int, profile: str, places: range) -> Json:
    drawn = {"units": {"value": str(len(places))}}
    drawn |= {f"place-{i}": {"value": "1"} for i in places}
    return {
        "name": f"card-{card}-{profile}-{places[0]}",
        "attributes": {
            "kind": {"string": "big" if profile == "whole" else "small"},
            "profile": {"string": profile},
            "numa": {"int": card},
            "std.example/root": {"string": f"r{card}"},
        },
        "capacity": {"memory": {"value": f"{10 * len(places)}Gi"}},
        "consumesCounters": [{"counterSet": f"card-{card}", "counters": drawn}],
    }


def add_shares(rng: Random, world: World) -> None:
    """Devices that several claims may have, of which each consumes some."""
    for node in world.nodes:
        if rng.random() < 0.8:
            name = node["metadata"]["name"]
            devices = _devices(rng, rng.randint(1, 2))
            for one in devices:
                one["name"] = f"s{one['name']}"
                if rng.random() < 0.9:
                    one |= {"allowMultipleAllocations": True, "capacity": _shared(rng)}
            add_pool(world, f"{name}-shares", DRIVERS[1], [{"nodeName": name, "devices": devices}])


def _shared(rng: Random) -> Json:
    cores = {"value": rng.choice(["40", "60", "100"])} | rng.choice(_POLICIES)
    if rng.random() < 0.5:
        return {"cores": cores}
    step = {"default": "4Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}}
    memory = {"value": rng.choice(["8Gi", "16Gi"]), "requestPolicy": step}
    return {"cores": cores, "memory": memory}


def add_taints(rng: Random, world: World) -> None:
    """Taints of devices, and rules that add some."""
    for _, device in list_devices(world):
        if rng.random() < 0.35:
            taints = {_key(one): one for one in (make_taint(rng), make_taint(rng))}
            device["taints"] = list(taints.values())
    for i in range(rng.randint(0, 2)):
        node = rng.choice(world.nodes)["metadata"]["name"]
        chosen = {"driver": rng.choice(DRIVERS), "pool": node, "device": "d0"}
        kept = {key: value for key, value in chosen.items() if rng.random() < 0.4}
        spec: Json = {"taint": make_taint(rng)}
        if rng.random() < 0.9:
            spec["deviceSelector"] = kept
        name = f"rule-{i}"
        world.others.append(
            {
                "apiVersion": GROUP,
                "kind": "DeviceTaintRule",
                "metadata": {"name": name},
                "spec": spec,
            }
        )


def _key(taint: Json) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def make_taint(rng: Random) -> Json:
    effect = rng.choice(["NoSchedule", "NoExecute", "None"])
    return {"key": rng.choice(KEYS), "value": rng.choice(["", "yes"]), "effect": effect}


def add_mistakes(rng: Random, world: World) -> None:
    """Pools that are not whole, or were, or have two devices of one name, or draw on counters that are not there."""
    for node in world.nodes:
        name = node["metadata"]["name"]
        match rng.randrange(7):
            case 0:
                devices = {"nodeName": name, "devices": _devices(rng, 2)}
                add_pool(world, f"{name}-odd", DRIVERS[0], [devices], missing=1)
            case 1:
                twice = {"nodeName": name, "devices": _devices(rng, 1)}
                add_pool(world, f"{name}-odd", DRIVERS[0], [twice, twice])
            case 2:
                drawing = _part(0, "one", range(1))
                add_pool(
                    world, f"{name}-odd", DRIVERS[0], [{"nodeName": name, "devices": [drawing]}]
                )
            case 3:
                slices = add_pool(
                    world, f"{name}-odd", DRIVERS[1],
                    [{"nodeName": name, "devices": _devices(rng, n)} for n in (1, 2)],
                )  # fmt: skip
                older, newer = slices
                older["spec"]["pool"] |= {"generation": 1, "resourceSliceCount": 1}
                newer["spec"]["pool"] |= {"resourceSliceCount": rng.choice([1, 2])}
                if rng.random() < 0.3:
                    newer["spec"]["nodeName"] = rng.choice(world.nodes)["metadata"]["name"]
