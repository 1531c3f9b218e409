"""A run as lines to draw."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.replay.experiment import Floats


@dataclass(frozen=True, slots=True)
class Curve:
    """One point per whole percent of load or per step of time.

    Attributes:
        x: load in percent (fill), or time, in the units of the workload.
        allocated: percent of the capacity of the load's resource.
        frag: fragments in percent of that capacity; nan when not measured.
        occupied: percent of the nodes with any pod.
    """

    x: Floats
    allocated: Floats
    frag: Floats
    occupied: Floats
