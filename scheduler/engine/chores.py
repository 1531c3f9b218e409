"""What is done for the pods that wait for a change, a little at a time, beside the decisions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import chain

from scheduler.api.door.decisions import Hold, Outcome
from scheduler.cycle.schedule import Cycle
from scheduler.engine.budget import Budget, Work
from scheduler.queues.helping import Changed
from scheduler.queues.pending import Pending
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# Kinds that a bound rules out take next to no time: so many of them are one piece of work.
_STRIDE = 64
# Kinds that are asked after a change whose place they could take: each may have to ask all nodes.
_HUNTS_MAX = 64
_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often those who wait are looked at, in seconds.

    Attributes:
        help: how far apart they are looked at after changes, at least.
        flush: how often those that have waited for long are looked for.
        explain: how far apart they are told anew why they wait, at least.
        explain_rate: for how many pods a second, at most.
    """

    help: float = 0.02
    flush: float = 30.0
    explain: float = 5.0
    explain_rate: float = 100.0


# For virtual time: every change is looked at when it comes, and nobody reads along.
PROMPT = Pace(help=0.0, flush=_NEVER, explain=_NEVER)


class Chores:
    """Helps and explains. What is begun and not finished goes on at the next turn."""

    def __init__(self, cluster: Cluster, cycle: Cycle, pending: Pending, pace: Pace) -> None:
        self._cluster, self._cycle, self._pending, self._pace = cluster, cycle, pending, pace
        self._parked = pending.parked
        self._helping: Iterator[None] = iter(())
        self._explaining: Iterator[None] = iter(())
        self._outcome = Outcome()
        self._is_unfinished = False
        self._helped_at = self._flushed_at = self._explained_at = 0.0
        # Positions in the cluster's log of changes.
        self._helped_position = self._explained_position = -1
        self._helped_storage = 0

    def due(self) -> float:
        """Time of the next thing to do; infinite when only a change can bring one."""
        if self._is_unfinished:
            return 0.0
        if self._parked and self._has_changed():
            return self._helped_at + self._pace.help
        return _NEVER

    def work(self, now: float, budget: Budget, outcome: Outcome) -> None:
        """Look after the pods that wait, as far as the budget goes. What they are told goes into the outcome."""
        if now - self._flushed_at >= self._pace.flush:
            self._flushed_at = now
            self._pending.flush(now)
        if not self._is_unfinished:
            if not self._parked:
                return
            self._begin(now)
        self._outcome = outcome
        self._is_unfinished = True
        for chore in (self._helping, self._explaining):
            for _ in chore:
                if not budget.allows(Work.CHORE):
                    return
        self._is_unfinished = False

    def _begin(self, now: float) -> None:
        position, pace = self._cluster.moved.position, self._pace
        if self._has_changed() and now - self._helped_at >= pace.help:
            rows = self._cluster.moved.since(self._helped_position)
            changed = Changed(self._cluster, rows if self._helped_position >= 0 else None)
            storage = self._cluster.storage.n_helpful
            chores = [self._help(changed, now)]
            if self._helped_storage != storage:
                chores.append(self._help_with_storage(now))
            self._helped_position, self._helped_at = position, now
            self._helped_storage = storage
            self._helping = chain.from_iterable(chores)
        rest = max(pace.explain, len(self._parked) / pace.explain_rate)
        if self._explained_position != position and now - self._explained_at >= rest:
            self._explained_position, self._explained_at = position, now
            self._explaining = self._explain_again()

    def _has_changed(self) -> bool:
        """Whether anything has that may help."""
        storage = self._cluster.storage.n_helpful
        return (
            self._helped_position != self._cluster.moved.position or self._helped_storage != storage
        )

    def _help_with_storage(self, now: float) -> Iterator[None]:
        """Move the pods that other storage than before could help, wherever that is."""
        for kind in self._parked.kinds():
            first = self._parked.one_of(kind)
            if first is None or first.volumes is None:
                continue
            if any(self._cycle.could_place(pod) for pod in self._one_of_each(kind)):
                self._pending.helped(kind, now)
            yield

    def _help(self, changed: Changed, now: float) -> Iterator[None]:
        """Move the pods that a change could help. It asks one question for each kind that is not ruled out."""
        yield from self._help_nominated(changed, now)
        for i, kind in enumerate(self._parked.kinds_within(changed.most())):
            if i % _STRIDE == 0:
                yield
            for pod in self._one_of_each(kind):
                # When it was last looked at, other pods may have kept it from nodes that did not change since.
                looks_far = self._parked.looks_far(kind) or self._cycle.looks_far(pod)
                if not looks_far and not changed.may_help(pod.template):
                    break
                if self._cycle.could_place(pod, None if looks_far else changed.rows):
                    self._pending.helped(kind, now)
                    yield
                    break
                if self._cycle.looks_far(pod):
                    self._parked.look_far(kind)
                yield
        yield from self._help_to_take(changed, now)

    def _help_nominated(self, changed: Changed, now: float) -> Iterator[None]:
        """What is promised to a pod helps nobody else of its kind."""
        nominations, nodes = self._cluster.nominations, self._cluster.nodes
        # A node that is gone keeps no promise.
        rows = None if changed.rows is None else {-1, *changed.rows.tolist()}
        for name in nominations.nodes():
            if rows is not None and nodes.row_of(name) not in rows:
                continue
            for uid in list(nominations.on(name)):
                if self._pending.is_parked(uid) and self._cycle.could_take(self._cluster.pods[uid]):
                    self._pending.help_one(uid, now)
                yield

    def _help_to_take(self, changed: Changed, now: float) -> Iterator[None]:
        """Pods that by now could take the place of others, as more is free beside these."""
        kinds = self._parked.kinds()[:_HUNTS_MAX]
        lowest = changed.lowest_priority() if kinds else 0
        for kind in kinds:
            pod = self._parked.one_of(kind)
            if pod is not None and pod.preempts and pod.priority > lowest:
                if not self._cluster.nominations.node_of(pod.uid) and self._cycle.could_take(pod):
                    self._pending.helped(kind, now)
                yield

    def _explain_again(self) -> Iterator[None]:
        """A change that did not help may still have changed why: no pod shall be told old news."""
        for kind in self._parked.kinds():
            holds: dict[Hashable, Hold | None] = {}
            for pod in self._parked.alike(kind):
                tells_apart = self._cycle.meets_others or pod.volumes is not None
                now = self._cycle.kind_of(pod) if tells_apart else kind
                if now not in holds:
                    holds[now] = self._cycle.why_not(pod)
                    yield
                hold = holds[now]
                if hold is not None and self._pending.is_parked(pod.uid):
                    self._outcome.explained.append(hold.of(pod.uid))
                yield

    def _one_of_each(self, kind: Hashable) -> Iterator[PodRecord]:
        """Pods of a kind that by now may fit different nodes: pods that came since may tell them apart."""
        first = self._parked.one_of(kind)
        if first is None:
            return
        yield first
        if self._cycle.meets_others or first.volumes is not None:
            asked = {self._cycle.kind_of(first)}
            for pod in self._parked.alike(kind):
                now = self._cycle.kind_of(pod)
                if now not in asked:
                    asked.add(now)
                    yield pod
