"""What comes next in the life of a workload by itself, and when: it is evicted, deactivated, or put back into its queue.

Source: Kueue (2026-08), ``pkg/controller/core/workload_controller.go``: ``Reconcile`` and what it calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scheduler.api.door.workload_decisions import (
    Deactivate,
    EvictWorkload,
    ReplaceSlice,
    Requeue,
    SetPriority,
    StepDecision,
    SyncChecks,
    Unreserve,
)
from scheduler.api.queues import words
from scheduler.api.queues.definitions import LocalQueueDefinition, QueueDefinition, Stop
from scheduler.api.queues.lifecycles import Lifecycle
from scheduler.api.queues.settings import QueueSettings, ReadySettings
from scheduler.api.queues.workloads import WorkloadDefinition
from scheduler.tenancy.directory import MISCONFIGURED, SUSPENDED, Directory
from scheduler.tenancy.works import Where, Work


class Step(NamedTuple):
    """A decision, and from when on it is due, in seconds since 1970; 0 for at once."""

    due: float
    decision: StepDecision


class Steps:
    """Finds the next step of workloads.

    Args:
        directory: which queues there are.
        settings: how long pods may take until they are ready, and whether time ends anything.
    """

    def __init__(self, directory: Directory, settings: QueueSettings) -> None:
        self._directory, self._ready = directory, settings.ready
        self._ends_runs = settings.ends_runs

    def find(self, work: Work, now: float) -> Step | None:
        """Find the next step of a workload as of now; None if nothing comes by itself."""
        defined = work.defined
        if defined.is_finished or work.is_assumed:
            return None
        if work.replaced_by is not None:
            # Before its object says so, the new slice may not get its quota after all.
            is_sure = not work.replaced_by.is_assumed
            return (
                Step(0.0, ReplaceSlice(work.key, work.uid, work.replaced_by.key))
                if is_sure
                else None
            )
        # A class that is gone changes nothing.
        priority = self._directory.classes.get(defined.priority_class, defined.priority)
        if priority != defined.priority:
            return Step(0.0, SetPriority(work.key, work.uid, priority))
        return self._find_change(work, now)

    def _find_change(self, work: Work, now: float) -> Step | None:
        """Find the next step of a workload that is not about its priority."""
        defined = work.defined
        if not defined.is_active:
            return _find_end(work)
        if defined.life.target is not None:
            return Step(0.0, Deactivate(work.key, work.uid, *defined.life.target))
        if (synced := self._find_other_checks(work)) is not None:
            return Step(0.0, synced)
        if work.where != Where.HOLDS:
            return self._find_return(work)
        return None if work.is_going else self._find_end_of_run(work, now)

    def _find_other_checks(self, work: Work) -> StepDecision | None:
        """Find whether a workload lists other admission checks than it has to pass.

        One that waits gets those of its flavors with its quota; until then it only drops what its queue no longer has.
        """
        defined, given = work.defined, work.defined.admission
        if work.is_going or (given is None and not defined.checks):
            return None
        local = None if given else self._directory.find_local(defined)
        name = given.queue if given else local.queue if local else ""
        queue = self._directory.forest.queues.get(name)
        if queue is None or not (queue.checks or defined.checks):
            return None
        known = {name for name, _ in defined.checks}
        if given is None:
            wanted = known & {one.name for one in queue.checks}
        else:
            flavors = {flavor for one in given.assigned for _, flavor in one.flavors}
            wanted = set(self._directory.list_checks(name, flavors))
        if wanted == known:
            return None
        has_quota = given is not None
        return SyncChecks(work.key, work.uid, tuple(sorted(wanted)), has_quota)

    def _find_end_of_run(self, work: Work, now: float) -> Step | None:
        """Find when a workload with quota has to give it back."""
        at_once = _find_failed_check(work, now) or self._find_stop(work)
        if at_once is not None:
            return Step(0.0, at_once)
        if not self._ends_runs:
            return None
        timed = (*self._list_ready_steps(work, now), *_list_limit_steps(work))
        return min(timed, key=lambda one: one.due, default=None)

    def _find_return(self, work: Work) -> Step | None:
        """Find when a workload that was evicted is put back into its queue."""
        life = work.defined.life
        due, why = 0.0, ("", "")
        if life.left.startswith(words.DEACTIVATED):
            why = words.REACTIVATED, "The workload was reactivated"
        elif life.left in {words.PODS_READY_TIMEOUT, words.BY_CHECK}:
            due, why = (
                life.requeue_at,
                (words.BACKOFF_FINISHED, "The workload backoff was finished"),
            )
        elif life.left == words.LOCAL_QUEUE_STOPPED:
            local = self._directory.find_local(work.defined)
            if local is not None and local.stop == Stop.NONE:
                said = "The LocalQueue was restarted after being stopped"
                why = words.LOCAL_QUEUE_RESTARTED, said
        elif life.left == words.CLUSTER_QUEUE_STOPPED:
            local = self._directory.find_local(work.defined)
            queue = self._directory.forest.queues.get(local.queue) if local else None
            if queue is not None and queue.stop == Stop.NONE:
                said = "The ClusterQueue was restarted after being stopped"
                why = words.CLUSTER_QUEUE_RESTARTED, said
        return Step(due, Requeue(work.key, work.uid, *why)) if why[0] else None

    def _find_stop(self, work: Work) -> StepDecision | None:
        """Find whether the queues of a workload were stopped, or are no longer there."""
        local = self._directory.find_local(work.defined)
        queue = self._directory.forest.queues.get(local.queue if local else "")
        if not work.defined.is_admitted:
            name = local.queue if local else ""
            why = _find_obstacle(f"LocalQueue {work.defined.local}", local)
            why = why or _find_obstacle(f"ClusterQueue {name}", queue)
            return Unreserve(work.key, work.uid, *why) if why else None
        if local is not None and local.stop == Stop.DRAIN:
            return _evict(work, words.LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped")
        if queue is not None and queue.stop == Stop.DRAIN:
            return _evict(work, words.CLUSTER_QUEUE_STOPPED, "The ClusterQueue is stopped")
        return None

    def _list_ready_steps(self, work: Work, now: float) -> Iterator[Step]:
        """List when a workload has to go whose pods are not ready in time."""
        life, ready = work.defined.life, self._ready
        if ready is None or not life.admitted_at or life.is_ready:
            return
        cause, due = words.WAIT_FOR_START, life.admitted_at + ready.timeout_seconds
        if life.is_ready is False and life.ready_reason == words.WAIT_FOR_RECOVERY:
            if ready.recovery_seconds is None:
                return
            cause, due = words.WAIT_FOR_RECOVERY, life.ready_at + ready.recovery_seconds
        elif life.is_ready is False and life.ready_reason not in {
            words.WAIT_FOR_START,
            words.PODS_READY,
        }:
            return
        yield Step(due, _decide_late(work, life, ready, cause, now))


def _find_obstacle(
    which: str, queue: LocalQueueDefinition | QueueDefinition | None
) -> tuple[str, str] | None:
    """Find why a workload that was not let start has no quota of a queue any more, as a reason and a message."""
    if queue is None or queue.is_going:
        return MISCONFIGURED, f"{which} is terminating or missing"
    return None if queue.stop == Stop.NONE else (SUSPENDED, f"{which} is stopped")


def _decide_late(
    work: Work, life: Lifecycle, ready: ReadySettings, cause: str, now: float
) -> StepDecision:
    """Decide about a workload whose pods were not ready in time."""
    n = life.n_requeued + 1
    if ready.limit is not None and n > ready.limit:
        said = "exceeding the maximum number of re-queuing retries"
        return Deactivate(work.key, work.uid, words.LIMIT_EXCEEDED, said)
    return EvictWorkload(
        work.key,
        work.uid,
        words.PODS_READY_TIMEOUT,
        f"Exceeded the PodsReady timeout {work.key}",
        cause,
        requeue_at=max(life.requeue_at, now + ready.find_backoff(n)),
        n_requeued=n,
    )


def _list_limit_steps(work: Work) -> Iterator[Step]:
    """List when a workload has run for as long as it may."""
    life = work.defined.life
    if life.limit_seconds is not None and life.admitted_at:
        due = life.admitted_at + life.limit_seconds - life.past_seconds
        said = "exceeding the maximum execution time"
        yield Step(due, Deactivate(work.key, work.uid, words.TIME_EXCEEDED, said))


def _find_end(work: Work) -> Step | None:
    """Find whether a workload that is deactivated has to be evicted, or has waited to be put back."""
    life = work.defined.life
    is_evicted = bool(work.defined.evicted)
    if (is_evicted and not life.has_requeue_state) or (work.is_going and not is_evicted):
        return None
    cause, said = life.target or ("", "")
    message = "The workload is deactivated" + (f" due to {said}" if cause else "")
    return Step(0.0, _evict(work, words.DEACTIVATED, message, cause))


def _find_failed_check(work: Work, now: float) -> StepDecision | None:
    """Find whether admission checks have failed, for good or for this time."""
    defined = work.defined
    if said := _describe_checks(defined, words.CHECK_REJECTED):
        return Deactivate(work.key, work.uid, words.BY_CHECK, said)
    if said := _describe_checks(defined, words.CHECK_RETRY):
        retry = defined.life.retry_at
        at = max(defined.life.requeue_at, retry if retry > now else 0.0)
        found = _evict(work, words.BY_CHECK, f"Evicted due to {said}")
        return EvictWorkload(found.key, found.uid, found.reason, found.message, requeue_at=at)
    return None


def _describe_checks(defined: WorkloadDefinition, state: str) -> str:
    """Say which admission checks are in a state; empty if none is."""
    messages = dict(defined.life.check_messages)
    found = [
        f'"{name}" ({messages[name]})' if name in messages else f'"{name}"'
        for name in sorted(name for name, one in defined.checks if one == state)
    ]
    if not found:
        return ""
    noun = "AdmissionCheck" if len(found) == 1 else "AdmissionChecks"
    return f"{noun} in {state} state: {'; '.join(found)}"


def _evict(work: Work, reason: str, message: str, cause: str = "") -> EvictWorkload:
    return EvictWorkload(work.key, work.uid, reason, message, cause)
