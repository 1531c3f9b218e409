"""What the product is for: the same pods placed by two modes, and how many more pods fit afterwards.

Pods that share GPUs, some full of memory and some of compute, come in a mixed order to nodes of eight GPUs. The
engine places them as it would in a cluster. Then, for each kind of pods alone, more come until no more fit.
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
        running: how many run when the count begins.
        gpus: how many GPUs a pod requests.
        mib, percent: of each GPU, its memory and its compute; 0 is all of it.
    """

    name: str
    running: int
    gpus: int
    mib: int = 0
    percent: int = 0

    @property
    def request(self) -> str:
        """In words."""
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
        pods: that run, with the node and the cards that they got.
        more: by the name of a kind, how many more fit when only pods of this kind come.
    """

    mode: Mode
    pods: list[Json]
    more: dict[str, int]


def fleet() -> list[Json]:
    """The nodes."""
    node = partial(
        nodes.make_gpu_node, cards=CARDS, model="NVIDIA-A100-SXM4-40GB", mem_mib=CARD_MIB
    )
    names = (f"node-{i + 1}" for i in range(N_NODES))
    return [node(name, split=SHARERS, cpu="96", memory="768Gi") for name in names]


def mixed() -> list[Json]:
    """The pods in the order in which they come: of each kind evenly from the first to the last."""
    turns = [
        ((i + 0.5) / kind.running, _pod(kind, i)) for kind in KINDS for i in range(kind.running)
    ]
    return [pod for _, pod in sorted(turns, key=lambda turn: turn[0])]


def compare(pods: list[Json]) -> list[Side]:
    """Place the pods by each mode, and count.

    Raises:
        RuntimeError: not all of them found a place, so that nothing can be compared.
    """
    return [_side(mode, pods) for mode in MODES]


def _side(mode: Mode, pods: list[Json]) -> Side:
    config, there = Config(placement=Placement(mode=mode)), fleet()
    running = _placed(config, there, pods)
    if len(running) < len(pods):
        raise RuntimeError(f"{mode} placed {len(running)} of {len(pods)} pods")
    # A card has so many places that no pod more could have one.
    most = N_NODES * CARDS * SHARERS
    more = {
        kind.name: len(
            _placed(config, there + running, [_pod(kind, kind.running + i) for i in range(most)])
        )
        for kind in KINDS
    }
    return Side(mode, running, more)


def _placed(config: Config, there: list[Json], pods: list[Json]) -> list[Json]:
    """Those of the pods that found a place, as they run there."""
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


def _pod(kind: PodKind, i: int) -> Json:
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
