"""What pods ask of a node's resources."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from tests.differential.worlds import OVERHEADS, Feature, World, some_requests
from tests.oracles.quantities import exact

Json = dict[str, Any]
_WIDGETS = ("example.com/widget", "example.org/gadget")
_PAGES = ("hugepages-2Mi", "hugepages-1Gi")


def _offer(node: Json, resource: str, amount: str) -> None:
    node["status"]["allocatable"][resource] = node["status"]["capacity"][resource] = amount


def _ask(container: Json, resource: str, amount: str, *, limited: bool = False) -> None:
    container["resources"]["requests"][resource] = amount
    if limited:
        container["resources"]["limits"][resource] = amount


def _large(rng: Random, _world: World, pod: Json) -> None:
    container = rng.choice(pod["spec"]["containers"])
    _ask(container, "cpu", rng.choice(["1", "1500m", "2", "3500m", "7", "15", "0"]))
    _ask(container, "memory", rng.choice(["1Gi", "3Gi", "3500M", "7Gi", "15Gi", "0"]))


def _scratch_world(rng: Random, world: World) -> None:
    for node in world.nodes:
        if rng.random() < 0.75:
            _offer(node, "ephemeral-storage", rng.choice(["10Gi", "20Gi", "50G", "100Gi"]))
    for pod in world.pods:
        if rng.random() < 0.4:
            _scratch(rng, world, pod)


def _scratch(rng: Random, _world: World, pod: Json) -> None:
    amount = rng.choice(["1Gi", "5Gi", "9Gi", "15Gi", "40Gi"])
    _ask(rng.choice(pod["spec"]["containers"]), "ephemeral-storage", amount)


def _extended_world(rng: Random, world: World) -> None:
    for node in world.nodes:
        for resource in _WIDGETS:
            if rng.random() < 0.6:
                _offer(node, resource, rng.choice(["0", "1", "2", "4", "8"]))
    for pod in world.pods:
        if rng.random() < 0.4:
            _extended(rng, world, pod)


def _extended(rng: Random, _world: World, pod: Json) -> None:
    for resource in rng.sample(_WIDGETS, rng.choice([1, 1, 2])):
        _ask(rng.choice(pod["spec"]["containers"]), resource, rng.choice("0112234"), limited=True)


def _pages_world(rng: Random, world: World) -> None:
    for node in world.nodes:
        for resource in _PAGES:
            if rng.random() < 0.6:
                _offer(node, resource, rng.choice(["0", "1Gi", "2Gi", "4Gi"]))
    for pod in world.pods:
        if rng.random() < 0.4:
            _pages(rng, world, pod)


def _pages(rng: Random, _world: World, pod: Json) -> None:
    container = rng.choice(pod["spec"]["containers"])
    _ask(container, "cpu", "100m")  # without cpu or memory no pages are given
    _ask(container, rng.choice(_PAGES), rng.choice(["1Gi", "1Gi", "2Gi"]), limited=True)


def _init(rng: Random, _world: World, pod: Json) -> None:
    """Sidecars and steps in any order: each step runs on top of the sidecars before it."""
    containers = []
    for i in range(rng.randint(1, 4)):
        one: Json = {
            "name": f"i{i}",
            "image": "registry.example/pause:1",
            "resources": {"requests": some_requests(rng), "limits": {}},
        }
        if rng.random() < 0.5:
            one["restartPolicy"] = "Always"
        elif rng.random() < 0.5:
            _ask(one, "cpu", rng.choice(["1", "2", "3500m"]))
            _ask(one, "memory", rng.choice(["2Gi", "5Gi"]))
        containers.append(one)
    pod["spec"]["initContainers"] = containers


def _init_world(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.4:
            _init(rng, world, pod)


def _overhead(rng: Random, _world: World, pod: Json) -> None:
    name = rng.choice(list(OVERHEADS))
    pod["spec"] |= {"runtimeClassName": name, "overhead": dict(OVERHEADS[name])}


def _overhead_world(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.4:
            _overhead(rng, world, pod)


def _pod_level(rng: Random, _world: World, pod: Json) -> None:
    """At least what its containers ask together: the API server insists on that."""
    spec = pod["spec"]
    asked = {}
    for resource in rng.choice([("cpu",), ("memory",), ("cpu", "memory")]):
        amounts = [
            exact(one["resources"]["requests"].get(resource, "0")) or Fraction(0)
            for one in (*spec["containers"], *spec.get("initContainers", ()))
        ]
        extra = rng.choice([0, 1, 2]) if resource == "cpu" else rng.choice([0, 2**30, 2**32])
        asked[resource] = _written(sum(amounts, Fraction(extra)))
    spec["resources"] = {"requests": asked}


def _written(amount: Fraction) -> str:
    return f"{int(amount * 1000)}m" if amount.denominator > 1 else str(amount)


def _pod_level_world(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.4:
            _pod_level(rng, world, pod)


def _full_world(rng: Random, world: World) -> None:
    for node in world.nodes:
        if rng.random() < 0.6:
            here = sum(
                pod["spec"].get("nodeName") == node["metadata"]["name"] for pod in world.pods
            )
            _offer(node, "pods", str(max(0, here + rng.choice([-1, 0, 1, 2]))))


FEATURES = (
    Feature(name="large requests", pod=_large),
    Feature(name="ephemeral storage", world=_scratch_world, pod=_scratch),
    Feature(name="extended resources", world=_extended_world, pod=_extended),
    Feature(name="hugepages", world=_pages_world, pod=_pages),
    Feature(name="sidecars and init containers", world=_init_world, pod=_init),
    Feature(name="overhead", world=_overhead_world, pod=_overhead),
    # After all that changes what containers ask.
    Feature(name="pod-level resources", world=_pod_level_world, pod=_pod_level),
    Feature(name="full nodes", world=_full_world),
)
