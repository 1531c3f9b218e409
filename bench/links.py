"""The choice of 4 of 16 linked cards: by the kernel, on nodes that all differ, and by listing all sets as HAMi does.

Both are compiled, choose the same cards, and are called from Python once a node. And the score of a node by what was chosen,
for all nodes in one call: it has the choice in it.
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
from numba import njit

from bench.floors import Floor
from scheduler.api import names
from scheduler.api.cards import Card
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import objects
from scheduler.kernels import place
from scheduler.kernels.devices import choose
from scheduler.schema import empty
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from tests import make

_CARDS, _WANTED, _NODES = 16, 4, 2_000
_SCORES = (10, 20, 30, 40, 50, 60, 160, 260, 460, 660)

FLOORS = (
    Floor("microseconds_a_node", at_most=20),
    Floor("scoring_microseconds_a_node", at_most=20),
)


def run(quick: bool) -> dict[str, Any]:
    """Measure both on the same nodes."""
    rng, cluster = random.Random(1), Cluster()
    n = _NODES // 10 if quick else _NODES
    matrices = []
    for i in range(n):
        scores = [[0] * _CARDS for _ in range(_CARDS)]
        for a in range(_CARDS):
            for b in range(a):
                scores[a][b] = scores[b][a] = rng.choice(_SCORES)
        matrices.append(np.array(scores, np.int64))
        cluster.see_node(_make_node(f"node-{i}", scores))
    annotations = {names.HAMI_GPU_POLICY: "topology-aware"}
    record = cluster.see_pod(make.pod(gpu=_WANTED, annotations=annotations))
    assert record is not None
    cycle = Cycle(cluster, PolicyBook(Config()))
    cycle.learn()
    cycle._begin()
    key = cycle._make_key(record)
    assert key is not None
    shape = cycle.boards.get_shape(key)
    cycle.boards.refresh(shape)
    world = cycle.boards.get_world(shape)
    tables, s = world.tables, world.scratch
    nodes, cards = tables.nodes, tables.cards
    # Kernels are loaded with their first call; what is read of each node is not.
    choose.choose_devices(nodes, cards, shape.ask, 0, s)
    seconds, found = 0.0, []
    for row in range(n):
        began = time.thread_time()
        choose.choose_devices(nodes, cards, shape.ask, row, s)
        seconds += time.thread_time() - began
        start = nodes.pools.start[nodes.first_pool[row]]
        found.append(sorted((s.picks[:_WANTED] - start).tolist()))
    _list_all(matrices[0], _WANTED)
    run_of_none = empty.make_run().replace(moved=np.arange(n))
    began = time.thread_time()
    place.place_run(world, shape.ask, shape.board, run_of_none)
    scoring = time.thread_time() - began
    listing, expected = 0.0, []
    for matrix in matrices:
        began = time.thread_time()
        chosen = _list_all(matrix, _WANTED)
        listing += time.thread_time() - began
        expected.append(sorted(chosen.tolist()))
    assert found == expected
    return {
        "nodes": n,
        "microseconds_a_node": round(seconds / n * 1e6, 1),
        "scoring_microseconds_a_node": round(scoring / n * 1e6, 1),
        "listing_all_sets_microseconds": round(listing / n * 1e6, 1),
    }


def _make_node(name: str, scores: list[list[int]]) -> Any:
    ids = [f"{name}-{j}" for j in range(_CARDS)]
    cards = [
        Card(id=one, index=j, sharers=10, mib=81_920, cores=100, model="A100")
        for j, one in enumerate(ids)
    ]
    node = objects.make_node(name, {"cpu": "128", "memory": "1Ti", "pods": 256}, cards)
    told = [
        {"uuid": one, "score": {ids[j]: score for j, score in enumerate(scores[i]) if j != i}}
        for i, one in enumerate(ids)
    ]
    notes = node.metadata.annotations or {}
    notes[names.HAMI_SCORE] = str(told).replace("'", '"')
    node.metadata.annotations = notes
    return node


@njit  # type: ignore[untyped-decorator]
def _list_all(scores: Any, wanted: int) -> Any:  # pragma: no cover - compiled
    """All sets in the order of the walk, from the last card on; the first of the best."""
    n = scores.shape[0]
    trial, chosen, best = np.arange(wanted), np.arange(wanted), -1
    while True:
        total = 0
        for i in range(wanted):
            for j in range(i + 1, wanted):
                total += scores[n - 1 - trial[i], n - 1 - trial[j]]
        if total > best:
            best = total
            chosen[:] = n - 1 - trial
        i = wanted - 1
        while i >= 0 and trial[i] == n - wanted + i:
            i -= 1
        if i < 0:
            return chosen
        trial[i] += 1
        for j in range(i + 1, wanted):
            trial[j] = trial[j - 1] + 1
