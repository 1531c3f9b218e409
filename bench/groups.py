"""Groups on the engine alone: a gang that fits, room that is made for a large one, and many that wait.

The shapes are those of KAI's own benchmarks (kai-scheduler, test/e2e/scale): a gang of 512 pods with two GPUs each on
4 zones of 8 blocks of 8 racks of 2 nodes, and one job that takes half of a full cluster. KAI's published times for the
second are 8.97 s at 500 nodes, and over 40 minutes at 1,000.
"""

from __future__ import annotations

import gc
import statistics
import time
from typing import Any

from bench.floors import Floor
from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.api.groups.objects import KubePodGroup
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube import heap

_ROUNDS = 7
_GANG, _WAITING, _QUICK_WAITING = 512, 10_000, 1_000
_LEVELS = ("zone", "block", "rack")
_CARDS = 8
FLOORS = (
    Floor("gang.512.*.ms", at_most=20),
    Floor("gang.5000.*.ms", at_most=60),
    Floor("reclaim.500.*.ms", at_most=100),
    Floor("reclaim.1000.*.ms", at_most=300),
    Floor("waiting.ms_a_node_event", at_most=50),
)


def run(quick: bool) -> dict[str, Any]:
    sizes = (512,) if quick else (512, 5_000)
    return {
        "gang": {
            str(n): {level or "anywhere": _place_gang(n, level) for level in ("", "zone")}
            for n in sizes
        },
        "reclaim": {
            str(n): {"possible": _reclaim(n, n // 2), "impossible": _reclaim(n, n + 1)}
            for n in ((500,) if quick else (500, 1_000))
        },
        "waiting": _wake(_QUICK_WAITING if quick else _WAITING),
    }


def _place_gang(n_nodes: int, level: str) -> dict[str, float]:
    """Milliseconds to decide for a gang of 512 pods with two GPUs each: the median of the rounds after the first."""
    engine = _make_engine(n_nodes)
    took = []
    for turn in range(_ROUNDS):
        _see_gang(engine, f"gang-{turn}", _GANG, gpus=2, level=level)
        seconds, outcome = _decide(engine)
        if len(outcome.binds) != _GANG:
            raise RuntimeError(f"{len(outcome.binds)} of {_GANG} pods were bound")
        took.append(seconds)
        for bind in outcome.binds:
            engine.handle(events.BindDone(bind.uid), 0.0)
            engine.handle(events.Gone("Pod", bind.uid), 0.0)
    return {"ms": round(statistics.median(took[1:]) * 1e3, 2)}


def _reclaim(n_nodes: int, wanted: int) -> dict[str, float]:
    """Milliseconds to find room for a gang of whole nodes on a cluster full of low pods, and how many of these go."""
    engine = _make_engine(n_nodes)
    for number in range(n_nodes):
        engine.handle(events.Seen(_pod(f"low-{number}", gpus=_CARDS, node=_name(number))), 0.0)
    took, n_victims = [], 0
    for turn in range(_ROUNDS):
        uids = _see_gang(engine, f"gang-{turn}", wanted, gpus=_CARDS, priority=100)
        seconds, outcome = _decide(engine)
        took.append(seconds)
        victims = [uid for evict in outcome.evicts for uid in evict.victims]
        n_victims = len(victims)
        for uid in uids:
            engine.handle(events.Gone("Pod", uid), 0.0)
        for uid in victims:
            engine.handle(events.EvictFailed(uid, "the bench goes on"), 0.0)
    return {"ms": round(statistics.median(took[1:]) * 1e3, 2), "victims": n_victims}


def _wake(n_groups: int) -> dict[str, float]:
    """Milliseconds until all is decided after a node has come, while many groups wait that fit nowhere."""
    engine = _make_engine(64)
    for number in range(n_groups):
        _see_gang(engine, f"gang-{number}", 65, gpus=_CARDS)
    _decide(engine)
    took = []
    for turn in range(_ROUNDS):
        now = 20.0 * (1 + turn)
        engine.handle(events.Gone("Node", _name(0)), now)
        _decide(engine, now)
        engine.handle(events.Seen(_node(0)), now + 10.0)
        seconds, _ = _decide(engine, now + 10.0)
        took.append(seconds)
    return {"groups": n_groups, "ms_a_node_event": round(statistics.median(took) * 1e3, 2)}


def _decide(engine: Engine, now: float = 0.0) -> tuple[float, Outcome]:
    gc.collect()
    gc.disable()
    began = time.thread_time()
    outcome = engine.decide(now, Unlimited())
    seconds = time.thread_time() - began
    gc.enable()
    return seconds, outcome


def _make_engine(n_nodes: int) -> Engine:
    engine = Engine(Config(), is_shared=False, explains=False)
    for number in range(n_nodes):
        engine.handle(events.Seen(_node(number)), 0.0)
    heap.freeze()
    return engine


def _see_gang(
    engine: Engine, name: str, size: int, *, gpus: int, level: str = "", priority: int = 0
) -> list[str]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": size}}, "priority": priority}
    if level:
        spec["schedulingConstraints"] = {"topology": [{"key": level}]}
    meta = wire.Meta(name=name, namespace="default", uid=name)
    engine.handle(events.Seen(KubePodGroup(meta, spec)), 0.0)
    pods = [
        _pod(f"{name}-{number}", gpus=gpus, priority=priority, group=name) for number in range(size)
    ]
    for pod in pods:
        engine.handle(events.Seen(pod), 0.0)
    return [pod.metadata.uid for pod in pods]


def _name(number: int) -> str:
    return f"node-{number:05}"


def _node(number: int) -> wire.Node:
    """A node of KAI's tree: racks of two nodes, blocks of eight racks, zones of eight blocks."""
    domains = (number // 128, number // 16, number // 2)
    labels = {level: f"{level}-{at}" for level, at in zip(_LEVELS, domains, strict=True)}
    amounts: wire.Quantities = {"cpu": 64, "memory": "512Gi", "pods": 110, names.GPU: _CARDS}
    return wire.Node(
        wire.Meta(name=_name(number), uid=_name(number), labels=labels),
        status=wire.NodeStatus(allocatable=amounts),
    )


def _pod(
    name: str, *, gpus: int, priority: int = 0, node: str | None = None, group: str = ""
) -> wire.Pod:
    asked: wire.Quantities = {"cpu": 1, "memory": "1Gi", names.GPU: gpus}
    container = wire.Container("main", wire.Resources(asked, {names.GPU: gpus}))
    spec = wire.PodSpec(
        node_name=node, scheduler_name=names.SCHEDULER, priority=priority, containers=[container]
    )
    if group:
        spec.scheduling_group = {"podGroupName": group}
    return wire.Pod(wire.Meta(name=name, namespace="default", uid=name), spec)
