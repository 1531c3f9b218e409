"""What people read about workloads: events in Kueue's words, and why each waits.

Why a workload waits is written as a condition and an event, for a bounded number of workloads a second: one change can
give all of them new reasons.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from scheduler.api.door.workload_decisions import (
    Admit,
    Deactivate,
    EvictWorkload,
    Queued,
    SetDomains,
    StepDecision,
)
from scheduler.api.kind import Kind
from scheduler.api.queues.words import (
    ADMITTED,
    BY_CHECK,
    DEACTIVATION_TARGET,
    EVALUATED_LATER,
    EVICTED,
    GATED,
    PREEMPTED,
    QUOTA_RESERVED,
    SLICE_REPLACED,
    TIME_EXCEEDED,
)
from scheduler.kube.queues import conditions, lifecycles
from scheduler.kube.queues.shown import Shown, ShownWorkloads, find_path
from scheduler.kube.report.metrics.queues import QueueCounts
from scheduler.kube.report.reporter import Reporter

# For how many workloads it is written each second why they wait.
_SECONDS, _MOST = 1.0, 100


class WorkloadReports:
    """Reports what becomes of workloads, through the reporter's outbox.

    Args:
        reporter: writes events and conditions.
        shown: the workloads as they were seen last.
        find_kind: gives the kind of workloads in the version that the API server serves.
        clock: gives the time in seconds since 1970.
        may_write: whether anything may be written.
        counts: counts what is reported.
    """

    def __init__(
        self,
        reporter: Reporter,
        shown: ShownWorkloads,
        *,
        find_kind: Callable[[], Kind],
        clock: Callable[[], float],
        may_write: Callable[[], bool],
        counts: QueueCounts,
    ) -> None:
        self._reporter, self._shown = reporter, shown
        self._find_kind, self._clock, self._may_write = find_kind, clock, may_write
        self._counts = counts
        # Why workloads wait, by key; a newer reason takes the place of an older one.
        self._waits: dict[str, Queued] = {}
        self._left = _MOST

    # What was written.

    def report_admitted(self, decision: Admit, before: Shown, after: Shown, now: float) -> None:
        """Report that a workload has quota, and that it may run if it may."""
        waited = before.find_wait(now)
        note = f"Quota reserved in ClusterQueue {decision.queue}, wait time since queued was {waited:.0f}s"
        self._report(before, ("Normal", QUOTA_RESERVED, note))
        self._counts.count_reserved(decision.queue, waited)
        if after.is_true(ADMITTED):
            said = f"Admitted by ClusterQueue {decision.queue}, wait time since reservation was 0s"
            self._report(before, ("Normal", ADMITTED, said))
            self._counts.count_admitted(decision.queue, waited)

    def report_running(self, queue: str, before: Shown, after: Shown, now: float) -> None:
        """Report that a workload with quota may run, as it has passed its checks."""
        del after
        waited = max(0.0, now - before.find_transition(QUOTA_RESERVED, now))
        note = f"Admitted by ClusterQueue {queue}, wait time since reservation was {waited:.0f}s"
        self._report(before, ("Normal", ADMITTED, note))
        self._counts.count_admitted(queue, before.find_wait(now))
        self._counts.count_checked(queue, waited)

    def report_step(self, decision: StepDecision, before: Shown, after: Shown, now: float) -> None:
        """Report that a step of a workload was carried out that no other workload has a part in."""
        del now
        if isinstance(decision, EvictWorkload):
            given = before.status.admission
            if given is not None and not before.is_true(EVICTED):
                reason = lifecycles.join_reason(decision)
                self._report(before, ("Normal", f"EvictedDueTo{reason}", decision.message))
                why = decision.reason, decision.cause
                self._counts.count_evicted(given.cluster_queue, *why)
        elif isinstance(decision, SetDomains) and decision.failed:
            nodes = ", ".join(decision.failed)
            said = f"The pods of failed node(s) {nodes} get other nodes"
            self._report(before, ("Normal", "NodesReplaced", said))
        elif isinstance(decision, Deactivate) and after.is_true(DEACTIVATION_TARGET):
            self._report_deactivation(decision, before)

    def _report_deactivation(self, decision: Deactivate, shown: Shown) -> None:
        if decision.reason == BY_CHECK:
            said = f"Deactivated due to {decision.message}"
            self._report(shown, ("Warning", "AdmissionCheckRejected", said))
        elif decision.reason == TIME_EXCEEDED:
            said = f"The maximum execution time ({shown.limit_seconds}s) exceeded"
            self._report(shown, ("Warning", TIME_EXCEEDED, said))

    def report_replaced(self, message: str, before: Shown, after: Shown, now: float) -> None:
        """Report that another slice has the quota of a workload."""
        del after, now
        self._report(before, ("Normal", SLICE_REPLACED, message))
        given = before.status.admission
        self._counts.count_replaced(given.cluster_queue if given is not None else "")

    def report_preempted(
        self,
        by: Shown | None,
        why: tuple[str, str],
        paths: tuple[str, str],
        before: Shown,
        after: Shown,
        now: float,
    ) -> None:
        """Report that a workload has to go, and for which other one.

        ``why``: the reason and a message; ``paths``: of the queue that takes the quota, and of the one that gives it.
        """
        del after, now
        (reason, message), (by_queue, queue) = why, (path.rpartition("/")[2] for path in paths)
        self._counts.count_evicted(queue, PREEMPTED)
        self._counts.count_preempted(by_queue, reason)
        self._report(before, ("Normal", "EvictedDueToPreempted", message))
        if by is None:
            return
        priorities = "; ".join(
            f"{who} effective priority: {one.priority} (base: {one.priority}, boost: 0)"
            for who, one in (("preemptor", by), ("preemptee", before))
        )
        self._report(before, ("Normal", "Preempted", f"{message}; {priorities}"))
        uid = before.meta.uid
        said = f"Preempted workload {before.key} (UID: {uid}) in ClusterQueue {queue}; {priorities}"
        self._report(by, ("Normal", "PreemptedWorkload", said))

    def _report(self, shown: Shown, words: tuple[str, str, str], *, is_why: bool = False) -> None:
        self._reporter.report_on_object(self._find_kind(), shown.meta, words, is_why=is_why)

    # Why workloads wait.

    def note_queued(self, decision: Queued) -> None:
        """Write why a workload waits, when it is its turn."""
        self._waits.pop(decision.key, None)
        self._waits[decision.key] = decision
        self._write_waits()

    def forget(self, key: str) -> None:
        """Write no more why a workload waits: it waits no longer, or is gone."""
        self._waits.pop(key, None)
        shown = self._shown.get(key)
        if shown is not None:
            self._reporter.forget_object(shown.meta.uid)

    async def quiet(self, shown: Shown) -> None:
        """Wait until nothing is being written on a workload, and drop what waits to be written."""
        self._waits.pop(shown.key, None)
        await self._reporter.quiet_pod(shown.meta.uid)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(_SECONDS)
            self._left = _MOST
            self._write_waits()

    def _write_waits(self) -> None:
        while self._waits and self._left and self._may_write():
            key = next(iter(self._waits))
            self._write_wait(self._waits.pop(key))

    def _write_wait(self, decision: Queued) -> None:
        shown = self._shown.get(decision.key)
        if shown is None or shown.meta.uid != decision.uid or shown.status.admission is not None:
            return
        if self._make_status(shown, decision) is None:
            return
        self._left -= 1
        path = find_path(self._find_kind(), shown.meta)

        def make_body() -> bytes:
            # A write that failed is tried again on the newest version.
            newest = self._shown.get(decision.key) or shown
            has_quota = newest.status.admission is not None
            status = None if has_quota else self._make_status(newest, decision)
            meta = {"uid": shown.meta.uid, "resourceVersion": newest.meta.resource_version}
            return msgspec.json.encode({"metadata": meta, "status": status or {}})

        self._reporter.report_status(shown.meta.uid, path, make_body)
        kind = "Normal" if decision.reason in {GATED, EVALUATED_LATER} else "Warning"
        self._report(shown, (kind, decision.reason, decision.message), is_why=True)

    def _make_status(self, shown: Shown, decision: Queued) -> dict[str, object] | None:
        now, why = self._clock(), (decision.reason, decision.message)
        return conditions.leave_queued(shown.status, shown.make_conditions(now), why, now)
