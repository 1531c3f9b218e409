"""What a pod with a claim costs the engine, on nodes whose devices are published in ResourceSlices.

A row is the thread's time from the objects, a claim and its pod, to the decision: ``like`` for pods whose claims request the
same, in batches; ``different`` for pods of which each claim has a selector of its own that was never seen before, one after
another; ``drawn`` for pods whose selectors were seen before, with figures of their own. Each row is measured in a process of
its own, with the seconds from the first slice to the last one, and the memory when all is known. ``whole``: 8 GPUs on a node;
``MIG``: 8 GPUs that are cut by counters, 18 partitions each.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import msgspec

from bench.everywhere import claimed
from bench.floors import Floor
from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import objects as node_objects
from scheduler.embedded.agents import dra_devices
from scheduler.kube import heap
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

_NODES, _QUICK_NODES = 5_000, 500
_UNTIMED, _PODS, _LIKE, _BATCH = 100, 500, 4_000, 500
_ROWS = ("like", "different", "drawn")
_PROFILES = tuple(one.name for one in dra_devices.PROFILES)

FLOORS = (
    Floor("whole.like.us_a_pod", at_most=60),
    Floor("whole.different.us_a_pod", at_most=400),
    Floor("whole.drawn.us_a_pod", at_most=400),
    Floor("MIG.like.over_whole", at_most=2.0),
    Floor("MIG.different.over_whole", at_most=2.0),
    Floor("whole.like.start_seconds", at_most=6.0),
    Floor("whole.like.rss_mib", at_most=400),
)


def run(quick: bool) -> dict[str, Any]:
    """All rows; ``quick``: a tenth of the nodes."""
    found: dict[str, Any] = {"nodes": _QUICK_NODES if quick else _NODES}
    for cluster in ("whole", "MIG"):
        found[cluster] = {}
        for row in _ROWS:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                one = alone.submit(_measure, found["nodes"], cluster, row).result()
            if cluster == "MIG":
                one["over_whole"] = round(one["us_a_pod"] / found["whole"][row]["us_a_pod"], 2)
            found[cluster][row] = one
            print(f"bench: claims: {cluster}, {row}: {one}", file=sys.stderr, flush=True)
    return found


def _measure(n_nodes: int, cluster: str, row: str) -> dict[str, Any]:
    known, cycle = Cluster(), None
    for one in dra_devices.make_classes():
        known.claims.see_class(msgspec.convert(one, objects.DeviceClass))
    size: wire.Quantities = {"cpu": "256", "memory": "2Ti", "pods": 250}
    names = [f"node-{i:05}" for i in range(n_nodes)]
    for name in names:
        known.see_node(node_objects.make_node(name, size, []))
    pool = dra_devices.make_gpus(8) if cluster == "whole" else dra_devices.make_mig_gpus(8)
    took = 0.0
    for name in names:
        # As the watch parses them.
        texts = [msgspec.json.encode(body) for body in claimed.list_slices(name, [pool])]
        began = time.thread_time()
        for text in texts:
            known.claims.see_slice(msgspec.json.decode(text, type=objects.ResourceSlice))
        took += time.thread_time() - began
    began = time.thread_time()
    known.claims.flush()
    took += time.thread_time() - began
    cycle = Cycle(known, PolicyBook(Config()))
    heap.freeze()
    rng = random.Random(1)
    is_like = row == "like"
    made = [
        claimed.make_claimant(f"pod-{i}", _request(rng, cluster, row, i))
        for i in range(_UNTIMED + (_LIKE if is_like else _PODS))
    ]
    if not is_like:
        for _, pod in made:
            cpu: wire.Quantities = {"cpu": f"{rng.randint(100, 3_000)}m", "memory": "1Gi"}
            pod.spec.containers[0].resources = wire.Resources(requests=cpu)
    step = _BATCH if is_like else 1
    _decide(known, cycle, made[:_UNTIMED], step)
    began = time.thread_time()
    _decide(known, cycle, made[_UNTIMED:], step)
    spent = time.thread_time() - began
    return {
        "us_a_pod": round(spent / (len(made) - _UNTIMED) * 1e6, 1),
        "start_seconds": round(took, 2),
        "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _request(rng: random.Random, cluster: str, row: str, i: int) -> dict[str, Any]:
    """One device; in a MIG cluster a partition of some profile, the same for like pods."""
    texts = []
    of_class = dra_devices.NVIDIA if cluster == "whole" else dra_devices.MIG_CLASS
    if cluster == "MIG":
        profile = _PROFILES[0] if row == "like" else rng.choice(_PROFILES)
        texts.append(f"device.attributes['{dra_devices.NVIDIA}'].profile == '{profile}'")
    least = {"like": 1, "different": 1 + i, "drawn": rng.randint(1, 40)}[row]
    texts.append(f"device.capacity['{dra_devices.NVIDIA}'].memory.isGreaterThan(quantity('{least}Mi'))")  # fmt: skip
    return claimed.request_one(of_class, texts)


def _decide(
    known: Cluster,
    cycle: Cycle,
    made: Sequence[tuple[objects.ResourceClaim, wire.Pod]],
    step: int,
) -> None:
    cycle.learn()
    for at in range(0, len(made), step):
        pods = []
        for claim, pod in made[at : at + step]:
            known.claims.see_claim(claim)
            seen = known.see_pod(pod)
            assert seen is not None
            pods.append(seen)
        assert len(cycle.schedule(pods).binds) == len(pods)
