"""Random pools of devices for the worlds of the allocator's tests: resource slices as drivers publish them."""

from random import Random
from typing import Any

Json = dict[str, Any]
NODE, OTHER = "n0", "n1"
DRIVERS = ("a.example", "b.example")
KINDS = ("big", "small")
KEYS = ("fragile", "spare")
# Profile, how much of a card's counters it draws, and where it may start.
PARTS = (("one", 1, range(7)), ("two", 2, (0, 2, 4)), ("three", 4, (0, 4)), ("four", 4, (0,)))


def draw_pool(random: Random, number: int, aspects: set[str]) -> list[Json]:
    """All slices of a pool, whose driver and name are drawn too."""
    driver = random.choice(DRIVERS)
    name = f"p{number}"
    if {"parts", "later"} & aspects and random.random() < 0.7:
        slices = _cards_in_parts(random, driver, name)
    else:
        devices = [
            _device(random, i, aspects) for i in range(random.choice([1, 2, 3, 4, 5, 6, 8, 12]))
        ]
        if random.random() < 0.2:
            random.shuffle(devices)
        cut = random.randint(1, len(devices)) if random.random() < 0.3 else len(devices)
        slices = [_slice(driver, name, part) for part in (devices[:cut], devices[cut:]) if part]
        if "counters" in aspects:
            slices.append(_counters(random, slices))
    _say_where(random, slices, aspects)
    for i, one in enumerate(slices):
        one["metadata"] = {"name": f"{name}-{driver[0]}-{len(slices) - i if number % 2 else i}"}
        one["spec"]["pool"] |= {"generation": 2, "resourceSliceCount": len(slices)}
    if "binding" in aspects and random.random() < 0.5:
        _bind(random, slices)
    if "changes" in aspects:
        slices = _change(random, slices)
    if "mistakes" in aspects and random.random() < 0.3:
        _mistake(random, slices)
    if "later" in aspects and random.random() < 0.5:
        _use_later(random, slices)
    return slices


def _slice(driver: str, pool: str, devices: list[Json]) -> Json:
    return {"spec": {"driver": driver, "pool": {"name": pool}, "devices": devices}}


def _device(random: Random, number: int, aspects: set[str]) -> Json:
    attributes: Json = {
        "kind": {"string": random.choice(KINDS)},
        "numa": {"int": random.randint(0, 1)},
        "fast": {"bool": random.random() < 0.5},
        "firmware": {"version": random.choice(["1.0.0", "1.1.0"])},
        "std.example/root": {"string": random.choice(["r0", "r1", "r2"])},
        "serial": {"int": number},
    }
    if "gaps" in aspects and random.random() < 0.3:
        del attributes[random.choice(sorted(attributes))]
    if "broken" in aspects and random.random() < 0.2:
        name = random.choice(["kind", "numa", "firmware"])
        attributes[name] = {"version": "1.2"} if name == "firmware" else {}
    if "types" in aspects and random.random() < 0.4:
        attributes["numa"] = random.choice([{"string": "0"}, {"bool": True}, {"version": "1.0.0"}])
    device: Json = {
        "name": f"d{number}",
        "attributes": attributes,
        "capacity": {"memory": {"value": random.choice(["16Gi", "40Gi", "80Gi"])}},
    }
    if "shares" in aspects and random.random() < 0.8:
        device |= {"allowMultipleAllocations": True, "capacity": _shared(random)}
    if "taints" in aspects and random.random() < 0.5:
        device["taints"] = [draw_taint(random) for _ in range(random.randint(1, 2))]
    return device


