"""Random clusters, pods and events from a seed: the same seed, the same objects."""

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.api import names, wire
from scheduler.cycle.schedule import Cycle
from tests import make

ZONES = ("a", "b", "c")
TIERS = tuple("0123456789")
MODELS = ("NVIDIA-Tesla T4", "NVIDIA A10G")

# What decides where a pod goes, one of each kind that the placing kernel treats differently.
PODS: dict[str, dict[str, Any]] = {
    "plain": {"cpu": "300m", "memory": "700Mi"},
    "best-effort": {},
    "iops": {"cpu": "100m", "requests": {names.IOPS: 40, names.NETWORK: 10}},
    "prefers": {
        "cpu": "500m",
        "preferred": [(1 + 11 * i, "tier", tier) for i, tier in enumerate(TIERS)],
    },
    "host-port": {"cpu": "100m", "host_ports": [80]},
    "selects": {"cpu": "200m", "node_selector": {"zone": "b"}},
    "whole-gpu": {"cpu": "100m", "gpu": 1},
    "two-gpus": {"cpu": "100m", "gpu": 2},
    "shared-gpu": {"cpu": "100m", "gpu": 1, "gpumem": 3000, "gpucores": 20},
    "half-gpu": {"gpu": 1, "gpumem_percent": 50, "preferred": [(5, "zone", "c")]},
    "init-and-sidecar": {
        "init_containers": [
            make.container(name="side", gpu=1, gpumem=1000, gpucores=10, sidecar=True),
            make.container(name="init", gpu=2, gpumem=9000, gpucores=10),
        ],
        "containers": [make.container(gpu=1, gpumem=2000, gpucores=30)],
    },
}
EVERY_ZONE = {"labelSelector": {"matchLabels": {"app": "web"}}, "maxSkew": 1}
PODS |= {
    "even": {
        "cpu": "100m",
        "labels": {"app": "web"},
        "spec": {
            "topologySpreadConstraints": [
                EVERY_ZONE | {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                EVERY_ZONE | {"topologyKey": names.HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
            ]
        },
    },
    "spread-gpus": {
        "gpu": 1,
        "labels": {"app": "web"},
        "host_ports": [81],
        "spec": {
            "topologySpreadConstraints": [
                EVERY_ZONE | {"topologyKey": "tier", "whenUnsatisfiable": "ScheduleAnyway"},
                EVERY_ZONE | {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ]
        },
    },
}
NEAR_WEB = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
PODS |= {
    "apart": {
        "cpu": "100m",
        "labels": {"app": "db"},
        "spec": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": names.HOSTNAME,
                            "labelSelector": {"matchLabels": {"app": "db"}},
                        }
                    ],
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 30, "podAffinityTerm": NEAR_WEB}
                    ],
                }
            }
        },
    },
    "near": {
        "cpu": "100m",
        "labels": {"app": "web"},
        "spec": {
            "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR_WEB]}
            }
        },
    },
}
GPU_PODS = ("whole-gpu", "two-gpus", "shared-gpu", "half-gpu", "init-and-sidecar", "spread-gpus")

Rng = np.random.Generator


def node(rng: Rng, name: str, *, gpus: bool) -> wire.Node:
    """A node of some kind; taints, zone, size and cards differ."""
    # Few nodes are at the top of either preference, so the highest comes and goes.
    soft = int(rng.geometric(0.6)) - 1
    taints = [(f"soft-{i}", "", "PreferNoSchedule") for i in range(soft)]
    tier = min(int(rng.geometric(0.4)), len(TIERS) - 1)
    if rng.random() < 0.1:
        taints.append(("hard", "", "NoSchedule"))
    figures: dict[str, Any] = {
        "name": name,
        "cpu": f"{rng.integers(500, 4000)}m",
        "memory": f"{rng.integers(1000, 9000)}Mi",
        "pods": int(rng.integers(3, 12)),
        "labels": {"zone": str(rng.choice(ZONES)), "tier": TIERS[tier]},
        "taints": taints,
        "unschedulable": bool(rng.random() < 0.05),
    }
    if rng.random() < 0.6:
        figures["allocatable"] = {names.IOPS: int(rng.integers(50, 300)), names.NETWORK: 1000}
    kind = rng.random() if gpus else 1.0
    if kind < 0.6:
        cards = [
            make.card(
                uuid=f"{name}-GPU-{i}",
                index=i,
                model=MODELS[int(rng.integers(0, 2))],
                mib=int(rng.choice([15360, 24576])),
                numa=int(rng.integers(0, 2)),
                healthy=bool(rng.random() < 0.9),
            )
            for i in range(int(rng.integers(1, 5)))
        ]
        cordoned = [f"{name}-GPU-0"] if rng.random() < 0.1 else []
        return make.hami_node(cards=cards, cordoned=cordoned, **figures)
    return make.node(gpus=int(rng.integers(1, 4)) if kind < 0.75 else 0, **figures)


def nodes(rng: Rng, n: int, *, gpus: bool) -> list[wire.Node]:
    """Nodes in no particular order of names."""
    return [node(rng, f"node-{i:03}", gpus=gpus) for i in rng.permutation(n).tolist()]


def pending(kind: str, name: str, annotations: dict[str, str] | None = None) -> wire.Pod:
    """A pod of one of the kinds above."""
    return make.pod(name=name, annotations=annotations, **PODS[kind])


def events(rng: Rng, cycle: Cycle) -> Callable[[], str]:
    """A function that does one random thing to the cycle's cluster each time, and says what."""
    cluster = cycle._cluster
    serial = iter(range(10**6))

    def node_changes() -> None:
        cluster.see_node(node(rng, f"node-{rng.integers(0, 90):03}", gpus=True))

    def node_goes() -> None:
        cluster.node_gone(f"node-{rng.integers(0, 90):03}")

    def stranger_runs() -> None:
        name = f"node-{rng.integers(0, 90):03}"
        kind = str(rng.choice(["plain", "host-port", "iops", "whole-gpu", "even", "apart"]))
        notes = {
            names.HAMI_NODE: name,
            names.HAMI_ALLOCATED: f"{name}-GPU-0,NVIDIA,{rng.integers(1, 5000)},10:;",
        }
        cluster.see_pod(
            make.pod(
                name=f"stranger-{next(serial)}", node=name, scheduler_name="other",
                annotations=notes if kind == "whole-gpu" else None, **PODS[kind],
            )
        )  # fmt: skip

    def pod_goes() -> None:
        if cluster.pods:
            cluster.pod_gone(str(rng.choice(sorted(cluster.pods))))

    def bind_fails() -> None:
        if cluster.pods:
            cluster.forget(str(rng.choice(sorted(cluster.pods))))

    def pods_arrive() -> None:
        kind = str(rng.choice(sorted(PODS)))
        arrived = [
            cluster.see_pod(pending(kind, f"{kind}-{next(serial)}"))
            for _ in range(int(rng.integers(1, 4)))
        ]
        cycle.schedule([pod for pod in arrived if pod])

    happenings = (
        node_changes, node_changes, node_goes, stranger_runs, pod_goes, bind_fails, pods_arrive,
        pods_arrive,
    )  # fmt: skip

    def happen() -> str:
        what = happenings[int(rng.integers(0, len(happenings)))]
        what()
        return what.__name__

    return happen
