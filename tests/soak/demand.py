"""The pods: of every vendor and way to share, of three priorities, some of which end by themselves."""

from __future__ import annotations

import random
from typing import Any

from scheduler.embedded.agents.kubelet import RUN_SECONDS
from tests.operator.manifests import container, pod
from tests.soak import vendors

Json = dict[str, Any]
PRIORITIES = {"low": 1, "mid": 500, "high": 1000}
_PRIORITIES = ("low", "low", "low", "low", "mid", "mid", "high", "")
_GPU, _MEM, _CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"
_PERCENT = "nvidia.com/gpumem-percentage"


class Demand:
    """Draws pods.

    Args:
        rng: what decides.
        resources: those of vendors that some node offers.
        run_seconds: how long a pod runs at most that ends by itself.
    """

    def __init__(self, rng: random.Random, resources: tuple[str, ...], run_seconds: float) -> None:
        self._rng, self._run_seconds = rng, run_seconds
        self._requests = {
            resource: listed
            for resource, listed in vendors.list_requests().items()
            if resource in resources
        }

    def make_pod(self, name: str) -> Json:
        rng = self._rng
        made = pod(name, annotations=self._make_notes(), labels={"soak": "pod"})
        made["spec"] |= self.make_spec()
        if rng.random() < 0.75:
            seconds = rng.uniform(3.0, self._run_seconds)
            made["metadata"]["annotations"][RUN_SECONDS] = f"{seconds:.1f}"
        return made

    def make_deployment(self, name: str) -> Json:
        """Pods of low priority that come again when they are evicted."""
        template = pod(name, labels={"app": name})
        limits = {_GPU: 1, _MEM: self._rng.choice((4000, 9000, 12_000))}
        template["spec"] |= {
            "containers": [container(limits=limits, requests={"cpu": "1"})],
            "priorityClassName": "low",
            # The API server admits no other policy.
            "restartPolicy": "Always",
        }
        del template["metadata"]["name"], template["metadata"]["namespace"]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": 6,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": template["metadata"], "spec": template["spec"]},
            },
        }

    def _make_notes(self) -> dict[str, str]:
        rng, notes = self._rng, {}
        for key in ("hami.io/node-scheduler-policy", "hami.io/gpu-scheduler-policy"):
            if rng.random() < 0.2:
                notes[key] = rng.choice(("binpack", "spread"))
        if rng.random() < 0.2:
            notes["nvidia.com/vgpu-mode"] = rng.choice(("hami-core", "mig"))
        return notes

    def make_spec(self) -> Json:
        """Containers and a priority."""
        rng = self._rng
        limits = self._draw()
        spec: Json = {"containers": [container(limits=limits, requests={"cpu": "1"})]}
        # Nodes with devices of two vendors are rare.
        if _MEM in limits and rng.random() < 0.2:
            spec["containers"].append(container("side", limits=self._share()))
        if (_MEM in limits and rng.random() < 0.1) or rng.random() < 0.01:
            spec["initContainers"] = [container("first", limits=self._share())]
        if name := rng.choice(_PRIORITIES):
            spec["priorityClassName"] = name
        return spec

    def _draw(self) -> dict[str, str | int]:
        rng = self._rng
        kinds = (self._share, self._whole, self._part, self._of_vendor, self._nothing)
        return rng.choices(kinds, (40, 12, 10, 36, 2))[0]()

    def _share(self) -> dict[str, str | int]:
        rng = self._rng
        limits: dict[str, str | int] = {_GPU: rng.choice((1, 1, 1, 2))}
        if rng.random() < 0.2:
            limits[_PERCENT] = rng.choice((10, 30, 50, 100))
        else:
            limits[_MEM] = rng.choice((1000, 4000, 7000, 9000, 12_000, 15_000, 19_000))
        if rng.random() < 0.5:
            limits[_CORES] = rng.choice((0, 10, 30, 60, 100))
        return limits

    def _whole(self) -> dict[str, str | int]:
        return {_GPU: self._rng.choice((1, 1, 2, 4))}

    def _part(self) -> dict[str, str | int]:
        return {self._rng.choice(("nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb")): 1}

    def _of_vendor(self) -> dict[str, str | int]:
        listed = self._requests[self._rng.choice(sorted(self._requests))]
        return {**(listed[0] if self._rng.random() < 0.5 else self._rng.choice(listed))}

    def _nothing(self) -> dict[str, str | int]:
        return {}
