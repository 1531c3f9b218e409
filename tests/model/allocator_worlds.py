"""Random small worlds for the allocator of devices: a node, pools, classes, rules, claims with devices and claims without.

Each world has one to five aspects beside what is plain, so each meets every other. The same seed is the same world.
"""

from random import Random
from typing import Any

from tests.model.allocator_pools import DRIVERS, KEYS, KINDS, NODE, draw_pool, draw_taint

Json = dict[str, Any]
ASPECTS = (
    "admin",
    "all",
    "allocated",
    "alternatives",
    "binding",
    "broken",
    "changes",
    "claims",
    "configs",
    "counters",
    "distinct",
    "errors",
    "gaps",
    "gates",
    "later",
    "limits",
    "many",
    "match",
    "mistakes",
    "parts",
    "places",
    "refused",
    "rules",
    "selectors",
    "shares",
    "taints",
    "types",
)
# What meets in one rule, and so meets more often than by chance.
MEETING = (
    ("admin", "claims"),
    ("admin", "parts"),
    ("all", "distinct"),
    ("all", "match"),
    ("all", "changes", "places"),
    ("all", "mistakes", "places"),
    ("all", "shares"),
    ("allocated", "counters"),
    ("allocated", "parts"),
    ("allocated", "shares"),
    ("alternatives", "claims"),
    ("alternatives", "limits"),
    ("alternatives", "match"),
    ("changes", "places"),
    ("claims", "shares"),
    ("counters", "shares"),
    ("errors", "gaps"),
    ("counters", "gates", "later"),
    ("gates", "later", "many"),
    ("gates", "shares"),
    ("many", "parts"),
    ("many", "match"),
    ("many", "taints"),
    ("refused", "shares"),
    ("rules", "taints"),
)
# What kube-scheduler can do without settings, and what it can learn; derived attributes are not judged here.
NOW = (
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "PartitionableDevices",
    "PrioritizedList",
)
LATER = ("CompatibilityGroups", "ListTypeAttributes", "OptionalNodeOperations")
SHORT = ("kind", "numa", "fast", "firmware", "serial")


def aspects_of(seed: int) -> list[str]:
    random = Random(f"aspects {seed}")
    if random.random() < 0.3:
        return sorted(random.choice(MEETING))
    return sorted(random.sample(ASPECTS, random.choice([1, 2, 2, 2, 3, 5])))


