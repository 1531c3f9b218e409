"""What is taken of a node beside its resources, and what is there already: host ports, images."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.worlds import Feature, World

Json = dict[str, Any]
_MIB = 2**20
_IMAGES = {
    "registry.example/small:v1": 20 * _MIB,
    "registry.example/web:v1": 150 * _MIB,
    "registry.example/web:latest": 600 * _MIB,
    "registry.example/model:v2": 2900 * _MIB,
    "registry.example:5000/tools:latest": 333 * _MIB,
    f"registry.example/pinned@sha256:{'ab' * 32}": 450 * _MIB,
}
_REFERENCES = (
    *_IMAGES, "registry.example/web", "registry.example:5000/tools", "registry.example/absent:v1",
)  # fmt: skip


def _ports(rng: Random, _world: World, pod: Json) -> None:
    """No two containers of a pod may say the same port, so each has its own, the first the likely one."""
    free = [*rng.choice([[8080, 9090], [8080, 9090], [9090, 8080]]), 7070, 6060, 5050, 4040]
    containers = [*pod["spec"]["containers"]]
    containers += [one for one in pod["spec"].get("initContainers", ()) if rng.random() < 0.5]
    for i, container in enumerate(containers):
        if i == 0 or rng.random() < 0.4:
            port = free.pop(0)
            address = rng.choice(["", "", "0.0.0.0", "127.0.0.1", "10.0.0.1"])
            one = {"containerPort": port, "hostPort": port, "hostIP": address}
            one["protocol"] = rng.choice(["", "TCP", "TCP", "UDP", "SCTP"])
            container["ports"] = [{key: value for key, value in one.items() if value}]


def _ports_world(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.5:
            _ports(rng, world, pod)


def _images_world(rng: Random, world: World) -> None:
    for node in world.nodes:
        here = [name for name in _IMAGES if rng.random() < 0.5]
        node["status"]["images"] = [
            {
                "names": [name, f"mirror.example/{name}"] if rng.random() < 0.3 else [name],
                "sizeBytes": _IMAGES[name],
            }
            for name in here
        ]


def _images(rng: Random, _world: World, pod: Json) -> None:
    spec = pod["spec"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container["image"] = rng.choice(_REFERENCES)
    if rng.random() < 0.35:
        image = {"reference": rng.choice(_REFERENCES), "pullPolicy": "IfNotPresent"}
        spec.setdefault("volumes", []).append({"name": "data", "image": image})


FEATURES = (
    Feature(name="host ports", world=_ports_world, pod=_ports),
    Feature(name="images", world=_images_world, pod=_images),
)
