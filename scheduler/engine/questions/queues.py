"""Questions about queues, and about the workloads in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api.queues.definitions import (
    CohortDefinition,
    LocalQueueDefinition,
    QueueDefinition,
)
from scheduler.api.queues.kai import KaiQueue, Vector
from scheduler.engine.questions.contract import Fact, Lookup, Question, Steps


class QuotaUse(NamedTuple):
    """What a queue or a cohort has of a resource in a flavor, in base units, and what of it is used.

    Attributes:
        nominal: what it is owed; of a cohort with what is lent from below.
        used: what it uses; of a cohort what its children use beyond what is theirs alone.
        borrowed: what it uses beyond what it is owed.
        lent: what it is owed, does not use and could not use now, because others do.
        available: how much more it may use; negative if there is less than is used.
        admitted: what of ``used`` is used by workloads that may run; 0 for a cohort.
        borrowing, lending: its limits; None for none.
    """

    flavor: str
    resource: str
    nominal: int
    used: int
    borrowed: int
    lent: int
    available: int
    admitted: int = 0
    borrowing: int | None = None
    lending: int | None = None


class QueueStanding(NamedTuple):
    """A queue of the cluster, or a cohort.

    Attributes:
        is_cohort: whether it is a cohort.
        parent: the name of the cohort above; empty for none.
        share: 1000 times what it borrows of what could be lent to it, by its weight; infinite if it borrows without one.
        dominant: the resource of the share; empty if it borrows nothing.
        waiting, parked: how many workloads wait, and how many of them wait for a change.
        placeless: how many of those who wait could have quota, and have no place for all their pods.
        holding, admitted: how many have quota, and how many of these may run.
        uses: by resource and flavor.
        inactive: why it admits nobody, as reasons and messages; empty if it does.
        remarks: what is written in it and means nothing.
    """

    name: str
    is_cohort: bool
    parent: str
    weight: float
    share: float
    dominant: str
    waiting: int
    parked: int
    placeless: int
    holding: int
    admitted: int
    uses: tuple[QuotaUse, ...]
    inactive: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()


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
        since: its place in the order, as a time.
        reserved_at: since when it has quota; 0 if it never had any.
        is_admitted: it may run.
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
    since: float
    reserved_at: float
    is_admitted: bool


class KnownWorkloads(Fact[Sequence[WorkloadStanding]], frozen=True):
    """All workloads, by queue and position. O(n · log n)."""


class PodsOfWorkload(Fact[Sequence[str]], frozen=True):
    """The uids of the pods of a workload that exist, ``key`` is its namespace and name; none for one that is not known."""

    key: str


class QueueRecord(NamedTuple):
    """How a queue of the cluster, or a cohort, is defined.

    Attributes:
        queue, cohort: the definition of either; both are None of a cohort that is only named.
        locals: the local queues that lead to the queue, by namespace and name.
    """

    queue: QueueDefinition | None
    cohort: CohortDefinition | None
    locals: tuple[LocalQueueDefinition, ...] = ()


class KnownQueue(Fact[QueueRecord], frozen=True):
    """How a queue of the cluster, or a cohort, is defined. O(local queues)."""

    name: str
    is_cohort: bool = False


class QuotaBorrower(NamedTuple):
    """Another queue that uses more than it is owed: by how much, and how many of its workloads hold any of it."""

    queue: str
    borrowed: int
    n_workloads: int


class QuotaLack(NamedTuple):
    """What a workload wants of a resource in a flavor, were all its pods in this flavor, in base units.

    Attributes:
        requested: what it wants.
        available: what its queue could use more now.
        most: what its queue could use if nobody used anything.
        nominal: what its queue is owed.
        used: what its queue uses already.
        n_workloads: how many workloads of its queue hold any of it.
        others: who borrows it.
    """

    flavor: str
    resource: str
    requested: int
    available: int
    most: int
    nominal: int
    used: int
    n_workloads: int
    others: tuple[QuotaBorrower, ...]


class QuotaGiver(NamedTuple):
    """A workload that may be asked to give its quota back, and the reason that its condition would have."""

    key: str
    queue: str
    priority: int
    why: str


class FlavorOutlook(NamedTuple):
    """What keeps a workload from a flavor.

    Attributes:
        flavor: its name.
        refusals: why it does not suit the workload, however much is free of it, in Kueue's words.
        lacks: what is wanted of it.
        givers: who may be asked to give back what is missing, whether or not that is enough.
    """

    flavor: str
    refusals: tuple[str, ...]
    lacks: tuple[QuotaLack, ...]
    givers: tuple[QuotaGiver, ...]


class QuotaWait(NamedTuple):
    """Why a workload waits for quota, as a cycle would find it whose turn it is now.

    Attributes:
        verdict: ``fits``, ``preempts``, ``waits``, ``goes`` (its victims are going), or ``aside`` (it may not be tried).
        reason, message: why it waits, in Kueue's words; both are empty if it fits.
        victims: who would be asked to go for it; of one that ``goes``, who was.
        flavors: by the groups of resources of its queue, in the order in which they are tried.
        uncovered: resources that it requests, and of which its queue has no quota in any flavor.
        fewer: pod sets of which fewer pods would start: the name, how many, and of how many.
    """

    verdict: str
    reason: str
    message: str
    victims: tuple[QuotaGiver, ...] = ()
    flavors: tuple[FlavorOutlook, ...] = ()
    uncovered: tuple[str, ...] = ()
    fewer: tuple[tuple[str, int, int], ...] = ()


class WhyNoQuota(Question[QuotaWait | None], frozen=True):
    """Why a workload has no quota, and who could give it some; None if it has quota, is finished or is not known.

    The search for victims is that of a cycle, in trials that are undone. Its cost is that of its turn.
    """

    key: str


class Waiter(NamedTuple):
    """A workload that waits in a queue; ``verdict``, ``reason`` and ``message`` as in ``QuotaWait``."""

    key: str
    verdict: str
    reason: str
    message: str


class WaitersOf(Question[Sequence[Waiter]], frozen=True):
    """Those who wait in a queue in their order, at most so many, each as if it were its turn.

    Workloads that are alike share an answer: O(n · log n) and a turn for each kind.
    """

    queue: str
    most: int


class QueuePath(Lookup[str], frozen=True):
    """The queue of a workload and the cohorts above it, the widest first: ``/all/team/queue``; empty if it has none."""

    key: str


class ChecksToPass(Lookup[tuple[str, ...]], frozen=True):
    """The admission checks that a workload has to pass that gets these flavors of a queue, by name."""

    queue: str
    flavors: frozenset[str]


class IsObjectInUse(Fact[bool], frozen=True):
    """Whether a queue of the cluster, a flavor, an admission check or a topology is used, so that it has to stay.

    ``kind`` as in the table of kinds, ``key``: its name. O(queues · flavors). False for other kinds.
    """

    kind: str
    key: str


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
        parked: of a queue of a namespace, how many of those that wait do so for a change.
        uses: by flavors and resources in their order; nothing for a cohort.
        inactive: why it admits nobody, as a reason and a message; empty if it does.
        consumed: of a queue of a namespace whose usage counts, what it has used on average, in cores, bytes and counts.
        consumed_at: when that was so, in seconds since 1970; 0 where it does not count.
    """

    kind: str
    key: str
    share: float = 0.0
    pending: int = 0
    reserving: int = 0
    admitted: int = 0
    uses: tuple[FlavorUse, ...] = ()
    inactive: tuple[str, str] = ("", "")
    consumed: tuple[tuple[str, float], ...] = ()
    consumed_at: float = 0.0
    parked: int = 0


class KaiFigures(NamedTuple):
    """One of KAI's queues, with what its status says: milli-CPU, bytes and millionths of cards.

    Attributes:
        defined: what its object says.
        children: the names of the queues directly within it.
        allocated, fixed, requested: what its pods hold, what of it cannot be preempted, and what they hold and want.
        fair: its fair share.
        is_orphan: whether the queue above it does not exist.
        is_over_quota: whether it holds more of a resource than its quota.
        problem: why it starts no pods, though there is no queue within it; empty for nothing.
    """

    defined: KaiQueue
    children: tuple[str, ...]
    allocated: Vector
    fixed: Vector
    requested: Vector
    fair: tuple[float, float, float]
    is_orphan: bool
    is_over_quota: bool
    problem: str


class StatusesOfKaiQueues(Fact[Sequence[KaiFigures]], frozen=True):
    """All queues of KAI, those of one level by age and name. O(queues)."""


class StatusesOfQueues(Fact[Steps[Sequence[QueueFigures]]], frozen=True):
    """The figures of all queues and of the cohorts that have an object, in steps. O(workloads)."""
