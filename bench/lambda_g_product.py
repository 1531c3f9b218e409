"""The pods and nodes of the Lambda-G author's benchmark, through the product's own state, cycle and kernels.

All that is made here are the objects a real cluster would send, one pod at a time, each placed before the
next is seen. Units: cores, GB, IOPS and network in thousandths, requests rounded up as Kubernetes does. A GPU
node registers one card with HAMi: ``devmem`` is its GB in thousandths (as MiB), ``devcore`` its GPU compute
in whole percents, 50 or 100, because ``nvidia.com/gpucores`` is a whole percent: so a pod asks up to one
percent more GPU compute than drawn, half a percent on average. No pod is refused for a score of 0, and pods
without GPU go to nodes without GPU while they fit, as always in the product.
"""

from __future__ import annotations

import json
import math
import re

from bench.lambda_g_workload import (
    CPU,
    GPU_COMPUTE,
    GPU_MEMORY,
    IOPS,
    MEMORY,
    NETWORK,
    Vector,
    Workload,
)
from scheduler.api import names, wire
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster

# So many pods on a node, and containers on a card, that neither keeps a pod away.
_PODS = 1_000
LEFT_OUT = {
    Mode.REQUESTED_TO_CAPACITY_RATIO: "its curve is the user's; the default one is most-allocated's"
}


def modes() -> tuple[Mode, ...]:
    """Every mode except ``LEFT_OUT`` and those that are for the simulator only."""
    said = re.findall(r"[^.;\n]*simulator only[^.;\n]*", Mode.__doc__ or "")
    words = set(re.findall(r"[a-z-]+", " ".join(said).lower().replace("_", "-")))
    return tuple(mode for mode in Mode if mode not in LEFT_OUT and mode.value not in words)


def place(workload: Workload, mode: Mode) -> list[int]:
    """The node of every pod in order of arrival, -1 where it stays pending."""
    cluster = Cluster()
    config = Config(placement=Placement(mode=mode))
    cycle = Cycle(cluster, PolicyBook(config))
    # Ties go to the first name in sorted order: to the lowest index, as upstream.
    at = {f"node-{i:03}": i for i in range(len(workload.nodes))}
    for name, capacity in zip(at, workload.capacities, strict=True):
        cluster.see_node(_node(name, capacity))
    placement = []
    for i, asked in enumerate(workload.pods):
        record = cluster.see_pod(_pod(f"pod-{i:03}", asked))
        # As the engine does between two batches.
        cycle.learn()
        outcome = cycle.schedule([record] if record else [])
        for hold in outcome.holds:
            if hold.problem:
                raise RuntimeError(f"{hold.uid}: {hold.problem}")
        placement.append(at[outcome.binds[0].node] if outcome.binds else -1)
    return placement


def as_asked(asked: Vector) -> Vector:
    """What the product reads of a pod's request, in the benchmark's own units."""
    return tuple(
        float(math.ceil(amount)) if d == GPU_COMPUTE else _milli(amount) / 1000
        for d, amount in enumerate(asked)
    )


def _milli(amount: float) -> int:
    return math.ceil(amount * 1000)


def _resources(amounts: Vector) -> wire.Quantities:
    return {
        names.CPU: f"{_milli(amounts[CPU])}m",
        names.MEMORY: f"{_milli(amounts[MEMORY])}M",
        names.IOPS: _milli(amounts[IOPS]),
        names.NETWORK: _milli(amounts[NETWORK]),
    }


def _node(name: str, capacity: Vector) -> wire.Node:
    allocatable = _resources(capacity) | {names.PODS: _PODS}
    annotations = {}
    if capacity[GPU_COMPUTE]:
        card = {
            "id": f"{name}-card",
            "count": _PODS,
            "devmem": _milli(capacity[GPU_MEMORY]),
            "devcore": math.ceil(capacity[GPU_COMPUTE]),
            "type": "NVIDIA",
            "health": True,
        }
        annotations[names.HAMI_REGISTER] = json.dumps([card])
        allocatable[names.GPU] = _PODS
    return wire.Node(
        wire.Meta(name=name, uid=name, annotations=annotations),
        status=wire.NodeStatus(allocatable),
    )


def _pod(name: str, asked: Vector) -> wire.Pod:
    requests = _resources(asked)
    if asked[GPU_COMPUTE]:
        requests |= {
            names.GPU: 1,
            names.GPU_MEMORY: _milli(asked[GPU_MEMORY]),
            names.GPU_CORES: math.ceil(asked[GPU_COMPUTE]),
        }
    spec = wire.PodSpec(
        scheduler_name=names.SCHEDULER,
        containers=[wire.Container("main", wire.Resources(requests=requests, limits=requests))],
    )
    return wire.Pod(wire.Meta(name=name, namespace="bench", uid=name), spec)