def draw(seed: int) -> Json:
    random = Random(f"devices {seed}")
    aspects = set(aspects_of(seed))
    slices = [one for i in range(random.randint(1, 3)) for one in draw_pool(random, i, aspects)]
    random.shuffle(slices)
    node: Json = {"metadata": {"name": NODE}}
    if "gates" in aspects and random.random() < 0.5:
        node["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    node["metadata"]["labels"] = {"zone": "z0"} | ({"rack": "1"} if random.random() < 0.5 else {})
    count = random.choice([2, 2, 3]) if "claims" in aspects else 1
    return {
        "node": node,
        "slices": slices,
        "classes": _classes(random, aspects),
        "rules": [_rule(random, i) for i in range(random.randint(1, 2))]
        if "rules" in aspects
        else [],
        "claims": [_claim(random, i, slices, aspects) for i in range(count)],
        "allocated": _allocated(random, slices) if "allocated" in aspects else [],
        "features": _features(random) if "gates" in aspects else {},
    }


def _features(random: Random) -> Json:
    off = {name: False for name in NOW if random.random() < 0.15}
    return off | {name: True for name in LATER if random.random() < 0.5}


def _classes(random: Random, aspects: set[str]) -> list[Json]:
    of_driver = {f"class-{driver[0]}": [f'device.driver == "{driver}"'] for driver in DRIVERS}
    found = []
    for name, expressions in {**of_driver, "any": []}.items():
        spec: Json = {}
        if "selectors" in aspects and random.random() < 0.5:
            expressions.append(_expression(random, aspects))
        if expressions:
            spec["selectors"] = [{"cel": {"expression": one}} for one in expressions]
        if "configs" in aspects and random.random() < 0.7:
            spec["config"] = [_config(random) for _ in range(random.randint(1, 2))]
        found.append({"metadata": {"name": name}, "spec": spec})
    return found


def _config(random: Random) -> Json:
    parameters = {"speed": random.randint(1, 9)}
    return {"opaque": {"driver": random.choice(DRIVERS), "parameters": parameters}}


def _expression(random: Random, aspects: set[str]) -> str:
    driver = random.choice(DRIVERS)
    own = f'device.attributes["{driver}"]'
    guarded = [
        f'{own}.kind == "{random.choice(KINDS)}"',
        f"{own}.numa == {random.randint(0, 1)}",
        f"{own}.fast == {random.choice(['true', 'false'])}",
        f'device.attributes["std.example"].root == "{random.choice(["r0", "r1"])}"',
        f'device.capacity["{driver}"].memory.compareTo(quantity("{random.choice(["16Gi", "40Gi"])}")) >= 0',
    ]
    text = random.choice(guarded)
    if "errors" in aspects and random.random() < 0.4:
        return random.choice([text, f"{text} || {random.choice(guarded)}", "noSuchVar"])
    return f'device.driver == "{driver}" && {text}'


def _rule(random: Random, number: int) -> Json:
    chosen = {"driver": random.choice(DRIVERS), "pool": f"p{random.randint(0, 1)}", "device": "d0"}
    kept = {key: value for key, value in chosen.items() if random.random() < 0.4}
    spec: Json = {"taint": draw_taint(random)}
    if random.random() < 0.9:
        spec["deviceSelector"] = kept
    return {"metadata": {"name": f"rule-{number}"}, "spec": spec}


def _claim(random: Random, number: int, slices: list[Json], aspects: set[str]) -> Json:
    most = 4 if "many" in aspects else 2
    requests = [_request(random, i, slices, aspects) for i in range(random.randint(1, most))]
    names = [one["name"] for one in requests]
    names += [
        f"{one['name']}/{option['name']}"
        for one in requests
        for option in one.get("firstAvailable", ())
    ]
    devices: Json = {"requests": requests}
    constraints = [
        _constraint(random, kind, names, slices)
        for kind in ("match", "distinct")
        if kind in aspects
        for _ in range(random.randint(1, 2))
    ]
    if constraints:
        devices["constraints"] = constraints
    if "configs" in aspects:
        devices["config"] = [
            _config(random)
            | ({"requests": random.sample(names, 1)} if random.random() < 0.7 else {})
            for _ in range(random.randint(0, 2))
        ]
    claim = {"metadata": {"name": f"c{number}", "namespace": "ns"}, "spec": {"devices": devices}}
    if "refused" in aspects and "shares" not in aspects and random.random() < 0.4:
        _refuse(random, devices)
    return claim


def _constraint(random: Random, kind: str, names: list[str], slices: list[Json]) -> Json:
    driver = random.choice(slices)["spec"]["driver"]
    attribute = random.choice(["std.example/root", *(f"{driver}/{name}" for name in SHORT)])
    constraint: Json = {f"{kind}Attribute": attribute}
    if random.random() < 0.6:
        constraint["requests"] = random.sample(names, random.randint(1, len(names)))
    return constraint


def _request(random: Random, number: int, slices: list[Json], aspects: set[str]) -> Json:
    name = f"r{number}"
    if "alternatives" in aspects and random.random() < 0.7:
        options = [
            {"name": f"o{i}"} | _wish(random, slices, aspects, is_option=True)
            for i in range(random.randint(1, 3))
        ]
        return {"name": name, "firstAvailable": options}
    return {"name": name, "exactly": _wish(random, slices, aspects, is_option=False)}


def _wish(random: Random, slices: list[Json], aspects: set[str], *, is_option: bool) -> Json:
    present = [f"class-{one['spec']['driver'][0]}" for one in slices]
    wish: Json = {"deviceClassName": random.choice([*present, "any", "any", "class-b"])}
    if "all" in aspects and random.random() < 0.5:
        wish["allocationMode"] = "All"
    else:
        wish |= {"allocationMode": "ExactCount", "count": _count(random, slices, aspects)}
    if "admin" in aspects and not is_option and random.random() < 0.5:
        wish["adminAccess"] = True
    if {"selectors", "errors"} & aspects:
        wish["selectors"] = [
            {"cel": {"expression": _expression(random, aspects)}}
            for _ in range(random.randint(0, 2))
        ]
    if {"taints", "rules"} & aspects and random.random() < 0.6:
        wish["tolerations"] = [_toleration(random) for _ in range(random.randint(1, 2))]
    if "shares" in aspects and random.random() < 0.8:
        wish["capacity"] = {"requests": _amounts(random, aspects)}
    return wish


def _count(random: Random, slices: list[Json], aspects: set[str]) -> int:
    """As many as there are devices, or about as many, where the world is to be tight."""
    if "limits" in aspects and random.random() < 0.5:
        return random.choice([12, 20, 31, 32, 33])
    if random.random() < 0.2:
        there = sum(len(one["spec"].get("devices", ())) for one in slices)
        return max(1, min(7, there + random.randint(-2, 1)))
    return random.choice([1, 1, 1, 1, 1, 2, 2, 3])


def _toleration(random: Random) -> Json:
    toleration: Json = {"operator": random.choice(["Exists", "Equal"])}
    if toleration["operator"] == "Equal" or random.random() < 0.7:
        toleration["key"] = random.choice(KEYS)
    if toleration["operator"] == "Equal":
        toleration["value"] = random.choice(["", "yes"])
        if random.random() < 0.2:
            del toleration["operator"]
    if random.random() < 0.3:
        toleration["effect"] = random.choice(["NoSchedule", "NoExecute"])
    return toleration


def _amounts(random: Random, aspects: set[str]) -> Json:
    cores = ["0", "5", "10", "11", "20", "30", "35", "41", "60", "100", "101", "600m", "1500m"]
    if "refused" in aspects:
        cores = [*cores[:4], "-1", "1500u", "9223372036854775807", "9223372036854775808"]
    amounts = {"cores": random.choice(cores)}
    if random.random() < 0.4:
        amounts["memory"] = random.choice(["512Mi", "1Gi", "5Gi", "1537Mi", "17Gi"])
    if random.random() < 0.1:
        amounts[f"{DRIVERS[0]}/cores"] = "1"
    return amounts if random.random() < 0.9 else {}


def _refuse(random: Random, devices: Json) -> None:
    """A mistake that ends the attempt before any device is looked for, or that no other version makes."""
    request = random.choice(devices["requests"])
    wish = (
        random.choice(request["firstAvailable"])
        if "firstAvailable" in request
        else request["exactly"]
    )
    match random.choice(
        ["class", "no class", "mode", "selector", "constraint", "derived", "count"]
    ):
        case "class":
            wish["deviceClassName"] = "missing"
        case "no class":
            wish["deviceClassName"] = ""
        case "mode":
            wish["allocationMode"] = "Most"
        case "selector":
            wish.setdefault("selectors", []).append({})
        case "constraint":
            devices.setdefault("constraints", []).append({"requests": []})
        case "derived":
            wish["derivedAttributes"] = [{"name": "x.example/y", "expression": "1"}]
        case _:
            wish["count"] = random.choice([33, 1 << 40, 1 << 62])


def _allocated(random: Random, slices: list[Json]) -> list[Json]:
    """Claims that have devices: whole ones, shares, and those for administrators."""
    results: list[Json] = []
    for one in slices:
        spec = one["spec"]
        for device in spec.get("devices", ()):
            if random.random() < 0.7:
                continue
            result = {
                "request": "r",
                "driver": spec["driver"],
                "pool": spec["pool"]["name"],
                "device": device["name"],
            }
            if random.random() < 0.15:
                result["adminAccess"] = True
            elif device.get("allowMultipleAllocations") or random.random() < 0.05:
                held = {name: "5" for name in device.get("capacity", ()) if random.random() < 0.9}
                result |= {"shareID": f"share-{len(results)}", "consumedCapacity": held}
            results.append(result)
    return [
        {
            "metadata": {"name": f"held-{i}", "namespace": "ns"},
            "spec": {"devices": {}},
            "status": {"allocation": {"devices": {"results": part}}},
        }
        for i, part in enumerate((results[::2], results[1::2]))
        if part
    ]
