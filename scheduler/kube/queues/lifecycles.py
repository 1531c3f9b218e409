"""What is written on a Workload when a step of its life is due that no other workload has a part in.

Source: Kueue (2026-08), ``pkg/controller/core/workload_controller.go``: ``Reconcile``; ``pkg/workload/workload.go``:
``UnsetQuotaReservationWithCondition``, ``SetRequeueState`` and ``SetDeactivationTarget``.
"""

from __future__ import annotations

from typing import Any

from scheduler.api import kueue, times
from scheduler.api.door.workload_decisions import (
    Deactivate,
    EvictWorkload,
    ReplaceSlice,
    Requeue,
    SetDomains,
    SetPriority,
    StepDecision,
    SyncChecks,
    Unreserve,
)
from scheduler.api.queues.lifecycles import find_requeue_time
from scheduler.api.queues.words import (
    ADMITTED,
    DEACTIVATED,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    REQUEUED,
    TIME_EXCEEDED,
)
from scheduler.kube.queues import conditions
from scheduler.kube.queues.conditions import Conditions

Json = dict[str, Any]


def make_status(
    decision: StepDecision, status: kueue.WorkloadStatus, changing: Conditions, now: float
) -> Json:
    """Return the changes of a status by which a step is carried out; ``changing``: its conditions."""
    match decision:
        case EvictWorkload():
            return _evict(status, changing, decision, now)
        case Deactivate():
            return _deactivate(changing, decision)
        case Unreserve(reason=reason, message=message):
            return conditions.take_quota(status, changing, (reason, message), now)
        case Requeue():
            return _requeue(status, changing, decision)
        case SyncChecks(names=found):
            return conditions.sync_checks(status, found, now)
        case SetPriority() | ReplaceSlice() | SetDomains():
            # It is in the spec, or needs more than the status.
            return {}


def join_reason(decision: EvictWorkload) -> str:
    """Return the reason of an eviction as its condition has it: of a deactivation, with what is behind it."""
    is_joined = decision.reason == DEACTIVATED and decision.cause
    return f"{decision.reason}DueTo{decision.cause}" if is_joined else decision.reason


def _evict(
    status: kueue.WorkloadStatus, changing: Conditions, decision: EvictWorkload, now: float
) -> Json:
    made: Json = {}
    ends = decision.reason == DEACTIVATED
    if ends:
        changing.remove(DEACTIVATION_TARGET)
    if changing.is_true(EVICTED):
        made["conditions"] = changing.write()
    else:
        why = join_reason(decision), decision.message
        made = conditions.evict(status, changing, *why, now)
        made["schedulingStats"] = conditions.count_eviction(status, decision.reason, decision.cause)
    if ends and status.requeue_state is not None:
        made["requeueState"] = None
    elif decision.requeue_at:
        made["requeueState"] = _write_requeue_state(status, decision)
    return made


def _write_requeue_state(status: kueue.WorkloadStatus, decision: EvictWorkload) -> Json:
    """Write when a workload is tried again; a later time that others have written stays."""
    at = max(decision.requeue_at, find_requeue_time(status))
    made: Json = {"requeueAt": times.write_time(at)}
    if decision.n_requeued:
        made["count"] = decision.n_requeued
    return made


def _deactivate(changing: Conditions, decision: Deactivate) -> Json:
    changing.set(DEACTIVATION_TARGET, decision.reason, decision.message, is_true=True)
    made: Json = {"conditions": changing.write()}
    if decision.reason == TIME_EXCEEDED:
        # It may run as long again if a person activates it again.
        made["accumulatedPastExecutionTimeSeconds"] = None
    return made


def _requeue(status: kueue.WorkloadStatus, changing: Conditions, decision: Requeue) -> Json:
    changing.set(REQUEUED, decision.reason, decision.message, is_true=True)
    made: Json = {"conditions": changing.write()}
    if status.requeue_state is not None:
        made["requeueState"] = {"requeueAt": None}
    return made


def is_done(decision: StepDecision, status: kueue.WorkloadStatus) -> bool:
    """Whether a status says already what is to be written; false for steps that are not written in the status, or that the writer compares itself."""
    match decision:
        case EvictWorkload(reason=reason):
            is_left = reason == DEACTIVATED and status.requeue_state is not None
            return conditions.is_true(status, EVICTED) and not is_left
        case Unreserve():
            return status.admission is None
        case Requeue():
            return conditions.is_true(status, REQUEUED)
        case SyncChecks(names=found):
            return {one.name for one in status.admission_checks or ()} == set(found)
        case ReplaceSlice():
            return conditions.is_true(status, FINISHED)
        case Deactivate() | SetPriority() | SetDomains():
            return False


def holds(decision: StepDecision, status: kueue.WorkloadStatus) -> bool:
    """Whether a workload that has not finished is still as it was when a step was decided."""
    has_quota = status.admission is not None
    match decision:
        case EvictWorkload(reason=reason):
            return has_quota or reason == DEACTIVATED
        case Deactivate():
            return has_quota or conditions.is_true(status, DEACTIVATION_TARGET)
        case Unreserve():
            return has_quota and not conditions.is_true(status, ADMITTED)
        case Requeue():
            return not has_quota and not conditions.is_true(status, QUOTA_RESERVED)
        case SyncChecks():
            return has_quota == decision.has_quota
        case SetPriority() | ReplaceSlice() | SetDomains():
            return True
