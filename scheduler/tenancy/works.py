"""Workloads as their queues know them: where each waits, what it holds, and what came of its last try."""

from __future__ import annotations

from enum import StrEnum

from scheduler.api.queues.workloads import PodSet, WorkloadDefinition, count_pods

# The least first: the opposite of the priority, the time, and the uid.
Place = tuple[int, float, str]
Likeness = tuple[object, ...]


class Where(StrEnum):
    """Where a workload is."""

    # It waits in a queue.
    WAITS = "waits"
    # It has quota.
    HOLDS = "holds"
    # It is finished, put aside, or its queue is not there.
    ASIDE = "aside"


class Work:
    """A workload.

    Attributes:
        defined: the workload as it is written.
        key, uid, namespace: of its object.
        local: the key of its local queue.
        place: its place in its queue, the least first.
        counts: how many pods of each pod set have not ended for good.
        likeness: what workloads have in common that get the same answer.
        queue: the queue of the cluster in which it waits or has quota; empty if there is none.
        where: where it is.
        reserved_at: since when it has its quota.
        is_assumed: it has quota, but its object does not say so yet.
        is_going: it has been asked to give its quota back.
        tried: after which flavors its next try goes on.
        tried_at: the tree's cycle, and the generation of the queue, of its last try.
        reason, message: why it waits, in Kueue's words; of one that waits its queue may know better.
        waits_for: the victims whose quota it waits for.
        given: the keys and uids of those for whom it has given quota back.
        is_owed: others have given quota back for it, and it has not got any since.
        replaced_by: the slice that has taken its quota over; None for none.
    """

    __slots__ = (
        "counts",
        "defined",
        "given",
        "is_assumed",
        "is_going",
        "is_owed",
        "key",
        "likeness",
        "local",
        "message",
        "namespace",
        "place",
        "queue",
        "reason",
        "replaced_by",
        "reserved_at",
        "tried",
        "tried_at",
        "uid",
        "waits_for",
        "where",
    )  # fmt: skip

    def __init__(self, defined: WorkloadDefinition) -> None:
        self.key, self.uid = defined.key, defined.uid
        self.namespace = defined.key.partition("/")[0]
        self.queue, self.where, self.reserved_at = "", Where.ASIDE, 0.0
        self.is_assumed = self.is_going = self.is_owed = False
        self.tried: list[dict[str, int]] = []
        self.tried_at = (-1, -1)
        self.reason = self.message = ""
        self.waits_for: frozenset[str] = frozenset()
        self.given: frozenset[tuple[str, str]] = frozenset()
        self.replaced_by: Work | None = None
        self.defined = defined
        self.define(defined)

    def define(self, defined: WorkloadDefinition) -> None:
        """Take over how its object has changed. With another priority or queue it need spare nobody."""
        if (defined.priority, defined.local) != (self.defined.priority, self.defined.local):
            self.given = frozenset()
        self.defined = defined
        self.local = f"{self.namespace}/{defined.local}"
        self.place: Place = (-defined.priority, defined.since, defined.uid)
        self.counts = count_pods(defined.sets, defined.reclaimed)
        self._compare()

    def give_way(self, to: tuple[str, str]) -> None:
        """Note the key and the uid of a workload for which this one gives quota back."""
        self.given |= {to}
        self._compare()

    def _compare(self) -> None:
        """Note what it has in common with others that get the same answer."""
        sets = tuple((one.name, id(one.shape), one.least) for one in self.defined.sets)
        replaces, evicts_nobody = self.defined.replaces, self.defined.evicts_nobody
        counts = tuple(self.counts)
        self.likeness: Likeness = (self.priority, sets, counts, self.given, replaces, evicts_nobody)

    @property
    def priority(self) -> int:
        """Its priority."""
        return self.defined.priority

    @property
    def since(self) -> float:
        """Its place in the order."""
        return self.defined.since

    @property
    def sets(self) -> tuple[PodSet, ...]:
        """Its pod sets."""
        return self.defined.sets

    def list_used(self) -> dict[tuple[str, str], int]:
        """List what the workload uses of what it was given, by flavor and resource."""
        used: dict[tuple[str, str], int] = {}
        admission = self.defined.admission
        left = {one.name: n for one, n in zip(self.sets, self.counts, strict=True)}
        for one in admission.assigned if admission else ():
            flavors = dict(one.flavors)
            # Pods that have ended for good hold nothing; of a part that was let in, as many hold as are left.
            n_pods = min(one.n_pods, left.get(one.name, one.n_pods))
            amounts = dict(one.used)
            for resource, flavor in flavors.items():
                amount, column = amounts.get(resource, 0), (flavor, resource)
                of_pods = amount if n_pods == one.n_pods else amount // one.n_pods * n_pods
                used[column] = used.get(column, 0) + of_pods
        return used
