"""How long ``keel`` takes to learn anew, between two batches, from nodes that all differ and pods that all differ.

A tenant can make every pod ask a size of its own, and many extended resources; still nobody may wait for it.
"""

from __future__ import annotations

import random
import time
from typing import Any

from bench.floors import Floor
from scheduler.api import wire
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import objects
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

_NODES, _QUICK_NODES = 5_000, 1_000
_PODS = (100, 1_000, 5_000)
_RESOURCES = (0, 1, 30)
_TIMES = 5

FLOORS = (Floor("*.*.best_ms", at_most=50),)


def run(quick: bool) -> dict[str, Any]:
    """By how many extended resources there are, and by how many pods were seen."""
    n_nodes = _QUICK_NODES if quick else _NODES
    return {f"{n} extended": _of(n_nodes, n) for n in _RESOURCES}


def _of(n_nodes: int, n_resources: int) -> dict[str, dict[str, float]]:
    rng = random.Random(1)
    names = [f"example{i}.com/r" for i in range(n_resources)]
    cluster = Cluster()
    for i in range(n_nodes):
        there: wire.Quantities = {name: rng.randint(1, 10**6) for name in names}
        there |= {
            "cpu": f"{rng.randint(4_000, 200_000)}m",
            "memory": f"{rng.randint(8, 900_000)}Mi",
        }
        cluster.see_node(objects.make_node(f"n{i}", there | {"pods": rng.randint(30, 250)}, []))
    cycle = Cycle(cluster, PolicyBook(Config()))
    found, seen = {}, 0
    for total in _PODS:
        for number in range(seen, total):
            cluster.see_pod(_pod(rng, number, names))
        seen = total
        found[f"{total} pods"] = {
            "sizes_kept": float(len(cluster.demand.plain.list_counts())),
            "best_ms": _best(cycle),
        }
    return found


def _best(cycle: Cycle) -> float:
    """CPU time, of several turns after the first, which may compile."""
    took = []
    for _ in range(_TIMES + 1):
        began = time.thread_time()
        cycle.learn(anew=True)
        took.append(1000 * (time.thread_time() - began))
    return round(min(took[1:]), 1)


def _pod(rng: random.Random, number: int, names: list[str]) -> wire.Pod:
    asked: wire.Quantities = {
        name: rng.randint(1, 100) for name in rng.sample(names, rng.randint(len(names) // 6, len(names)))
    }  # fmt: skip
    asked |= {"cpu": f"{rng.randint(1, 9_000)}m", "memory": f"{rng.randint(1, 9_000)}Mi"}
    spec = wire.PodSpec(
        scheduler_name=Config().scheduler_name,
        containers=[wire.Container("main", wire.Resources(requests=asked))],
    )
    return wire.Pod(wire.Meta(name=f"p{number}", namespace="default", uid=f"u{number}"), spec)
