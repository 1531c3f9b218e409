"""What it costs to try one placement and undo it, next to the placement alone in the same run.

Everything that is decided as if (preemption, groups, what-if) tries placements, so trying and undoing may take
at most twice as long as placing: a pod at a time, on boards that are up to date.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.floors import Floor
from scheduler.api import hami, names, wire
from scheduler.api.cards import CardUse
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_SIZES = (1_000, 5_000)
_PODS, _ROUNDS = 200, 15
_CARDS = 8
_ASKED: dict[str, wire.Quantities] = {
    "plain": {"cpu": "100m", "memory": "128Mi"},
    "share": {"cpu": "100m", "memory": "128Mi", names.GPU: 1, names.GPU_MEMORY: 4000, names.GPU_CORES: 20},
}  # fmt: skip

FLOORS = (Floor("*.*.times_the_placement", at_most=2),)


def run(quick: bool) -> dict[str, Any]:
    return {
        str(n): {kind: _of(n, asked) for kind, asked in _ASKED.items()}
        for n in (_SIZES if not quick else _SIZES[:1])
    }


def _of(n_nodes: int, asked: wire.Quantities) -> dict[str, float]:
    """Median microseconds over the rounds, which take turns."""
    cluster = _cluster(n_nodes)
    cycle = Cycle(cluster, PolicyBook(Config()))
    pods = [_pod(cluster, i, asked) for i in range(_PODS)]
    cycle.schedule(pods)
    _forget(cluster)

    def placed() -> None:
        for pod in pods:
            cycle.schedule([pod])

    def tried() -> None:
        for pod in pods:
            with cluster.trial():
                cycle.schedule([pod])

    placing, trying = [], []
    for _ in range(_ROUNDS):
        placing.append(_microseconds(placed))
        _forget(cluster)
        cycle.could_place(pods[0])
        trying.append(_microseconds(tried))
    return {
        "placement_us": round(statistics.median(placing), 2),
        "tried_and_undone_us": round(statistics.median(trying), 2),
        "times_the_placement": round(statistics.median(trying) / statistics.median(placing), 2),
    }


def _microseconds(function: Callable[[], None]) -> float:
    """Per pod."""
    gc.collect()
    began = time.perf_counter_ns()
    function()
    return (time.perf_counter_ns() - began) / _PODS / 1000


def _cluster(n_nodes: int) -> Cluster:
    """Nodes of HAMi's with eight cards each, half of which hold a running pod."""
    cluster = Cluster()
    allocatable: wire.Quantities = {"cpu": 64, "memory": "256Gi", "pods": 250, names.GPU: 80}
    for i in range(n_nodes):
        register = [
            {"id": f"GPU-{i}-{k}", "count": 10, "devmem": 24576, "devcore": 100, "type": "NVIDIA A10",
             "mode": "hami-core", "health": True, "index": k}
            for k in range(_CARDS)
        ]  # fmt: skip
        meta = wire.Meta(
            name=f"node-{i:05}", uid=str(i), annotations={names.HAMI_REGISTER: json.dumps(register)}
        )
        cluster.see_node(wire.Node(meta, status=wire.NodeStatus(allocatable)))
        if i % 2:
            there = CardUse(f"GPU-{i}-0", 8000, 30)
            _pod(cluster, -i, {"cpu": "1", names.GPU: 1, names.GPU_MEMORY: 8000}, meta.name, there)
    return cluster


def _pod(
    cluster: Cluster, i: int, asked: wire.Quantities, node: str = "", *uses: CardUse
) -> PodRecord:
    container = wire.Container("main", wire.Resources(requests=asked, limits=asked))
    notes = hami.make_bind_annotations(node, (uses,), 1) if uses else None
    record = cluster.see_pod(
        wire.Pod(
            wire.Meta(name=f"p{i}", namespace="d", uid=str(i), annotations=notes),
            wire.PodSpec(scheduler_name=names.SCHEDULER, containers=[container], node_name=node or None),
        )
    )  # fmt: skip
    assert record is not None
    return record


def _forget(cluster: Cluster) -> None:
    for uid in list(cluster.pods):
        cluster.forget(uid)
