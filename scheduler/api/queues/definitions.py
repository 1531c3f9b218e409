"""What queues and flavors are, in plain values that do not depend on who wrote them.

Amounts are in base units: milli-CPU for cpu, else bytes or counts; what is too large for an int64 is UNLIMITED.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from scheduler.api.pods.tolerations import TolerationKey
from scheduler.api.selectors import NOTHING, Selector

UNLIMITED = 2**63 - 1


class Quota(NamedTuple):
    """What a queue or a cohort has of a resource in a flavor.

    Attributes:
        nominal: what it is owed.
        borrowing: how much more it may use while others leave that idle; None for any amount.
        lending: how much of what it is owed others may use; None for all of it.
    """

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


class FlavorQuotas(NamedTuple):
    """The quotas of a flavor, one for each resource of its group, in their order."""

    flavor: str
    quotas: tuple[Quota, ...]


class ResourceGroup(NamedTuple):
    """Resources that a pod gets in one flavor; the flavors in the order in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


class Policy(StrEnum):
    """Whose workloads may be preempted."""

    NEVER = "Never"
    LOWER = "LowerPriority"
    LOWER_OR_NEWER = "LowerOrNewerEqualPriority"
    ANY = "Any"


class Stop(StrEnum):
    """Whether a queue admits workloads, and whether those that run may stay."""

    NONE = "None"
    HOLD = "Hold"
    DRAIN = "HoldAndDrain"


class Preemption(NamedTuple):
    """Whose workloads a queue may preempt.

    Attributes:
        within: of its own workloads.
        reclaim: of those of other queues of the cohort, to get back what it is owed.
        borrows: also to borrow, those of lower priority.
        threshold: then only those of this priority or a lower one; None for all.
    """

    within: Policy = Policy.NEVER
    reclaim: Policy = Policy.NEVER
    borrows: bool = False
    threshold: int | None = None

    @property
    def takes_back(self) -> bool:
        """Whether it may preempt anybody."""
        return self.within != Policy.NEVER or self.reclaim != Policy.NEVER


class Fungibility(NamedTuple):
    """Which flavor is taken of several that would do.

    Attributes:
        skips_borrowing: the next flavor is tried before a queue borrows.
        skips_preempting: the next flavor is tried before anybody is preempted.
        prefers_preempting: of flavors that were tried, one in which it borrows less is better than one in which it
            preempts less.
    """

    skips_borrowing: bool = False
    skips_preempting: bool = True
    prefers_preempting: bool = False


_NO_PREEMPTION = Preemption()
_FIRST_THAT_FITS = Fungibility()


class CheckRule(NamedTuple):
    """An admission check of a queue; with ``flavors`` only for workloads that get one of them."""

    name: str
    flavors: frozenset[str] = frozenset()


# Controllers of admission checks that would need more of Kueue than there is here.
REFUSED_CHECKS = frozenset({
    "kueue.x-k8s.io/multikueue",
    "kueue.x-k8s.io/provisioning-request",
})  # fmt: skip


class Check(NamedTuple):
    """An admission check of the cluster: who answers for it, and whether that controller says that it does not."""

    controller: str
    is_inactive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDefinition:
    """A queue of the cluster.

    Attributes:
        cohort: with which queues it shares what is idle; empty for none.
        is_strict: nobody passes the first one that waits.
        namespaces: whose workloads it takes.
        weight: by how much its share is divided; 0: whatever it borrows is too much.
        by_usage: those who have used less come first, before all priorities.
        refused: fields that are not taken over; a queue with any admits nothing.
        mistake: what is wrong with the object; the rest is as it was before, and the queue admits nothing.
        is_going: it is being deleted: it admits nothing, and goes when none of its workloads has quota.
    """

    name: str
    cohort: str = ""
    groups: tuple[ResourceGroup, ...] = ()
    is_strict: bool = False
    namespaces: Selector = NOTHING
    fungibility: Fungibility = _FIRST_THAT_FITS
    preemption: Preemption = _NO_PREEMPTION
    checks: tuple[CheckRule, ...] = ()
    stop: Stop = Stop.NONE
    weight: float = 1.0
    by_usage: bool = False
    refused: tuple[str, ...] = ()
    mistake: str = ""
    is_going: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortDefinition:
    """A cohort: queues and cohorts that lend to each other, and what they have in common beside that."""

    name: str
    parent: str = ""
    groups: tuple[ResourceGroup, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalQueueDefinition:
    """The queue of a namespace, which leads to a queue of the cluster.

    Attributes:
        weight: by which what it has used is divided, within that queue.
        consumed: what it had used on average, by resource, in cores, bytes and counts, when that was last written down.
        consumed_at: when that was; 0 if it never was.
        is_going: it is being deleted.
    """

    namespace: str
    name: str
    queue: str
    stop: Stop = Stop.NONE
    weight: float = 1.0
    # They change again and again, and matter once: when the local queue is seen first.
    consumed: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    consumed_at: float = field(default=0.0, compare=False)
    is_going: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A kind of nodes that quota is given of.

    Attributes:
        labels: the labels of its nodes.
        taints: (key, value, effect) of its nodes.
        tolerations: what its pods tolerate beside their own.
        topology: by which topology its pods are placed; empty for none.
    """

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[tuple[str, str, str], ...] = ()
    tolerations: tuple[TolerationKey, ...] = ()
    topology: str = ""
