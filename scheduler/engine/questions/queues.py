"""Questions about queues, and about the workloads in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.engine.questions.contract import Fact


class QuotaUse(NamedTuple):
    """What a queue or a cohort has of a resource in a flavor, in base units, and what of it is used.

    Attributes:
        nominal: what it is owed; of a cohort with what is lent from below.
        used: what it uses; of a cohort what its children use beyond what is theirs alone.
        borrowed: what it uses beyond what it is owed.
        available: how much more it may use; negative if there is less than is used.
    """

    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    available: int


class QueueStanding(NamedTuple):
    """A queue of the cluster, or a cohort.

    Attributes:
        is_cohort: whether it is a cohort.
        parent: the name of the cohort above; empty for none.
        share: 1000 times what it borrows of what could be lent to it, by its weight; infinite if it borrows without one.
        dominant: the resource of the share; empty if it borrows nothing.
        waiting, parked: how many workloads wait, and how many of them wait for a change.
        holding, admitted: how many have quota, and how many of these may run.
        uses: by resource and flavor.
        inactive: why it admits nobody, as reasons and messages; empty if it does.
    """

    name: str
    is_cohort: bool
    parent: str
    weight: float
    share: float
    dominant: str
    waiting: int
    parked: int
    holding: int
    admitted: int
    uses: tuple[QuotaUse, ...]
    inactive: tuple[tuple[str, str], ...] = ()


class KnownQueues(Fact[Sequence[QueueStanding]], frozen=True):
    """All queues of the cluster and all cohorts, each tree from its root down. O(queues · columns)."""


class WorkloadStanding(NamedTuple):
    """A workload.

    Attributes:
        key: its namespace and name.
        local, queue: its local queue, and the queue that this leads to; empty if there is none.
        where: ``waits``, ``holds`` or ``aside``.
        position: how many of its queue come before it; -1 if it does not wait there.
        flavors: of what it holds, (flavor, resource, amount in base units).
        is_going: it has been asked to give its quota back.
        reason, message: why it waits, in Kueue's words.
    """

    key: str
    local: str
    queue: str
    priority: int
    where: str
    position: int
    flavors: tuple[tuple[str, str, int], ...]
    is_going: bool
    reason: str
    message: str


class KnownWorkloads(Fact[Sequence[WorkloadStanding]], frozen=True):
    """All workloads, by queue and position. O(n · log n)."""
