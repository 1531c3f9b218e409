"""What a call of the cycle makes, and how it makes it."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.door.decisions import Barriers, Diagnosis, Outcome
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE


class Nowhere(NamedTuple):
    """What keeps pods off all nodes; ``why`` where somebody asks."""

    why: Diagnosis | None
    barriers: Barriers


class Call(NamedTuple):
    """A call, or the part of it that is for one entity.

    Attributes:
        explain: holds say why.
        among: [N] the only rows that may be chosen; [0]: all may be.
        makes_room: who fits nowhere may take the place of others.
    """

    outcome: Outcome
    explain: bool
    among: c.Flags = ANYWHERE
    makes_room: bool = True
