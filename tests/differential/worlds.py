"""A small cluster and the pods that come to it, from a seed.

Each feature has a source of chance of its own, so that a world without one of its features is the same in all
else: that is how a test finds out whether a feature decided anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

Json = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS, TIERS = ("web", "db", "cache"), ("front", "back")
SCHEDULER = "default-scheduler"

# What all worlds share: an API server's admission looks some of it up in caches that lag behind.
NAMESPACES: Mapping[str, Mapping[str, str]] = {
    "blue": {"team": "a", "env": "prod"},
    "green": {"team": "a", "env": "dev"},
    "red": {"team": "b", "resource.kubernetes.io/admin-access": "true"},
    "grey": {},
}
# The one whose claims may have devices that others use.
ADMIN_SPACE = "red"
OVERHEADS: Mapping[str, Mapping[str, str]] = {
    "light": {"cpu": "50m", "memory": "64Mi"},
    "heavy": {"cpu": "1500m", "memory": "3Gi"},
}
# By name the value, and what a pod of it may do to others.
PRIORITIES: Mapping[str, tuple[int, str]] = {
    "low": (-10, "PreemptLowerPriority"),
    "middle": (100, "PreemptLowerPriority"),
    "high": (1000, "PreemptLowerPriority"),
    "peaceful": (1000, "Never"),
}
_PODS = 6


@dataclass(slots=True)
class World:
    """A cluster, and who comes.

    Attributes:
        seed: what it was made from.
        nodes: in the order of their names.
        pods: those that have a node, or are nominated to one.
        others: all else, such as Services.
        incoming: pods without a node, in the order in which they come.
        claims: the ResourceClaims that are made from templates once a pod is there, by the pod's name.
    """

    seed: int
    nodes: list[Json] = field(default_factory=list)
    pods: list[Json] = field(default_factory=list)
    others: list[Json] = field(default_factory=list)
    incoming: list[Json] = field(default_factory=list)
    claims: dict[str, list[Json]] = field(default_factory=dict)

    @property
    def objects(self) -> list[Json]:
        """What is there before the first pod comes."""
        spaces = [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/metadata.name": name} | dict(of),
                },
            }
            for name, of in NAMESPACES.items()
        ]
        return [*spaces, *classes(), *self.nodes, *self.others, *self.pods]


def classes() -> list[Json]:
    """The priority classes."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": policy,
        }
        for name, (value, policy) in PRIORITIES.items()
    ]


def _no_world(_rng: Random, _world: World) -> None:
    return


def _no_pod(_rng: Random, _world: World, _pod: Json) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something that pods may ask, or that clusters may hold.

    Attributes:
        name: in seeds and reports.
        world: what it changes in a cluster.
        pod: what it changes in a pod that comes.
    """

    name: str
    world: Callable[[Random, World], None] = _no_world
    pod: Callable[[Random, World, Json], None] = _no_pod


def build(seed: int, features: Sequence[Feature], n_pods: int = _PODS) -> World:
    """The world of a seed with these features; they are applied in the order given."""
    rng = Random(f"{seed}/base")
    world = World(seed)
    world.nodes = [_node(rng, f"node-{i:02}") for i in range(rng.randint(4, 11))]
    for i in range(rng.randint(len(world.nodes), 3 * len(world.nodes))):
        running = pod(rng, f"running-{i:02}")
        running["spec"]["nodeName"] = rng.choice(world.nodes)["metadata"]["name"]
        world.pods.append(running)
    world.incoming = [pod(rng, f"case-{seed}-{i}") for i in range(n_pods)]
    for feature in features:
        feature.world(Random(f"{seed}/{feature.name}"), world)
    for i, one in enumerate(world.incoming):
        for feature in features:
            chance = Random(f"{seed}/{feature.name}/{i}")
            if chance.random() < 0.85:
                feature.pod(chance, world, one)
    return world


def _node(rng: Random, name: str) -> Json:
    labels = {
        HOST: name if rng.random() < 0.95 else "",
        ZONE: f"zone-{rng.randrange(3)}" if rng.random() < 0.85 else "",
        "rack": f"rack-{rng.randrange(4)}" if rng.random() < 0.7 else "",
        "disk": rng.choice(["ssd", "hdd"]) if rng.random() < 0.7 else "",
        "generation": rng.choice(["1", "2", "3", "10", "old"]) if rng.random() < 0.7 else "",
    }
    offered = {
        "cpu": rng.choice(["2", "4", "4", "8", "16", "7910m"]),
        "memory": rng.choice(["4Gi", "8Gi", "8Gi", "16Gi", "32Gi", "15988Mi"]),
        "pods": "110",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {key: value for key, value in labels.items() if value},
        },
        "spec": {},
        "status": {
            "capacity": dict(offered),
            "allocatable": dict(offered),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(rng: Random, name: str) -> Json:
    """A small pod of one or two containers, which may ask nothing."""
    containers = [
        {
            "name": f"c{i}",
            "image": "registry.example/pause:1",
            "resources": {"requests": some_requests(rng), "limits": {}},
        }
        for i in range(rng.choice([1, 1, 2]))
    ]
    labels = {"app": rng.choice(APPS)}
    if rng.random() < 0.6:
        labels["tier"] = rng.choice(TIERS)
    if rng.random() < 0.5:
        labels["version"] = rng.choice(["v1", "v2"])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": rng.choice(list(NAMESPACES)), "labels": labels},
        "spec": {"schedulerName": SCHEDULER, "containers": containers},
    }


def some_requests(rng: Random) -> dict[str, str]:
    """What a container asks: small, and often nothing of one or the other."""
    asked = {
        "cpu": rng.choice(["", "", "0", "100m", "250m", "500m", "1"]),
        "memory": rng.choice(["", "", "0", "128Mi", "200Mi", "512Mi", "1Gi", "1500M"]),
    }
    return {name: amount for name, amount in asked.items() if amount}
