"""Groups on the engine alone: a gang that fits, room that is made for a large one, and many that wait.

The shapes are those of KAI's own benchmarks (kai-scheduler, test/e2e/scale): a gang of 512 pods with two GPUs each on
4 zones of 8 blocks of 8 racks of 2 nodes, and one job that takes half of a full cluster. KAI's published times for the
second are 8.97 s at 500 nodes, and over 40 minutes at 1,000. The row ``topology`` is Kueue's issue #13148: 2,000 nodes,
and a workload with a required topology for which 700 workloads have to go. Kueue took 40 s for such a decision. The row
``beside`` says how long plain pods wait for their decision while that search goes on again and again.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.floors import Floor
from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.api.groups.objects import KubePodGroup, KueueTopology
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube import heap
from scheduler.kube.slices import Slice

_ROUNDS = 7
_GANG, _WAITING, _QUICK_WAITING = 512, 10_000, 1_000
_UNLIMITED = Unlimited()
_LEVELS = ("zone", "block", "rack")
_CARDS = 8
# What Kueue's Topology says: two zones of 1,000 nodes in blocks of 50.
_TAS_LEVELS, _TAS_NODES = ("zone", "block", names.HOSTNAME), (1_000, 50, 1)
# A low workload has five pods with two GPUs each, so 700 of them are on 875 nodes.
_LOW_PODS, _LOW_GPUS, _LOW_A_ZONE, _TAS_GROUPS, _TAS_PODS = 5, 2, 800, 700, 875
_CALLS_MAX = 1_000
_SECONDS_BETWEEN_PLAIN_PODS = 0.005
FLOORS = (
    Floor("gang.512.*.ms", at_most=20),
    Floor("gang.5000.*.ms", at_most=60),
    Floor("reclaim.500.*.ms", at_most=100),
    Floor("reclaim.1000.*.ms", at_most=300),
    Floor("topology.ms", at_most=100),
    Floor("topology.longest_ms", at_most=10),
    Floor("reclaim.*.*.longest_ms", at_most=10),
    Floor("beside.p99_ms", at_most=1_000),
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
        "topology": _reclaim_zone(),
        "beside": _wait_beside(),
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
    took: list[list[float]] = []
    n_victims = 0
    for turn in range(_ROUNDS):
        uids = _see_gang(engine, f"gang-{turn}", wanted, gpus=_CARDS, priority=100)
        slices, victims = _search(engine)
        took.append(slices)
        n_victims = len(victims)
        for uid in uids:
            engine.handle(events.Gone("Pod", uid), 0.0)
        for uid in victims:
            engine.handle(events.EvictFailed(uid, "the bench goes on"), 0.0)
    return _sum_up(took) | {"victims": n_victims}


def _reclaim_zone() -> dict[str, float]:
    """Milliseconds until 700 workloads of a full zone are told to go for one that requires a zone; it fits then.

    No two of the workloads have the same priority.
    """
    engine = _make_topology()
    took: list[list[float]] = []
    for turn in range(_ROUNDS):
        uids = _see_workload(
            engine, f"high-{turn}", [None] * _TAS_PODS, gpus=_CARDS, priority=1_000
        )
        slices, victims = _search(engine)
        took.append(slices)
        if turn < _ROUNDS - 1:
            _take_back(engine, uids, victims, turn)
    _check_whole(victims)
    for uid in victims:
        engine.handle(events.Gone("Pod", uid), 0.0)
    _, outcome = _decide(engine)
    zones = {int(bind.node.removeprefix("node-")) // _TAS_NODES[0] for bind in outcome.binds}
    if len(outcome.binds) != _TAS_PODS or len(zones) != 1:
        raise RuntimeError(f"{len(outcome.binds)} of {_TAS_PODS} pods fit, in {len(zones)} zones")
    return _sum_up(took) | {"victims": len(victims)}


def _wait_beside() -> dict[str, float]:
    """Milliseconds from the arrival of a plain pod to its decision, while a zone is searched once after the other."""
    engine = _make_topology()
    clock, waits = time.thread_time, []
    for turn in range(_ROUNDS):
        uids = _see_workload(
            engine, f"high-{turn}", [None] * _TAS_PODS, gpus=_CARDS, priority=1_000
        )
        came: dict[str, float] = {}
        victims: list[str] = []
        n_calls, next_at = 0, clock()
        while came or not victims:
            # As in the operator, events wait while a decision has paused.
            while not engine.is_deciding and not victims and next_at <= clock():
                name = f"plain-{turn}-{next_at}"
                came[name] = next_at
                engine.handle(events.Seen(_pod(name, gpus=0)), 0.0)
                next_at += _SECONDS_BETWEEN_PLAIN_PODS
            outcome = engine.decide(0.0, Slice(clock, 2**62))
            waits += [clock() - came.pop(bind.uid) for bind in outcome.binds]
            victims += [uid for evict in outcome.evicts for uid in evict.victims]
            n_calls += 1
            if n_calls > _CALLS_MAX:
                raise RuntimeError(f"the search goes on after {_CALLS_MAX} calls")
        _take_back(engine, uids, victims, turn)
    percentiles = statistics.quantiles(waits, n=100)
    return {
        "pods": len(waits),
        "p50_ms": round(percentiles[49] * 1e3, 2),
        "p99_ms": round(percentiles[98] * 1e3, 2),
    }


def _take_back(engine: Engine, uids: list[str], victims: list[str], turn: int) -> None:
    """Let the workload go for which room was made, and its victims stay."""
    for uid in uids:
        engine.handle(events.Gone("Pod", uid), 0.0)
    for uid in victims:
        engine.handle(events.EvictFailed(uid, "the bench goes on"), 0.0)
    _settle(engine, f"waiting-{turn}")


def _sum_up(took: Sequence[Sequence[float]]) -> dict[str, float]:
    """Milliseconds of a search and of its longest slice: the medians of the rounds after the first; and how many slices."""
    return {
        "ms": round(statistics.median(map(sum, took[1:])) * 1e3, 2),
        "longest_ms": round(statistics.median(map(max, took[1:])) * 1e3, 2),
        "slices": max(map(len, took)),
    }


def _settle(engine: Engine, name: str) -> None:
    """Take over that 3,500 evictions have failed, which is no part of the next search.

    A pod that fits nowhere asks whom it could evict, so that the groups of those that stay are looked at as well.
    """
    engine.handle(events.Seen(_pod(name, gpus=_CARDS + 1, priority=1)), 0.0)
    _decide(engine)
    engine.handle(events.Gone("Pod", name), 0.0)


def _make_topology() -> Engine:
    """Make an engine that knows two zones, each full of workloads no two of which have the same priority."""
    engine = Engine(Config(), is_shared=False, explains=False)
    spec = {"levels": [{"nodeLabel": level} for level in _TAS_LEVELS]}
    engine.handle(events.Seen(KueueTopology(wire.GuardedMeta(name="tas", uid="tas"), spec)), 0.0)
    for number in range(2 * _TAS_NODES[0]):
        node = _node(number)
        node.metadata.labels = {
            level: f"{level}-{number // size}"
            for level, size in zip(_TAS_LEVELS, _TAS_NODES, strict=True)
        }
        engine.handle(events.Seen(node), 0.0)
    on_node = _CARDS // _LOW_GPUS
    for group in range(2 * _LOW_A_ZONE):
        nodes = [_name((group * _LOW_PODS + i) // on_node) for i in range(_LOW_PODS)]
        priority = group % _LOW_A_ZONE
        _see_workload(engine, f"low-{group}", nodes, gpus=_LOW_GPUS, priority=priority)
    heap.freeze()
    return engine


def _search(engine: Engine) -> tuple[list[float], list[str]]:
    """Decide slice by slice, as the operator does; return the seconds of each slice, and who goes in the end."""
    took: list[float] = []
    gc.collect()
    gc.disable()
    while len(took) < _CALLS_MAX:
        began = time.thread_time()
        outcome = engine.decide(0.0, Slice(time.thread_time, 2**62))
        took.append(time.thread_time() - began)
        if outcome.plans:
            gc.enable()
            return took, [uid for evict in outcome.evicts for uid in evict.victims]
    raise RuntimeError(f"the search goes on after {_CALLS_MAX} calls")


def _check_whole(victims: list[str]) -> None:
    """Check that just the 700 workloads of a zone go that are least important, each as a whole."""
    n_gone = Counter(uid.rpartition("-")[0] for uid in victims)
    priorities = sorted(int(name.removeprefix("low-")) % _LOW_A_ZONE for name in n_gone)
    if priorities != list(range(_TAS_GROUPS)) or set(n_gone.values()) != {_LOW_PODS}:
        raise RuntimeError(f"{len(victims)} pods of {len(n_gone)} workloads go, not the least")


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
    outcome = engine.decide(now, _UNLIMITED)
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


def _see_workload(
    engine: Engine, name: str, nodes: Sequence[str | None], *, gpus: int, priority: int
) -> list[str]:
    """See a workload of Kueue's that requires a zone, its pods on these nodes; None for one that waits."""
    for number, node in enumerate(nodes):
        pod = _pod(f"{name}-{number}", gpus=gpus, priority=priority, node=node)
        pod.metadata.labels = {names.KUEUE_GROUP: name}
        pod.metadata.annotations = {
            names.KUEUE_TOTAL: str(len(nodes)),
            names.KUEUE_REQUIRED: _TAS_LEVELS[0],
        }
        engine.handle(events.Seen(pod), 0.0)
    return [f"{name}-{number}" for number in range(len(nodes))]


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
