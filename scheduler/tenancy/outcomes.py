"""What comes of a cycle over a tree of queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.victims import Victim
from scheduler.tenancy.works import Work

# Why a workload waits, in Kueue's words.
WAITS_FOR_QUOTA, WAITS_FOR_VICTIMS = "WaitingForQuota", "WaitingForPreemptedWorkloads"
NO_PLACE = "TopologyPlacementFailed"


class Next(NamedTuple):
    """What becomes of a workload that gets nothing in this cycle.

    Attributes:
        is_parked: it waits for a change in the tree, like all that are alike; else it is tried again in the next cycle.
        is_preemptor: it waits for victims.
        is_kept_back: it could have had quota, but waits because of what another one is promised.
    """

    is_parked: bool = False
    is_preemptor: bool = False
    is_kept_back: bool = False


AGAIN, PARKED, PREEMPTOR = Next(), Next(is_parked=True), Next(is_preemptor=True)
KEPT_BACK = Next(is_parked=True, is_kept_back=True)


@dataclass(slots=True)
class Outcome:
    """What came of a cycle.

    Attributes:
        admitted: who got quota, and in which flavors.
        preempted: who has to go, for whom and why, and was not asked to go before.
        left: who got nothing, and what becomes of each.
    """

    admitted: list[tuple[Work, Assignment]] = field(default_factory=list)
    preempted: list[tuple[Victim, Work]] = field(default_factory=list)
    left: list[tuple[Work, Next]] = field(default_factory=list)


# What workloads that wait for their victims could get, and who has to go for it, by their keys.
Kept = dict[str, tuple[Assignment, tuple[Victim, ...]]]


def has_more(tried: Sequence[Mapping[str, int]]) -> bool:
    """Whether the next try goes on behind some flavor."""
    return any(at != -1 for one in tried for at in one.values())


def find_next(work: Work, *, goes_on: bool) -> Next:
    """Find what becomes of a workload that does not fit: there may be flavors that were not tried yet."""
    return AGAIN if goes_on or has_more(work.tried) else PARKED
