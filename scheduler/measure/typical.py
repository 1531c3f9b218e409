"""The typical pods by which a cluster is measured, taken from the requests of its own pods.

The typical pods are the most frequent shapes that together make 95 % of the pods: at most 64 shapes that request GPUs,
and 64 shapes that do not. Shapes with GPUs come from the demand that the state has seen, shapes without GPUs from the
pods that are there now. Pods that belong to their node, such as a DaemonSet's, do not count. If there are fewer than 30
pods of a kind, an assumed demand replaces them: for GPUs the assumed demand of ``modes/demand_tables.py``, for other pods
one core with the memory that this cluster has per core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scheduler.api import names
from scheduler.modes import demand_tables
from scheduler.modes.empty_nodes import list_families
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# How many pods must be seen before they replace assumed pods: a share of a third is then known to about nine points.
ENOUGH = 30
_COVERED = 0.95
_MOST = 64
_ASSUMED_CPU_MILLI = 1000


class TypicalPod(NamedTuple):
    """A shape and how many pods have it."""

    shape: DemandShape
    pods: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Typical:
    """The typical pods, those with GPUs first, each kind by falling count.

    Attributes:
        gpu_seen, plain_seen: seen pods that request GPUs, and seen pods that request CPU or memory and no GPU.
        gpu_assumed, plain_assumed: whether such pods are assumed because too few were seen; for GPUs, of any family.
        asking_nothing: seen pods that request none of these; they do not count.
    """

    pods: tuple[TypicalPod, ...]
    gpu_seen: int
    plain_seen: int
    gpu_assumed: bool
    plain_assumed: bool
    asking_nothing: int = 0


def find_typical(cluster: Cluster, fixed: Collection[str] = ()) -> Typical:
    """Find the typical pods of a cluster; ``fixed`` are uids of pods that belong to their node."""
    asking: list[TypicalPod] = []
    gpu_assumed = False
    there = list_families(cluster) if cluster.nodes.columns.has_gpu.any() else []
    counts = cluster.demand.list_counts()
    for family, resource in enumerate(cluster.registers.devices.families):
        seen = cluster.demand.count_seen(resource)
        if seen >= ENOUGH:
            asking += [TypicalPod(s, n) for s, n in counts.items() if s.family == resource]
        elif family in there:
            gpu_assumed = True
            assumed = demand_tables.assume_demand(cluster, family)
            # All assumed pods together count as much as the pods that were seen.
            scale = max(seen, 1) / sum(assumed.values())
            asking += [TypicalPod(shape, count * scale) for shape, count in assumed.items()]
    gpu_seen = cluster.demand.devices.seen
    plain, asking_nothing = _count_plain(cluster, fixed)
    plain_seen = round(sum(pod.pods for pod in plain))
    plain_assumed = plain_seen < ENOUGH
    if plain_assumed:
        plain = [TypicalPod(_assume_plain(cluster), float(max(plain_seen, 1)))]
    return Typical(
        pods=(*_pick_most_frequent(asking), *_pick_most_frequent(plain)),
        gpu_seen=gpu_seen,
        plain_seen=plain_seen,
        gpu_assumed=gpu_assumed or gpu_seen < ENOUGH,
        plain_assumed=plain_assumed,
        asking_nothing=asking_nothing,
    )


def _count_plain(cluster: Cluster, fixed: Collection[str]) -> tuple[list[TypicalPod], int]:
    """Count the pods without GPU by shape, and the pods that request nothing.

    The pods themselves are counted, because the state's demand does not say which nodes such pods may go to.
    """
    asking_nothing = 0
    counts: dict[DemandShape, int] = {}
    # There are few templates and many pods, and reading a template takes longer than counting its pods.
    pods = [pod for pod in cluster.pods.values() if pod.uid not in fixed]
    templates = {id(pod.template): pod.template for pod in pods}
    for key, n in Counter(id(pod.template) for pod in pods).items():
        template = templates[key]
        asked = dict(template.requests.amounts)
        cpu, memory = asked.get(names.CPU, 0), asked.get(names.MEMORY, 0)
        if template.gpu is not None:
            continue
        if not (cpu or memory):
            asking_nothing += n
            continue
        shape = DemandShape(
            cpu,
            memory,
            selector=template.selector,
            required=template.required,
            tolerations=template.tolerations,
        )
        counts[shape] = counts.get(shape, 0) + n
    return [TypicalPod(shape, float(count)) for shape, count in counts.items()], asking_nothing


def _assume_plain(cluster: Cluster) -> DemandShape:
    nodes = cluster.nodes.columns
    cpu = nodes.allocatable[c.CPU, nodes.valid]
    memory = nodes.allocatable[c.MEMORY, nodes.valid]
    has = cpu > 0
    per_core = float(np.median(memory[has] / cpu[has])) if has.any() else 0.0
    return DemandShape(_ASSUMED_CPU_MILLI, int(per_core * _ASSUMED_CPU_MILLI))


def _pick_most_frequent(pods: Iterable[TypicalPod]) -> list[TypicalPod]:
    # Pods are sorted, because sums of floats must not depend on the order in which pods came.
    ordered = sorted(pods, key=lambda pod: (-pod.pods, str(pod.shape)))
    total, covered = sum(pod.pods for pod in ordered), 0.0
    picked = []
    for pod in ordered[:_MOST]:
        if covered >= _COVERED * total:
            break
        covered += pod.pods
        picked.append(pod)
    return picked
