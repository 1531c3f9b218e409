"""Pods of kinds, and pods drawn from a seed, as raw objects: the same seed, the same pod."""

import random
from typing import Any

from scheduler.api import names, wire
from tests import make
from tests.model.clusters import TIERS, TOLERATION, ZONES, Json, Kit

PERCENTS = (20, 25, 33, 50, 65, 81)
# Of every memory of ``clusters.MODELS`` these are whole MiB, and so is the part of the card that is charged.
EVEN_PERCENTS = (25, 50, 75)
MIBS = (3000, 4096, 7680, 10000, 12288)

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
PODS |= {
    "two-shared": {"gpu": 2, "gpumem": 4000},
    "thirds": {"gpu": 1, "gpumem_percent": 34, "gpucores": 34},
    "no-cores": {"gpu": 1, "gpumem": 700, "gpucores": 0},
    "two-containers": {
        "containers": [
            make.container(name="a", gpu=1, gpumem=5000, gpucores=40),
            make.container(name="b", gpu=1, gpumem=5000, gpucores=40),
        ]
    },
    "init-only": {
        "init_containers": [make.container(name="init", gpu=2, gpumem=9000)],
        "containers": [make.container(cpu="100m")],
    },
}
PODS |= {
    "amd": {"cpu": "200m", "requests": {names.AMD_GPU: 1}},
    "two-amd": {"cpu": "100m", "requests": {names.AMD_GPU: 2}},
    "both": {
        "containers": [
            make.container(name="card", cpu="100m", gpu=1, gpumem=1000, gpucores=10),
            make.container(name="amd", requests={names.AMD_GPU: 1}),
        ]
    },
}
PLAIN_PODS = (
    "plain",
    "best-effort",
    "iops",
    "prefers",
    "host-port",
    "selects",
    "even",
    "apart",
    "near",
)


def pod(kind: str, name: str, **more: Any) -> wire.Pod:
    """A pod of one of the kinds above; ``more`` goes over its figures."""
    return make.pod(name=name, **PODS[kind] | more)


def drawn(rng: random.Random, kit: Kit, name: str = "pod") -> Json:
    """A pod of its own figures: mostly shares, some whole GPUs, some CPU only; if odd, some have wishes.

    Where nodes may have devices of another vendor, some ask those, and some both.
    """
    cpu = rng.choice([0, 500, 1000, 2000, 4000, 8000, 12000])
    given = {"cpu": f"{cpu}m", "memory": f"{rng.choice([0, 1, 4])}Gi"}
    chance, asks = rng.random(), [Json()]
    if chance >= 0.15:
        asks = _asks(rng, kit, chance)
    if kit.beside and rng.random() < 0.4:
        amd = {"requests": {names.AMD_GPU: rng.choice([1, 1, 2, 4])}}
        asks = [*asks, amd] if rng.random() < 0.2 else [amd]
    containers = [
        make.container(name=f"c{i}", **one | (given if i == 0 else {}))
        for i, one in enumerate(asks)
    ]
    wishes = _wishes(rng, has_gpu="requests" not in asks[0] and chance >= 0.15) if kit.odd else {}
    return make.raw(make.pod(name=name, containers=containers, **wishes))


def _asks(rng: random.Random, kit: Kit, chance: float) -> list[Json]:
    """What each container asks of GPUs."""
    if chance < 0.4:
        return [{"gpu": rng.choice([1, 1, 1, 2, 4, 8])}]
    if chance < 0.9 or not kit.odd:
        return [_share(rng, kit, 1)]
    if chance < 0.95:
        return [_share(rng, kit, rng.choice([2, 3]))]
    return [_share(rng, kit, 1), _share(rng, kit, 1)]


def _share(rng: random.Random, kit: Kit, gpus: int) -> Json:
    kind, percent = rng.random(), rng.choice(EVEN_PERCENTS if kit.even else PERCENTS)
    if kind < 0.4:
        return {"gpu": gpus, "gpumem_percent": percent, "gpucores": percent}
    if kind < 0.55:
        return {"gpu": gpus, "gpumem_percent": percent, "gpucores": 0}
    if kind < 0.7:
        return {"gpu": gpus, "gpumem_percent": percent, "gpucores": rng.choice(PERCENTS)}
    return {"gpu": gpus, "gpumem": rng.choice(MIBS), "gpucores": rng.choice([0, 20, 50])}


def _wishes(rng: random.Random, *, has_gpu: bool) -> Json:
    spec: Json = {}
    if rng.random() < 0.15:
        spec["nodeSelector"] = {"zone": rng.choice(ZONES)}
    if rng.random() < 0.1:
        spec["affinity"] = away_from(rng.choice(ZONES))
    if rng.random() < 0.3:
        spec["tolerations"] = [TOLERATION]
    notes = {
        names.USE_TYPE: (0.15, ["A100", "T4,A10G", "V100"]),
        names.NOUSE_TYPE: (0.1, ["A100", "P100"]),
        names.HAMI_GPU_POLICY: (0.05, ["spread", "binpack", "mutex"]),
        names.NUMA_BIND: (0.05, ["true"]),
    }
    said = {
        note: rng.choice(words)
        for note, (chance, words) in notes.items()
        if has_gpu and rng.random() < chance
    }
    return {"spec": spec, "annotations": said}


def away_from(zone: str) -> Json:
    """Required affinity to the nodes of all other zones."""
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": [zone]}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": rules}
