"""Questions about queues, and about the workloads in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.engine.questions.contract import Fact, Lookup, Steps


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


class QueuePath(Lookup[str], frozen=True):
    """The queue of a workload and the cohorts above it, the widest first: ``/all/team/queue``; empty if it has none."""

    key: str


class ChecksToPass(Lookup[tuple[str, ...]], frozen=True):
    """The admission checks that a workload has to pass that gets these flavors of a queue, by name."""

    queue: str
    flavors: frozenset[str]


class FlavorUse(NamedTuple):
    """What workloads of a queue use of a resource in a flavor, in base units.

    Attributes:
        reserved: of all that have quota.
        admitted: of those that may run.
        borrowed, admitted_borrowed: what of these is beyond what the queue is owed.
    """

    flavor: str
    resource: str
    reserved: int
    admitted: int
    borrowed: int = 0
    admitted_borrowed: int = 0


class QueueFigures(NamedTuple):
    """What the status of a queue of the cluster, or of a namespace, or of a cohort says.

    Attributes:
        kind: the kind of its object in the table of kinds.
        key: its name, with its namespace if it has one.
        share: as in ``QueueStanding``; 0 for a queue of a namespace.
        pending, reserving, admitted: how many workloads wait, have quota, and may run.
        uses: by flavors and resources in their order; nothing for a cohort.
        inactive: why it admits nobody, as a reason and a message; empty if it does.
    """

    kind: str
    key: str
    share: float = 0.0
    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    uses: tuple[FlavorUse, ...] = ()
    inactive: tuple[str, str] = ("", "")


class StatusesOfQueues(Fact[Steps[Sequence[QueueFigures]]], frozen=True):
    """The figures of all queues and of the cohorts that have an object, in steps. O(workloads)."""
