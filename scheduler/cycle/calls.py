"""The settings and the outcome of a call of the cycle."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.door.decisions import Barriers, Diagnosis, Outcome
from scheduler.schema import columns as c
from scheduler.schema.world import ANY_ROWS, ANYWHERE


class Nowhere(NamedTuple):
    """What keeps pods off all nodes; ``why`` is None when the call does not explain."""

    why: Diagnosis | None
    barriers: Barriers


class Call(NamedTuple):
    """A call of the cycle, or the part of a call that is for one entity.

    Attributes:
        explain: holds say why the pod fits nowhere.
        among: [N] the only rows that may be chosen; [0]: all rows may be chosen.
        wanted: [k] the row that each pod of the call goes to if it fits there; [0]: the best row each time.
        makes_room: a pod that fits nowhere may preempt.
    """

    outcome: Outcome
    explain: bool
    among: c.Flags = ANYWHERE
    makes_room: bool = True
    wanted: c.Ints = ANY_ROWS
