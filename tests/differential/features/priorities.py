"""Who may send whom away: priorities, disruption budgets, pods that never preempt."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.worlds import APPS, NAMESPACES, PRIORITIES, Feature, World
from tests.differential.worlds import pod as a_pod

Json = dict[str, Any]
# Of each node so much is taken, by so many pods.
_SHARES = (1, 2, 3, 4)


def _crowd(rng: Random, world: World) -> None:
    """Nodes full of pods of all priorities.

    No two start at the same time: of candidates that are alike in all else kube-scheduler takes any.
    """
    for node in world.nodes:
        cpu = node["status"]["allocatable"]["cpu"]
        milli = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
        n = rng.choice(_SHARES)
        for i in range(n):
            name = f"crowd-{node['metadata']['name']}-{i}"
            one = a_pod(rng, name)
            one["spec"]["nodeName"] = node["metadata"]["name"]
            for container in one["spec"]["containers"]:
                asked = milli // n // len(one["spec"]["containers"])
                container["resources"]["requests"]["cpu"] = f"{asked}m"
            world.pods.append(one)
    for one in world.pods:
        rank(rng, one)
    minutes = rng.sample(range(24 * 60), len(world.pods))
    for one, minute in zip(world.pods, minutes, strict=True):
        started = f"2026-01-02T{minute // 60:02}:{minute % 60:02}:00Z"
        one["status"] = one.get("status", {"phase": "Running"}) | {"startTime": started}


def rank(rng: Random, pod: Json) -> None:
    """Give a pod a priority, or none."""
    name = rng.choice(["", "low", "low", "middle", "high"])
    if name:
        pod["spec"] |= {"priorityClassName": name, "priority": PRIORITIES[name][0]}


def _preemptor(rng: Random, _world: World, pod: Json) -> None:
    name = rng.choice(["low", "middle", "middle", "high", "high", "high", "peaceful"])
    priority, policy = PRIORITIES[name]
    pod["spec"] |= {
        "priorityClassName": name,
        "priority": priority,
        "preemptionPolicy": policy,
    }
    container = pod["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = rng.choice(["1", "1500m", "2", "3500m"])


def _budgets(rng: Random, world: World) -> None:
    for space in NAMESPACES:
        for app in APPS:
            if rng.random() < 0.5:
                world.others.append(_budget(rng, space, app))


def _budget(rng: Random, space: str, app: str) -> Json:
    allowed = rng.choice([0, 0, 1, 2])
    selector: Json = rng.choice([{"matchLabels": {"app": app}}, {"matchLabels": {"app": app}}, {}])
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": space},
        "spec": {"minAvailable": 1, "selector": selector},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 1 + allowed,
            "observedGeneration": 1,
        },
    }


FEATURES = (
    Feature(name="preemption", world=_crowd, pod=_preemptor),
    Feature(name="disruption budgets", world=_budgets),
)
