"""Pods of which each has figures of its own, in the engine alone; on a real API server they are a row of ``rows``.

A row is the thread's time from the pod object to the decision, one pod after another, on a cluster that
is new and on one that has run for a while: nodes of several kinds filled unevenly, and pods that left. Beside it
stands what pods cost that are all alike.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from pathlib import Path
from typing import Any

from bench.floors import Floor
from scheduler.api import wire
from scheduler.api.cards import Card, CardUse, Grant, Slots
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import objects
from scheduler.kube import heap
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

_PODS, _UNTIMED, _LIKE = 300, 20, 2_000
# Milli-CPU, GiB, cards, MiB of each: the first kind alone in a new cluster.
_KINDS = ((128_000, 1_024, 8, 81_920), (96_000, 384, 8, 24_576), (64_000, 256, 4, 15_360), (96_000, 768, 8, 32_768))  # fmt: skip
# The most pods that a node holds in a cluster that has run for a while; of those that came one in so many left.
_HELD_MOST, _LEFT = 11, 4

FLOORS = (
    Floor("engine.*.us_a_pod", at_most=350, only=("size", "GPU, 5000 nodes")),
    Floor("engine.*.us_a_pod", at_most=1_400, only=("size", "GPU, 20000 nodes")),
    Floor("engine.*.us_a_pod", at_most=120, only=("size", "plain, 5000 nodes")),
    Floor("engine.*.us_a_pod", at_most=500, only=("size", "plain, 20000 nodes")),
)


def run(quick: bool) -> dict[str, Any]:
    """Plain pods and pods with a card or more, on new clusters and on worn ones; plain ones on nodes without cards, too."""
    engine = []
    usual = gc.get_threshold()
    for n_nodes in (5_000,) if quick else (5_000, 20_000):
        for worn in (False, True):
            for gpu, bare in ((True, False), (False, False), (False, True)):
                engine.append(_row(n_nodes, gpu=gpu, worn=worn, bare=bare))
                print(f"bench: {engine[-1]}", file=sys.stderr, flush=True)
                gc.unfreeze()
    gc.set_threshold(*usual)
    return {"engine": engine}


def _row(n_nodes: int, *, gpu: bool, worn: bool, bare: bool) -> dict[str, Any]:
    """``bare``: the nodes have no cards."""
    rng = random.Random(1)
    cluster, config = _cluster(rng, n_nodes, worn=worn, bare=bare), Config()
    cycle = Cycle(cluster, PolicyBook(config))
    # As the operator does before its first decision.
    heap.freeze()
    distinct = [_pod(rng, f"distinct-{i}", gpu=gpu) for i in range(_UNTIMED + _PODS)]
    like = [_pod(random.Random(2), f"like-{i}", gpu=gpu) for i in range(_UNTIMED + _LIKE)]
    row = {
        "size": f"{'GPU' if gpu else 'plain'}, {n_nodes} {'bare ' if bare else ''}nodes",
        "cluster": "has run for a while" if worn else "new",
        "us_a_pod": _microseconds(cluster, cycle, distinct, batch=1),
        "like_us_a_pod": _microseconds(cluster, cycle, like, batch=500),
    }
    return row | {"rss_mib": _rss()}


def _microseconds(cluster: Cluster, cycle: Cycle, pods: list[wire.Pod], *, batch: int) -> float:
    """Of the pods but for the first few."""
    _decide(cluster, cycle, pods[:_UNTIMED], batch)
    began = time.thread_time()
    _decide(cluster, cycle, pods[_UNTIMED:], batch)
    return round((time.thread_time() - began) / (len(pods) - _UNTIMED) * 1e6, 1)


def _decide(cluster: Cluster, cycle: Cycle, pods: list[wire.Pod], batch: int) -> None:
    cycle.learn()
    for at in range(0, len(pods), batch):
        seen = [cluster.see_pod(pod) for pod in pods[at : at + batch]]
        cycle.schedule([pod for pod in seen if pod is not None])


def _cluster(rng: random.Random, n_nodes: int, *, worn: bool, bare: bool) -> Cluster:
    cluster = Cluster()
    for i in range(n_nodes):
        cpu, gib, n_cards, mib = rng.choice(_KINDS) if worn else _KINDS[0]
        name = f"node-{i:05}"
        cards = [
            Card(id=f"{name}-{j}", index=j, sharers=10, mib=mib, cores=100, model=f"{mib} MiB", numa=j // 4)
            for j in range(0 if bare else n_cards)
        ]  # fmt: skip
        size: wire.Quantities = {"cpu": f"{cpu}m", "memory": f"{gib}Gi", "pods": 256}
        cluster.see_node(objects.make_node(name, size, cards))
        for number in range(rng.randrange(_HELD_MOST) if worn else 0):
            _hold(cluster, rng, name, f"{name}-{number}", cards)
    return cluster


def _hold(cluster: Cluster, rng: random.Random, node: str, name: str, cards: list[Card]) -> None:
    """A pod comes to a node, if it fits there, and may leave again."""
    seen = cluster.see_pod(_pod(rng, name, gpu=bool(cards) and rng.random() < 0.7))
    assert seen is not None
    held: Slots = ()
    if seen.template.gpu is not None:
        (asked,) = seen.template.gpu.containers
        chosen = rng.sample(cards, min(asked.cards, len(cards)))
        mib = asked.mem_mib or cards[0].mib
        held = (tuple(CardUse(card.id, mib, asked.cores) for card in chosen),)
    cluster.assume(seen.uid, node, (Grant("HAMi", held),) if held else ())
    row = cluster.nodes.find_row(node)
    fits = cluster.registers.are_usable(row, [use.uuid for slot in held for use in slot])
    if not fits or rng.random() < 1 / _LEFT:
        cluster.drop_pod(seen.uid)


def _pod(rng: random.Random, name: str, *, gpu: bool) -> wire.Pod:
    asked: wire.Quantities = {
        "cpu": f"{rng.randint(100, 6_000)}m", "memory": f"{rng.randint(100, 30_000)}Mi"
    }  # fmt: skip
    limits: wire.Quantities = {}
    if gpu:
        what = rng.random()
        if what < 0.75:
            most = 14_000 if what < 0.5 else 60_000
            limits = objects.make_limits(
                cards=1, cores=rng.randint(5, 95), mib=rng.randint(1_000, most)
            )
        else:
            limits = objects.make_limits(cards=1 if what < 0.92 else rng.choice((2, 2, 4, 8)))
    container = wire.Container("main", wire.Resources(requests=asked | limits, limits=limits))
    return wire.Pod(
        wire.Meta(name=name, namespace="default", uid=name),
        wire.PodSpec(scheduler_name=Config().scheduler_name, containers=[container]),
    )


def _rss() -> int:
    """MiB of this process by now."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) // 1024
