"""Decisions about workloads in queues: who gets quota, who gives it back, and why the others wait."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class DomainsGiven(NamedTuple):
    """In which domains of a topology the pods of a pod set are placed.

    Attributes:
        levels: the labels of nodes that make a domain.
        domains: (the values of these labels, how many pods) by value.
    """

    levels: tuple[str, ...]
    domains: tuple[tuple[tuple[str, ...], int], ...]


class SetGiven(NamedTuple):
    """What a pod set of a workload is given.

    Attributes:
        name: of the pod set.
        n_pods: for how many pods.
        flavors: (resource, flavor) by name.
        used: (resource, amount in base units) of all these pods.
        domains: where its pods are placed, if its flavor has a topology and they are ours; else None.
    """

    name: str
    n_pods: int
    flavors: tuple[tuple[str, str], ...]
    used: tuple[tuple[str, int], ...]
    domains: DomainsGiven | None = None


class Admit(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Give a workload quota of a queue; ``key`` is its namespace and name."""

    key: str
    uid: str
    queue: str
    sets: tuple[SetGiven, ...]


class Preempt(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Ask a workload to give its quota back.

    Attributes:
        key, uid: of the workload.
        by: the namespace and name of the workload that needs the quota.
        reason: as in Kueue's condition ``Preempted``.
    """

    key: str
    uid: str
    by: str
    reason: str


class EvictWorkload(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Ask a workload to give its quota back though nobody else needs it; why, as in Kueue's condition ``Evicted``.

    Attributes:
        key, uid: of the workload.
        cause: what is behind the reason; empty for nothing.
        requeue_at: when it is tried again, in seconds since 1970; 0 for no such time.
        n_requeued: how often it was put back because of its pods, this time included; 0 if it is not because of them.
    """

    key: str
    uid: str
    reason: str
    message: str
    cause: str = ""
    requeue_at: float = 0.0
    n_requeued: int = 0


class Deactivate(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Deactivate a workload; why, as in Kueue's condition ``DeactivationTarget``."""

    key: str
    uid: str
    reason: str
    message: str


class Unreserve(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Take quota back from a workload that was never let start; why, as in its condition ``QuotaReserved``."""

    key: str
    uid: str
    reason: str
    message: str


class Requeue(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Put a workload back into its queue that was evicted before; why, as in Kueue's condition ``Requeued``."""

    key: str
    uid: str
    reason: str
    message: str


class Queued(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Leave a workload in its queue; why, as a reason and a message in Kueue's words."""

    key: str
    uid: str
    reason: str
    message: str


class SetPriority(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Give a workload the priority that its WorkloadPriorityClass has by now."""

    key: str
    uid: str
    priority: int


class SyncChecks(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Let a workload list the admission checks that it has to pass by now: new ones are pending, others are dropped.

    Attributes:
        names: of all of them.
        has_quota: whether the workload has quota. The checks hang on the flavors that it has.
    """

    key: str
    uid: str
    names: tuple[str, ...]
    has_quota: bool


class ReplaceSlice(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Finish a slice of the workloads of a job: another one has its quota; ``by``: its namespace and name."""

    key: str
    uid: str
    by: str


class SetDomains(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Write in which domains of their topology the pods of a workload are by now: nodes of some of them have failed.

    Attributes:
        sets: (name, domains) of each pod set that has domains.
        failed: the nodes that have failed; none if no pod was lost, and only what is written was not so.
    """

    key: str
    uid: str
    sets: tuple[tuple[str, DomainsGiven], ...]
    failed: tuple[str, ...] = ()


# Decisions about workloads that no other workload has a part in.
StepDecision = (
    EvictWorkload
    | Deactivate
    | Unreserve
    | Requeue
    | SetPriority
    | SyncChecks
    | ReplaceSlice
    | SetDomains
)
QuotaDecision = Admit | Preempt | StepDecision | Queued
