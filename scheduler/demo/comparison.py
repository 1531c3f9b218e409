"""Shows what the product is for: places the same pods by two modes, and counts how many more pods fit afterwards.

Pods that share GPUs, some with much memory and some with much compute, come in a mixed order to nodes of eight GPUs.
The engine places them as it would in a cluster. Then, for each kind of pods alone, more come until no more fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.embedded.agents import nodes
from scheduler.simulate import schedule

Json = dict[str, Any]
MODES = (Mode.KEEL, Mode.LEAST_ALLOCATED)
N_NODES, CARDS, CARD_MIB, SHARERS = 4, 8, 40_960, 10


@dataclass(frozen=True, slots=True)
class PodKind:
    """A kind of pods.

    Attributes:
        running: how many of these pods run when the count begins.
        gpus: how many GPUs a pod requests.
        mib, percent: the memory and the compute on each GPU; 0 is all of it.
    """

    name: str
    running: int
    gpus: int
    mib: int = 0
    percent: int = 0

    @property
    def request(self) -> str:
        """The request of a pod in words."""
        if self.mib:
            return f"{self.mib:,} MiB and {self.percent} % of a GPU"
        return f"{self.gpus} whole GPU{'s' if self.gpus > 1 else ''}"


KINDS = (
    PodKind("chat", 12, 1, 10_000, 20),
    PodKind("cache", 6, 1, 30_000, 10),
    PodKind("vision", 6, 1, 6_000, 50),
    PodKind("tune", 2, 1),
    PodKind("train", 0, 8),
)


@dataclass(frozen=True, slots=True)
class Side:
    """What one mode made of the pods.

    Attributes:
        pods: the running pods, with their node and cards.
        more: by the name of a kind: how many more pods fit if only pods of this kind come.
    """

    mode: Mode
    pods: list[Json]
    more: dict[str, int]


def make_fleet() -> list[Json]:
    """Make the nodes."""
    node = partial(
        nodes.make_gpu_node, cards=CARDS, model="NVIDIA-A100-SXM4-40GB", mem_mib=CARD_MIB
    )
    names = (f"node-{i + 1}" for i in range(N_NODES))
    return [node(name, split=SHARERS, cpu="96", memory="768Gi") for name in names]


def make_pods() -> list[Json]:
    """Make the pods in the order in which they come: each kind is spread evenly from the first to the last."""
    turns = [
        ((i + 0.5) / kind.running, _make_pod(kind, i))
        for kind in KINDS
        for i in range(kind.running)
    ]
    return [pod for _, pod in sorted(turns, key=lambda turn: turn[0])]


def compare_modes(pods: list[Json]) -> list[Side]:
    """Place the pods by each mode, and count.

    Raises:
        RuntimeError: not all pods found a place, so that nothing can be compared.
    """
    return [_make_side(mode, pods) for mode in MODES]


def _make_side(mode: Mode, pods: list[Json]) -> Side:
    config, there = Config(placement=Placement(mode=mode)), make_fleet()
    running = _place(config, there, pods)
    if len(running) < len(pods):
        raise RuntimeError(f"{mode} placed {len(running)} of {len(pods)} pods")
    # There are no more places on all cards, so no more pods can fit.
    most = N_NODES * CARDS * SHARERS
    more = {
        kind.name: len(
            _place(
                config, there + running, [_make_pod(kind, kind.running + i) for i in range(most)]
            )
        )
        for kind in KINDS
    }
    return Side(mode, running, more)


def _place(config: Config, there: list[Json], pods: list[Json]) -> list[Json]:
    """Place the pods, and return those that found a place, as they run there."""
    rows = {row["name"]: row for row in schedule(there + pods, config=config)["pods"]}
    return [
        {
            **pod,
            "metadata": {**pod["metadata"], "annotations": row["annotations"]},
            "spec": {**pod["spec"], "nodeName": row["node"]},
            "status": {"phase": "Running"},
        }
        for pod in pods
        if (row := rows[pod["metadata"]["name"]])["node"]
    ]


def _make_pod(kind: PodKind, i: int) -> Json:
    name = f"{kind.name}-{i + 1}"
    limits = {"nvidia.com/gpu": str(kind.gpus)}
    if kind.mib:
        limits |= {"nvidia.com/gpumem": str(kind.mib), "nvidia.com/gpucores": str(kind.percent)}
    resources = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "work", "image": kind.name, "resources": resources}]},
        "status": {"phase": "Pending"},
    }
