"""Whole devices as an extended resource: the node reports their number, and the kubelet's plugin picks them.

Evenkeel writes nothing for whole devices, and none of them has an id: they are counted like other resources of the node.
In formulas each whole device is a card with the figures ``CARD`` that is idle or in use.
"""

from __future__ import annotations

from scheduler.api import names, wire
from scheduler.api.pods import gpus
from scheduler.devices.contract import Figures, NodeReading

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

    def sum_figures(self, offered: int) -> Figures:
        """Sum up the cores; memory and sharers are 0, because nodes do not report them."""
        return offered * CARD[0], offered * CARD[1], 0
