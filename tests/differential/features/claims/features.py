"""Claims that pods share or have for themselves, made by hand or from templates, and what may be wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.differential.features.claims import requests, supply
from tests.differential.worlds import ADMIN_SPACE, NAMESPACES, Feature, World

Json = dict[str, Any]
_Draw = Callable[[Random, World], Json]
_DELETED_AT = "2026-01-01T00:00:00Z"
_HELD = "held-"


def _plain_world(rng: Random, world: World) -> None:
    supply.add_classes(rng, world)
    supply.add_plain(rng, world)
    _hold(rng, world, requests.request_plain)


def _parts_world(rng: Random, world: World) -> None:
    supply.add_classes(rng, world)
    supply.add_parts(rng, world)
    _hold(rng, world, requests.request_parts)


def _shares_world(rng: Random, world: World) -> None:
    supply.add_classes(rng, world)
    supply.add_shares(rng, world)
    _hold(rng, world, requests.request_shares)


def _taints_world(rng: Random, world: World) -> None:
    supply.add_classes(rng, world)
    if not any(supply.list_devices(world)):
        supply.add_plain(rng, world)
    supply.add_taints(rng, world)


def _odd_world(rng: Random, world: World) -> None:
    supply.add_classes(rng, world)
    if not any(supply.list_devices(world)):
        supply.add_plain(rng, world)
    supply.add_mistakes(rng, world)


def _hold(rng: Random, world: World, draw: _Draw) -> None:
    """Claims of nobody in particular that have devices already."""
    n = sum(one["metadata"]["name"].startswith(_HELD) for one in world.others)
    for i in range(n, n + rng.randint(0, 3)):
        claim = requests.make_claim(rng.choice([*NAMESPACES]), f"{_HELD}{i}", draw(rng, world))
        requests.give(rng, world, claim)
        world.others.append(claim)
        _let_run(rng, world, claim)


def _let_run(rng: Random, world: World, claim: Json) -> None:
    """Let a pod that runs have a claim, if there is one."""
    meta = claim["metadata"]
    pods = [
        one
        for one in world.pods
        if one["metadata"]["namespace"] == meta["namespace"] and "resourceClaims" not in one["spec"]
    ]
    if not pods or "status" not in claim or rng.random() < 0.4:
        return
    pod = rng.choice(pods)
    pod["spec"]["resourceClaims"] = [{"name": "c0", "resourceClaimName": meta["name"]}]
    user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": "user-0"}
    claim["status"]["reservedFor"] = [user, *claim["status"].get("reservedFor", [])[1:]]


def _use(rng: Random, world: World, pod: Json, devices: Json) -> Json | None:
    """Let a pod have a claim of its own, or one that others may have; return the claim if it is new."""
    space, mine = pod["metadata"]["namespace"], pod["spec"].setdefault("resourceClaims", [])
    name = f"c{len(mine)}"
    shared = [
        one["metadata"]["name"]
        for one in world.others
        if one["kind"] == "ResourceClaim"
        and one["metadata"]["namespace"] == space
        and not any(one["metadata"]["name"] == each.get("resourceClaimName") for each in mine)
    ]
    if shared and rng.random() < 0.25:
        mine.append({"name": name, "resourceClaimName": rng.choice(shared)})
        return None
    claim = requests.make_claim(space, f"{pod['metadata']['name']}-{name}", devices)
    if rng.random() < 0.4:
        mine.append({"name": name, "resourceClaimTemplateName": "template"})
        _make_later(world, pod, name, claim)
    else:
        mine.append({"name": name, "resourceClaimName": claim["metadata"]["name"]})
        if rng.random() < 0.2:
            requests.give(rng, world, claim)
        world.others.append(claim)
    return claim


def _make_later(world: World, pod: Json, name: str, claim: Json | None) -> None:
    """As the controller does: it makes the claim for the pod, and tells the pod its name; None: none is needed."""
    status = pod.setdefault("status", {}).setdefault("resourceClaimStatuses", [])
    told = {"name": name}
    if claim is not None:
        world.claims.setdefault(pod["metadata"]["name"], []).append(claim)
        told["resourceClaimName"] = claim["metadata"]["name"]
    status.append(told)


def _plain(rng: Random, world: World, pod: Json) -> None:
    for _ in range(rng.choice([1, 1, 1, 2])):
        _use(rng, world, pod, requests.request_plain(rng, world))


def _parts(rng: Random, world: World, pod: Json) -> None:
    _use(rng, world, pod, requests.request_parts(rng, world))


def _shares(rng: Random, world: World, pod: Json) -> None:
    for _ in range(rng.choice([1, 1, 2])):
        _use(rng, world, pod, requests.request_shares(rng, world))


def _taints(rng: Random, world: World, pod: Json) -> None:
    """Tolerations of what the pod has, or of one claim more; and access for administrators, where the namespace has it."""
    devices = requests.request_plain(rng, world)
    for one in devices["requests"]:
        for wish in one.get("firstAvailable") or [one["exactly"]]:
            if rng.random() < 0.6:
                wish["tolerations"] = [
                    requests.toleration(rng) for _ in range(rng.choice([1, 1, 2]))
                ]
        is_admins = pod["metadata"]["namespace"] == ADMIN_SPACE
        if is_admins and "exactly" in one and rng.random() < 0.5:
            one["exactly"]["adminAccess"] = True
    _use(rng, world, pod, devices)


def _odd(rng: Random, world: World, pod: Json) -> None:
    space, mine = pod["metadata"]["namespace"], pod["spec"].setdefault("resourceClaims", [])
    name = f"c{len(mine)}"
    claim = requests.make_claim(
        space, f"{pod['metadata']['name']}-{name}", requests.request_plain(rng, world)
    )
    wish = requests.list_wishes(claim["spec"]["devices"])[0]
    match rng.randrange(10):
        case 0:
            mine.append({"name": name, "resourceClaimName": "missing"})
            return
        case 1:
            wish["deviceClassName"] = rng.choice(["missing", "none"])
        case 2:
            claim["metadata"] |= {
                "finalizers": ["example.com/keep"],
                "deletionTimestamp": _DELETED_AT,
            }
        case 3:
            # Somebody else's claim stands where the pod's own should.
            mine.append({"name": name, "resourceClaimTemplateName": "template"})
            _make_later(world, pod, name, None)
            pod["status"]["resourceClaimStatuses"][-1]["resourceClaimName"] = claim["metadata"][
                "name"
            ]
            world.others.append(claim)
            return
        case 4:
            # Nobody makes the claim, or none is needed.
            mine.append({"name": name, "resourceClaimTemplateName": "template"})
            if rng.random() < 0.5:
                _make_later(world, pod, name, None)
            return
        case 5:
            driver = rng.choice(supply.DRIVERS)
            text = f'device.attributes["{driver}"].kind == "big"'
            wish.setdefault("selectors", []).append({"cel": {"expression": text}})
        case 6:
            wish |= {"allocationMode": "All"}
            wish.pop("count", None)
        case 7:
            wish |= {"allocationMode": "ExactCount", "count": rng.choice([31, 33])}
    mine.append({"name": name, "resourceClaimName": claim["metadata"]["name"]})
    world.others.append(claim)


FEATURES = (
    Feature(name="device claims", world=_plain_world, pod=_plain),
    Feature(name="device parts", world=_parts_world, pod=_parts),
    Feature(name="device shares", world=_shares_world, pod=_shares),
    Feature(name="device taints", world=_taints_world, pod=_taints),
    Feature(name="odd device claims", world=_odd_world, pod=_odd),
)
