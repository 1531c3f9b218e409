"""What a claim requests, and devices that a claim has already."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.features.claims.supply import (
    DRIVERS,
    GROUP,
    KEYS,
    KINDS,
    ROOTS,
    list_devices,
    make_config,
)
from tests.differential.worlds import World

Json = dict[str, Any]
CLASSES = ("class-a", "class-a", "class-a", "class-b", "any", "any", "any", "big-a")
_ATTRIBUTES = (
    *["std.example/root"] * 4,
    *(f"{DRIVERS[0]}/{name}" for name in ("kind", "numa", "firmware", "serial")),
    f"{DRIVERS[1]}/kind",
)


def make_claim(space: str, name: str, devices: Json) -> Json:
    return {
        "apiVersion": GROUP,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": space},
        "spec": {"devices": devices},
    }


def request_plain(rng: Random, _world: World) -> Json:
    """Exact requests and choices, with selectors and constraints."""
    requests = [_request(rng, i) for i in range(rng.choice([1, 1, 1, 1, 2, 3]))]
    devices: Json = {"requests": requests}
    names = [one["name"] for one in requests]
    names += [
        f"{one['name']}/{sub['name']}" for one in requests for sub in one.get("firstAvailable", ())
    ]
    if rng.random() < 0.35:
        devices["constraints"] = [_constraint(rng, names) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.2:
        devices["config"] = [
            make_config(rng) | ({"requests": [rng.choice(names)]} if rng.random() < 0.7 else {})
            for _ in range(rng.choice([1, 2]))
        ]
    return devices


def _constraint(rng: Random, names: list[str]) -> Json:
    one: Json = {rng.choice(["matchAttribute", "distinctAttribute"]): rng.choice(_ATTRIBUTES)}
    if rng.random() < 0.5:
        one["requests"] = rng.sample(names, rng.randint(1, len(names)))
    return one


def _request(rng: Random, number: int) -> Json:
    name = f"r{number}"
    if rng.random() < 0.25:
        options = [{"name": f"o{i}"} | wish(rng) for i in range(rng.randint(1, 3))]
        return {"name": name, "firstAvailable": options}
    return {"name": name, "exactly": wish(rng)}


def wish(rng: Random, classes: tuple[str, ...] = CLASSES) -> Json:
    found: Json = {"deviceClassName": rng.choice(classes)}
    if rng.random() < 0.12:
        found["allocationMode"] = "All"
    else:
        found |= {"allocationMode": "ExactCount", "count": rng.choice([1, 1, 1, 1, 2, 3])}
    if rng.random() < 0.2:
        found["selectors"] = [{"cel": {"expression": expression(rng)}}]
    return found


def expression(rng: Random) -> str:
    """A selector that fails on no device."""
    driver = rng.choice(DRIVERS)
    own = f'device.attributes["{driver}"]'
    size = f'device.capacity["{driver}"].?memory.orValue(quantity("80Gi"))'
    return rng.choice([
        f'{own}.?kind.orValue("") == "{rng.choice(KINDS)}"',
        f'"numa" in {own} && {own}.numa == {rng.randint(0, 1)}',
        f'!("fast" in {own}) || {own}.fast',
        f'device.attributes["std.example"].?root.orValue("") == "{rng.choice(ROOTS)}"',
        f'{size}.compareTo(quantity("{rng.choice(["16Gi", "40Gi"])}")) >= 0',
    ])  # fmt: skip


def request_parts(rng: Random, _world: World) -> Json:
    """Parts of cards by their profiles."""
    requests = []
    for i in range(rng.choice([1, 1, 2, 3])):
        profile = rng.choice(["whole", "one", "one", "two", "four"])
        text = f'device.attributes["{DRIVERS[0]}"].?profile.orValue("") == "{profile}"'
        one: Json = {"deviceClassName": "class-a", "count": rng.choice([1, 1, 1, 2])}
        requests.append(
            {"name": f"r{i}", "exactly": one | {"selectors": [{"cel": {"expression": text}}]}}
        )
    devices: Json = {"requests": requests}
    if rng.random() < 0.3:
        kind = rng.choice(["matchAttribute", "matchAttribute", "distinctAttribute"])
        devices["constraints"] = [{kind: "std.example/root"}]
    return devices


def request_shares(rng: Random, _world: World) -> Json:
    """Amounts of devices that several claims may have."""
    requests = []
    for i in range(rng.choice([1, 1, 2])):
        amounts = {"cores": rng.choice(["0", "5", "10", "11", "20", "30", "35", "41", "600m"])}
        if rng.random() < 0.3:
            amounts["memory"] = rng.choice(["512Mi", "1Gi", "5Gi", "1537Mi", "17Gi"])
        one = wish(rng, ("class-b", "class-b", "any"))
        if rng.random() < 0.85:
            one["capacity"] = {"requests": amounts}
        requests.append({"name": f"r{i}", "exactly": one})
    devices: Json = {"requests": requests}
    if rng.random() < 0.2:
        devices["constraints"] = [{"distinctAttribute": f"{DRIVERS[1]}/serial"}]
    return devices


def toleration(rng: Random) -> Json:
    found: Json = {"operator": rng.choice(["Exists", "Equal"])}
    if found["operator"] == "Equal" or rng.random() < 0.7:
        found["key"] = rng.choice(KEYS)
    if found["operator"] == "Equal":
        found["value"] = rng.choice(["", "yes"])
    if rng.random() < 0.3:
        found["effect"] = rng.choice(["NoSchedule", "NoExecute"])
    return found


def list_wishes(devices: Json) -> list[Json]:
    """Each request that is one, and each alternative."""
    return [
        leaf
        for one in devices["requests"]
        for leaf in (one.get("firstAvailable") or [one["exactly"]])
    ]


def give(rng: Random, world: World, claim: Json) -> None:
    """Write into a claim that it has a device or two, without asking whether it may."""
    there = list(list_devices(world))
    if rng.random() < 0.95:
        drawn = _list_drawn(world)
        there = [one for one in there if _pool(one[0]) not in drawn]
    if not there:
        return
    request = claim["spec"]["devices"]["requests"][0]
    name = request["name"]
    if options := request.get("firstAvailable"):
        name += f"/{rng.choice(options)['name']}"
    chosen = rng.sample(there, min(len(there), rng.choice([1, 1, 2])))
    results = [
        _give_device(rng, name, *one)
        for i, one in enumerate(chosen)
        if not i or "consumesCounters" not in one[1]
    ]
    # Without a time kube-scheduler would write one, which the API server refuses.
    allocation: Json = {
        "devices": {"results": results}, "allocationTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    if (selector := _select(*chosen[0])) is not None:
        allocation["nodeSelector"] = selector
    claim["status"] = {"allocation": allocation}
    if rng.random() < 0.25:
        _let_get_ready(rng, claim["status"], results[0])
    users = 256 if rng.random() < 0.03 else rng.choice([0, 0, 1, 1, 2])
    if users:
        claim["status"]["reservedFor"] = [
            {"resource": "pods", "name": f"user-{i}", "uid": f"user-{i}"} for i in range(users)
        ]


def _give_device(rng: Random, name: str, spec: Json, device: Json) -> Json:
    result: Json = {
        "request": name,
        "driver": spec["driver"],
        "pool": spec["pool"]["name"],
        "device": device["name"],
    }
    if device.get("allowMultipleAllocations"):
        held = {key: "5" for key in device.get("capacity", ()) if rng.random() < 0.9}
        share = f"{rng.getrandbits(32):08x}-0000-4000-8000-000000000000"
        result |= {"shareID": share, "consumedCapacity": held}
    return result


def _let_get_ready(rng: Random, status: Json, result: Json) -> None:
    """Let a device of a claim be ready, or fail."""
    result |= {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    conditions = [
        {
            "type": name,
            "status": "True",
            "reason": "Told",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for name in rng.choice([["Ready"], ["Ready"], ["Failed"], ["Ready", "Failed"]])
    ]
    named = {key: result[key] for key in ("driver", "pool", "device", "shareID") if key in result}
    status["devices"] = [named | {"conditions": conditions}]


def _list_drawn(world: World) -> set[tuple[str, str]]:
    """The pools of which counters are drawn already."""
    drawing = {
        (*_pool(spec), device["name"])
        for spec, device in list_devices(world)
        if "consumesCounters" in device
    }
    return {
        (result["driver"], result["pool"])
        for one in world.others
        if one["kind"] == "ResourceClaim" and "status" in one
        for result in one["status"]["allocation"]["devices"]["results"]
        if (result["driver"], result["pool"], result["device"]) in drawing
    }


def _pool(spec: Json) -> tuple[str, str]:
    return spec["driver"], spec["pool"]["name"]


def _select(spec: Json, device: Json) -> Json | None:
    where = spec if "perDeviceNodeSelection" not in spec else device
    if name := where.get("nodeName"):
        here = {"key": "metadata.name", "operator": "In", "values": [name]}
        return {"nodeSelectorTerms": [{"matchFields": [here]}]}
    found: Json | None = where.get("nodeSelector")
    return found
