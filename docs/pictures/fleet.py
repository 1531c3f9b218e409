"""A cluster of 200 nodes that has run for a while, made up from a seed, for the picture of the audit's page.

Pods are spread as kube-scheduler spreads them, more than fit, and then most of them end. What is left is what
clusters have: cards with too little left on them, GPUs beside CPUs that are all in use, nodes that are cordoned, and
pods that wait, of those that came last.
"""

from __future__ import annotations

import json
import random
import uuid
from typing import Any, NamedTuple

from scheduler.api import names
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.simulate import schedule

Json = dict[str, Any]
_SEED = 7
_ARRIVE, _STAY, _CORDONED = 4800, 0.8, 0.03
# So many came last that their training jobs still wait.
_LAST = 500


class _Pool(NamedTuple):
    name: str
    nodes: int
    cpu: int
    memory_gib: int
    cards: int
    model: str
    card_mib: int


class _Kind(NamedTuple):
    """How many of a kind there are for each 100 pods, and what one asks; 0 MiB of a card is all of it."""

    name: str
    weight: int
    cpu: int
    memory_gib: int
    cards: int = 0
    card_mib: int = 0
    card_cores: int = 0


_POOLS = (
    _Pool("t4", 70, 32, 128, 4, "NVIDIA-Tesla T4", 15_360),
    _Pool("a10", 40, 48, 192, 2, "NVIDIA-NVIDIA A10", 23_028),
    _Pool("v100", 40, 64, 384, 8, "NVIDIA-Tesla V100-SXM2-32GB", 32_768),
    _Pool("a100", 30, 96, 1024, 8, "NVIDIA-NVIDIA A100-SXM4-80GB", 81_920),
    _Pool("cpu", 20, 64, 256, 0, "", 0),
)
_KINDS = (
    _Kind("infer-small", 24, 2, 4, 1, 4_000, 20),
    _Kind("infer", 26, 4, 12, 1, 9_000, 40),
    _Kind("infer-large", 10, 6, 32, 1, 18_000, 60),
    _Kind("notebook", 8, 6, 32, 1),
    _Kind("train-2", 5, 16, 64, 2),
    _Kind("train-8", 3, 48, 256, 8),
    _Kind("prepare", 30, 14, 24),
)


def objects() -> list[Json]:
    """Nodes, and the pods that run on them."""
    lots = random.Random(_SEED)  # noqa: S311 - a made-up cluster is no secret
    nodes = [_node(pool, i, lots) for pool in _POOLS for i in range(pool.nodes)]
    kinds = lots.choices(_KINDS, [kind.weight for kind in _KINDS], k=_ARRIVE)
    pods = [_pod(kind, i) for i, kind in enumerate(kinds)]
    spread = Config(placement=Placement(mode=Mode.LEAST_ALLOCATED))
    where = {row["name"]: row for row in schedule(nodes + pods, config=spread)["pods"]}
    last = {
        pod["metadata"]["name"]
        for pod in pods[-_LAST:]
        if pod["metadata"]["name"].startswith("train-")
    }
    stay = []
    for pod in pods:
        row = where[pod["metadata"]["name"]]
        if row["node"] and lots.random() < _STAY:
            pod["spec"]["nodeName"] = row["node"]
            pod["metadata"]["annotations"] = dict(row["annotations"])
            pod["status"]["phase"] = "Running"
            stay.append(pod)
        elif not row["node"] and row["name"] in last:
            stay.append(pod)
    for node in nodes:
        if lots.random() < _CORDONED:
            node["spec"]["unschedulable"] = True
    return nodes + stay


def _uid(lots: random.Random) -> str:
    return str(uuid.UUID(int=lots.getrandbits(128)))


def _node(pool: _Pool, i: int, lots: random.Random) -> Json:
    name = f"{pool.name}-{i:03}"
    allocatable = {"cpu": str(pool.cpu), "memory": f"{pool.memory_gib}Gi", "pods": "110"}
    annotations = {}
    if pool.cards:
        allocatable["nvidia.com/gpu"] = str(10 * pool.cards)
        cards = [
            {"id": f"GPU-{_uid(lots)}", "index": j, "count": 10, "devmem": pool.card_mib, "devcore": 100,
             "type": pool.model, "mode": "hami-core", "health": True}
            for j in range(pool.cards)
        ]  # fmt: skip
        annotations[names.HAMI_REGISTER] = json.dumps(cards)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "annotations": annotations},
        "spec": {},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(kind: _Kind, i: int) -> Json:
    name = f"{kind.name}-{i}"
    cards = {
        "nvidia.com/gpu": kind.cards,
        "nvidia.com/gpumem": kind.card_mib,
        "nvidia.com/gpucores": kind.card_cores,
    }
    requests = {"cpu": str(kind.cpu), "memory": f"{kind.memory_gib}Gi"}
    limits = {resource: figure for resource, figure in cards.items() if figure}
    container = {
        "name": "main",
        "image": kind.name,
        "resources": {"requests": requests, "limits": limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulerName": names.SCHEDULER, "containers": [container]},
        "status": {"phase": "Pending"},
    }
