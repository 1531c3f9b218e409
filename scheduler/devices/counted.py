"""Devices as an extended resource: the node reports their number, and the kubelet's plugin picks them.

Evenkeel writes nothing for such devices, and none of them has an id: they are counted like other resources of the node. Each
is a whole GPU, or a part that NVIDIA's device plugin offers: a replica (time-slicing or MPS), or a MIG instance that an
administrator has made.

In formulas each is a card with the figures ``CARD`` that is idle or in use. What is measured in GPUs and MiB counts parts as
parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.api import names, plugin_parts, wire
from scheduler.api.plugin_parts import Part
from scheduler.api.pods import gpus
from scheduler.devices.contract import NodeReading, Texts

# The resources that request whole devices, in the order in which a pod that requests several is evaluated.
FAMILIES = (names.GPU, names.AMD_GPU, names.INTEL_GPU_I915, names.INTEL_GPU_XE)
# Core percent and MiB that a whole device counts as; its memory is not known.
CARD = (gpus.FULL_CORES, 0)


class WholeDevices:
    """The driver of a family whose devices are only counted."""

    def __init__(self, resource: str) -> None:
        self.name = resource
        self.resources = (resource,)

    def serves(self, seen: NodeReading) -> bool:
        """Whether the node offers any: nodes that no other driver serves are counted."""
        return seen.offered > 0

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        """Read how many devices the limits of the pod's containers request."""
        ask = gpus.read_whole_ask(pod, self.name)
        return () if ask is None else (ask,)

    def read_part(self, resource: str, labels: Texts, offered: int) -> Part:
        """Read what one device is: NVIDIA's may be a part of a GPU also under the name of whole ones."""
        if resource != names.GPU:
            return plugin_parts.WHOLE
        return plugin_parts.read_part(resource, labels, offered)


class PluginParts:
    """The driver of what NVIDIA's device plugin offers as parts of GPUs, under names of their own."""

    name = "NVIDIA device plugin"
    resources = plugin_parts.RESOURCES

    def serves(self, seen: NodeReading) -> bool:
        """Whether the node offers any."""
        return seen.offered > 0

    def read_requests(self, pod: wire.Pod) -> tuple[gpus.GpuAsk, ...]:
        """Read how many parts the limits of the pod's containers request, kind by kind."""
        kinds = dict.fromkeys(_list_named(pod))
        found = (gpus.read_whole_ask(pod, one) for one in kinds)
        return tuple(one for one in found if one is not None)

    def read_part(self, resource: str, labels: Texts, offered: int) -> Part:
        """Read what one part is."""
        return plugin_parts.read_part(resource, labels, offered)


def _list_named(pod: wire.Pod) -> Iterator[str]:
    """List the resources of parts that containers name."""
    for container in (*(pod.spec.init_containers or ()), *pod.spec.containers):
        given = container.resources
        for section in (given.limits, given.requests) if given is not None else ():
            for one in section or ():
                if plugin_parts.is_part(one):
                    yield one
