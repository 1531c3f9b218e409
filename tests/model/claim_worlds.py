"""Worlds of devices and claims, given to the engine: what it allocates on the one node that there is."""

import json
from typing import Any

import msgspec

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door.events import Seen
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make

Json = dict[str, Any]
_KINDS = (
    ("slices", objects.ResourceSlice),
    ("classes", objects.DeviceClass),
    ("rules", objects.DeviceTaintRule),
    ("allocated", objects.ResourceClaim),
    ("claims", objects.ResourceClaim),
)


def make_engine(world: Json, mode: Mode = Mode.KUBE_SCHEDULER) -> Engine:
    """Make an engine that has seen a world: its node, and a pod with all claims that are to be allocated."""
    engine = Engine(Config(placement=Placement(mode=mode)))
    meta = world["node"]["metadata"]
    engine.handle(Seen(make.node(name=meta["name"], labels=meta.get("labels"), cpu="64")), 0.0)
    for name, kind in _KINDS:
        seen: set[str] = set()
        for i, body in enumerate(world.get(name) or ()):
            found = _decode(body, kind, f"{name}-{i}")
            if found.metadata.name in seen:
                # The allocator never looks at these names; an API server has each once.
                found.metadata.name += f"-{i}"
                body["metadata"]["name"] = found.metadata.name
            seen.add(found.metadata.name)
            engine.handle(Seen(found), 0.0)
    engine.handle(Seen(make_pod(world)), 0.0)
    return engine


def make_pod(world: Json) -> wire.Pod:
    """Make the pod that has the claims of a world."""
    claims = world.get("claims") or []
    namespace = claims[0]["metadata"].get("namespace", "") if claims else ""
    pod = make.pod(name="asking", namespace=namespace, cpu="1")
    pod.spec.resource_claims = [
        wire.PodClaim(f"entry-{i}", one["metadata"]["name"]) for i, one in enumerate(claims)
    ]
    return pod


def allocate(world: Json, mode: Mode = Mode.KUBE_SCHEDULER) -> list[Json] | None:
    """Return what each claim of a world is allocated on its node, with all share ids alike; None if they do not fit."""
    engine = make_engine(world, mode)
    outcome = engine.decide(1.0, Unlimited())
    if not outcome.binds:
        return None
    found = [json.loads(one.allocation) for one in outcome.binds[0].allotted]
    for one in found:
        for result in one["devices"]["results"]:
            if "shareID" in result:
                result["shareID"] = "share"
    return found


def _decode(body: Json, kind: type[Any], name: str) -> Any:
    found = msgspec.convert(body, kind)
    found.metadata.uid = found.metadata.uid or name
    return found