def _shared(random: Random) -> Json:
    """Capacities with each kind of policy; one may have none, or the device none at all."""
    policies: list[Json] = [
        {},
        {"requestPolicy": {"default": "10", "validRange": {"min": "10", "max": "60", "step": "20"}}},
        {"requestPolicy": {"default": "5", "validRange": {"min": "5"}}},
        {"requestPolicy": {"default": "10", "validRange": {"min": "0", "max": "100"}}},
        {"requestPolicy": {"default": "20", "validValues": ["20", "40", "50"]}},
        {"requestPolicy": {"default": "500m", "validRange": {"min": "500m", "step": "250m"}}},
        {"requestPolicy": {"default": "0"}},
    ]  # fmt: skip
    capacity: Json = {"cores": {"value": random.choice(["40", "100"])} | random.choice(policies)}
    if random.random() < 0.5:
        step = {"default": "4Gi", "validRange": {"min": "1Gi", "max": "16Gi", "step": "1Gi"}}
        capacity["memory"] = {"value": random.choice(["8Gi", "16Gi"]), "requestPolicy": step}
    return capacity if random.random() < 0.9 else {}


def draw_taint(random: Random) -> Json:
    return {
        "key": random.choice(KEYS),
        "value": random.choice(["", "yes"]),
        "effect": random.choice(["NoSchedule", "NoExecute", "None"]),
    }


def _counters(random: Random, slices: list[Json]) -> Json:
    """Counters of one to two sets that some of the devices draw on; the slice that has them."""
    sets = [f"s{i}" for i in range(random.randint(1, 2))]
    for one in slices:
        for device in one["spec"]["devices"]:
            drawn = [
                {
                    "counterSet": name,
                    "counters": {
                        key: {"value": str(random.randint(1, 3))}
                        for key in random.sample(["x", "y"], random.randint(1, 2))
                    },
                }
                for name in sets
                if random.random() < 0.6
            ]
            if drawn:
                device["consumesCounters"] = drawn
    spec = slices[0]["spec"]
    given = {key: {"value": str(random.randint(1, 6))} for key in ("x", "y")}
    shared = [{"name": name, "counters": given} for name in sets]
    return {
        "spec": {"driver": spec["driver"], "pool": dict(spec["pool"]), "sharedCounters": shared}
    }


def _cards_in_parts(random: Random, driver: str, pool: str) -> list[Json]:
    """Cards that are whole or cut into parts, each part with its place, as drivers of such cards publish them."""
    devices, sets = [], []
    for card in range(random.randint(1, 2)):
        places = {f"place-{i}": {"value": "1"} for i in range(8)}
        sets.append({"name": f"card-{card}", "counters": {"units": {"value": "7"}, **places}})
        devices.append(_part(card, "whole", 7, range(8)))
        kept = random.sample(PARTS, random.randint(1, 2))
        devices += [
            _part(card, profile, min(size, 3), range(start, start + size))
            for profile, size, starts in kept
            for start in starts[:4]
        ]
    devices.sort(key=lambda device: str(device["name"]))
    counters = {"spec": {"driver": driver, "pool": {"name": pool}, "sharedCounters": sets}}
    return [_slice(driver, pool, devices[:12]), counters]


def _part(card: int, profile: str, units: int, places: range) -> Json:
    drawn = {"units": {"value": str(units)}, **{f"place-{i}": {"value": "1"} for i in places}}
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


def _say_where(random: Random, slices: list[Json], aspects: set[str]) -> None:
    how = "name"
    if "places" in aspects:
        how = random.choice(["name", "selector", "all", "device", "device", "other", "mixed"])
    for one in slices:
        _for_nodes(random, one, random.choice(["name", "all"]) if how == "mixed" else how)


def _for_nodes(random: Random, one: Json, how: str) -> None:
    spec = one["spec"]
    if how != "device":
        spec |= _chooser(random, how)
        return
    spec["perDeviceNodeSelection"] = True
    ways = ["other"] if random.random() < 0.3 else ["name", "selector", "all", "other"]
    for device in spec.get("devices", ()):
        device.update(_chooser(random, random.choice(ways)))


