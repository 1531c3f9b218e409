"""What is done for the pods that wait for a change, a little at a time, behind the decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scheduler.cycle import explain
from scheduler.cycle.schedule import Cycle
from scheduler.kube.report.reporter import Reporter
from scheduler.queues.helping import Changed
from scheduler.queues.pending import Pending
from scheduler.state.cluster import Cluster

_HELP_SECONDS = 0.02
_FLUSH_SECONDS = 30.0
# What waiting pods are told is made anew this often, and never for more pods a second than this.
_EXPLAIN_SECONDS = 5.0
_EXPLAIN_RATE = 100.0
# Kinds that a bound rules out take next to no time: the clock is read once for so many.
_STRIDE = 64


class Chores:
    """Helps and explains; what is begun goes on at the next turn where it stopped."""

    def __init__(
        self, cluster: Cluster, cycle: Cycle, pending: Pending, reporter: Reporter
    ) -> None:
        self._cluster, self._cycle = cluster, cycle
        self._pending, self._reporter = pending, reporter
        self._helping: Iterator[None] = iter(())
        self._explaining: Iterator[None] = iter(())
        self._is_unfinished = False
        self._helped_at = self._flushed_at = self._explained_at = 0.0
        # Positions in the cluster's log of changes.
        self._helped_position = self._explained_position = -1

    def due(self) -> float:
        """Loop time of the next thing to do; infinite when only a change can bring one."""
        if self._is_unfinished:
            return 0.0
        if self._pending.n_parked and self._helped_position != self._cluster.moved.position:
            return self._helped_at + _HELP_SECONDS
        return float("inf")

    def work(self, now: float, until: float, clock: Callable[[], float]) -> None:
        """Look after the pods that wait, as far as the time goes."""
        if now - self._flushed_at >= _FLUSH_SECONDS:
            self._flushed_at = now
            self._pending.flush(now)
        if not self._is_unfinished and self._pending.n_parked:
            self._begin(now)
        self._is_unfinished = True
        for chore in (self._helping, self._explaining):
            for _ in chore:
                if clock() >= until:
                    return
        self._is_unfinished = False

    def _begin(self, now: float) -> None:
        position = self._cluster.moved.position
        if self._helped_position != position and now - self._helped_at >= _HELP_SECONDS:
            rows = self._cluster.moved.since(self._helped_position)
            changed = Changed(self._cluster, rows if self._helped_position >= 0 else None)
            self._helped_position, self._helped_at = position, now
            self._helping = self._help(changed, now)
        rest = max(_EXPLAIN_SECONDS, self._pending.n_parked / _EXPLAIN_RATE)
        if self._explained_position != position and now - self._explained_at >= rest:
            self._explained_position, self._explained_at = position, now
            self._explaining = self._explain_again()

    def _help(self, changed: Changed, now: float) -> Iterator[None]:
        """Move the pods that a change could help; one question per kind."""
        for i, kind in enumerate(self._pending.kinds()):
            pod = self._pending.one_of(kind)
            if pod is not None and changed.may_help(pod.template):
                if self._cycle.could_place(pod, changed.rows):
                    self._pending.helped(kind, now)
                yield
            elif i % _STRIDE == 0:
                yield

    def _explain_again(self) -> Iterator[None]:
        """A change that did not help may still have changed why: no pod shall read old news."""
        for kind in self._pending.kinds():
            pod = self._pending.one_of(kind)
            hold = self._cycle.why_not(pod) if pod is not None else None
            text = explain.sentence(hold) if hold else ""
            for pod in self._pending.alike(kind) if text else ():
                if self._pending.is_parked(pod.uid):
                    self._reporter.unschedulable(pod, text)
                yield
            yield