def _chooser(random: Random, how: str) -> Json:
    zone = {
        "key": "zone",
        "operator": "In",
        "values": random.choice([["z0"], ["z1"], ["z0", "z1"]]),
    }
    here = {"key": "metadata.name", "operator": "In", "values": [NODE]}
    terms: list[Json] = [
        {"matchExpressions": [zone]},
        {"matchExpressions": [zone, {"key": "rack", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["9"]}]},
        {"matchFields": [here]},
        {"matchExpressions": [zone], "matchFields": [here]},
        {},
    ]
    by: dict[str, Json] = {
        "name": {"nodeName": NODE},
        "other": {"nodeName": OTHER},
        "all": {"allNodes": True},
        "selector": {"nodeSelector": {"nodeSelectorTerms": [random.choice(terms)]}},
    }
    return by[how]


def _bind(random: Random, slices: list[Json]) -> None:
    for one in slices:
        for device in one["spec"].get("devices", ()):
            if random.random() < 0.5:
                device["bindsToNode"] = True
            if random.random() < 0.5:
                device["bindingConditions"] = ["Ready"]
                device["bindingFailureConditions"] = ["Failed"]


def _change(random: Random, slices: list[Json]) -> list[Json]:
    """The driver is in the midst of a change: what is old is still there, or what is new is not there yet."""
    how = random.choice(["old", "missing", "newer elsewhere", "surplus", "newer here"])
    spec = slices[-1]["spec"]
    if how == "missing":
        for one in slices:
            one["spec"]["pool"]["resourceSliceCount"] += 1
        return slices
    device = {"name": "d0", "attributes": {"kind": {"string": "big"}}}
    more = _slice(spec["driver"], spec["pool"]["name"], [device])
    more["metadata"] = {"name": f"{spec['pool']['name']}-more"}
    place, generation = {
        "old": ({"nodeName": NODE}, 1),
        "newer elsewhere": ({"nodeName": OTHER}, 3),
        "newer here": ({"nodeName": NODE}, 3),
        "surplus": ({"nodeName": NODE}, 2),
    }[how]
    more["spec"] |= place
    more["spec"]["pool"] |= {"generation": generation, "resourceSliceCount": 1}
    if how == "newer elsewhere" and random.random() < 0.5:
        for one in slices:
            one["spec"]["pool"]["resourceSliceCount"] += 1
    return random.sample([*slices, more], len(slices) + 1)


def _mistake(random: Random, slices: list[Json]) -> None:
    with_devices = [one for one in slices if one["spec"].get("devices")]
    devices = with_devices[0]["spec"]["devices"]
    with_sets = [one for one in slices if "sharedCounters" in one["spec"]]
    what = random.choice(["twice", "unknown set", "unknown counter", "set twice"])
    if what == "set twice" and with_sets:
        sets = with_sets[0]["spec"]["sharedCounters"]
        sets.append(sets[0])
    elif what == "unknown counter" and with_sets:
        name = with_sets[0]["spec"]["sharedCounters"][0]["name"]
        drawn = {"counterSet": name, "counters": {"none": {"value": "1"}}}
        devices[0]["consumesCounters"] = [drawn]
    elif what == "unknown set":
        drawn = {"counterSet": "none", "counters": {"x": {"value": "1"}}}
        devices[-1]["consumesCounters"] = [drawn]
    else:
        devices.append(dict(devices[0]))


def _use_later(random: Random, slices: list[Json]) -> None:
    """What only later versions know."""
    one = next(one for one in slices if one["spec"].get("devices"))
    drawn = [
        draw for device in one["spec"]["devices"] for draw in device.get("consumesCounters", ())
    ]
    if random.random() < 0.4:
        one["spec"]["skipNodeOperations"] = ["NodePrepareResources"]
    if drawn and random.random() < 0.7:
        for draw in drawn:
            if groups := random.sample(["g0", "g1", "g2"], random.choice([0, 1, 1, 2])):
                draw["compatibilityGroups"] = groups
    if random.random() < 0.6:
        for device in one["spec"]["devices"]:
            roots = random.sample(["r0", "r1", "r2"], random.randint(1, 2))
            device.setdefault("attributes", {})["std.example/root"] = {"strings": roots}
