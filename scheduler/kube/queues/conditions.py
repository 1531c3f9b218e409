"""What is written on Workloads, in Kueue's words: conditions, admissions and checks.

Source: Kueue (2026-08), ``pkg/workload/workload.go`` (``SetQuotaReservation``, ``UnsetQuotaReservationWithCondition``),
``pkg/workload/admissionchecks.go`` (``SyncAdmittedCondition``), ``pkg/workload/evict/evict.go``
(``prepareForEviction``) and ``pkg/scheduler/preemption/preemption.go`` (``preemptionMessage``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from scheduler.api import kueue, times
from scheduler.api.door.workload_decisions import Admit, DomainsGiven
from scheduler.api.limits import shorten
from scheduler.api.queues.admissions import write_admission, write_new_domains
from scheduler.api.queues.words import (
    ADMITTED,
    BLOCKED,
    CHECK_PENDING,
    CHECK_READY,
    EVICTED,
    EVICTS_NOBODY,
    EVICTS_NOBODY_SAID,
    FINISHED,
    GATED,
    NODE_FAILURES,
    PODS_READY,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    WAIT_FOR_RECOVERY,
    WAIT_FOR_START,
)

Json = dict[str, Any]
# The most characters of a message of a condition.
_MESSAGE_MAX = 32 * 1024
_INT32_MAX = 2**31 - 1
# The most characters of what is behind an eviction, and of the reason of a condition.
_CAUSE_MAX, _REASON_MAX = 316, 1024
# After these evictions a workload waits in its queue as soon as its job has stopped.
_WAIT_AT_ONCE = frozenset({PREEMPTED, NODE_FAILURES})
_HAS_STARTED, _HAS_RECOVERED = "Started", "Recovered"
_NOT_READY = "Not all pods are ready or succeeded"
_READY = "All pods reached readiness and the workload is running"
_WHY_PREEMPTED = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortRelocation": "relocation within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}


class Conditions:
    """The conditions of an object, and what becomes of them.

    Args:
        before: the conditions as the API server has them.
        generation: of the object that they are about.
        now: the time.
    """

    def __init__(self, before: Sequence[kueue.TimedCondition], generation: int, now: float) -> None:
        self._found = {one.type: one for one in before}
        self._generation, self._now = generation, times.write_time(now)

    def get(self, kind: str) -> kueue.TimedCondition | None:
        """Return a condition; None if there is none."""
        return self._found.get(kind)

    def is_true(self, kind: str) -> bool:
        """Whether a condition is true."""
        found = self._found.get(kind)
        return found is not None and found.status == "True"

    def set(self, kind: str, reason: str, message: str, *, is_true: bool) -> None:
        """Set a condition. The time of its last transition stays as long as it is as true as before."""
        before, status = self._found.get(kind), "True" if is_true else "False"
        stays = before is not None and before.status == status
        self._found[kind] = kueue.TimedCondition(
            type=kind,
            status=status,
            reason=reason[:_REASON_MAX],
            message=shorten(message, _MESSAGE_MAX),
            observed_generation=self._generation,
            last_transition_time=before.last_transition_time if before and stays else self._now,
        )

    def remove(self, kind: str) -> None:
        """Remove a condition, if there is one."""
        self._found.pop(kind, None)

    def reset(self, kind: str, reason: str) -> None:
        """Set a condition to false if it is true."""
        before = self._found.get(kind)
        if before is not None and before.status == "True":
            self.set(kind, reason, f"Previously: {before.message}", is_true=False)

    def write(self) -> list[Json]:
        """Write all conditions."""
        # The schema requires a message, even if it is empty.
        return [msgspec.to_builtins(one) | {"message": one.message} for one in self._found.values()]


def is_true(status: kueue.WorkloadStatus, kind: str) -> bool:
    """Whether a condition of a status is true."""
    return any(one.type == kind and one.status == "True" for one in status.conditions or ())


def admit(
    status: kueue.WorkloadStatus,
    conditions: Conditions,
    decision: Admit,
    checks: Sequence[str],
    now: float,
    version: str,
) -> Json:
    """Return the changes of a status with which a workload gets quota.

    Args:
        status: as it is.
        conditions: its conditions, which are changed.
        decision: what the workload gets.
        checks: what it has to pass before it may run.
        now: the time, in seconds since 1970.
        version: of Kueue's API in which the status is written.
    """
    message = f"Quota reserved in ClusterQueue {decision.queue}"
    conditions.set(QUOTA_RESERVED, QUOTA_RESERVED, message, is_true=True)
    for kind in (EVICTED, PREEMPTED, BLOCKED):
        conditions.reset(kind, QUOTA_RESERVED)
    made: Json = {"admission": msgspec.to_builtins(write_admission(decision, version))}
    if status.requeue_state is not None and status.requeue_state.requeue_at:
        made["requeueState"] = {"requeueAt": None}
    if may_run(status, checks):
        conditions.set(ADMITTED, ADMITTED, "The workload is admitted", is_true=True)
    if {one.name for one in status.admission_checks or ()} != set(checks):
        made |= sync_checks(status, checks, now)
    return made | {"conditions": conditions.write()}


def sync_checks(status: kueue.WorkloadStatus, names: Sequence[str], now: float) -> Json:
    """Return the changes of a status by which it lists some checks: those that it lacks are pending.

    Source: Kueue (2026-08), ``pkg/controller/core/workload_controller.go`` (``syncAdmissionCheckConditions``).
    """
    known = {one.name: one for one in status.admission_checks or ()}
    since = times.write_time(now)
    found = [
        known.get(name)
        or kueue.CheckState(name=name, state=CHECK_PENDING, last_transition_time=since)
        for name in sorted(names)
    ]
    return {"admissionChecks": _write_checks(found) or None}


def set_domains(
    status: kueue.WorkloadStatus, sets: Mapping[str, DomainsGiven], version: str
) -> Json:
    """Return the changes of a status by which pod sets have other domains, as nodes have failed."""
    given = status.admission or kueue.Admission()
    made: Json = {"admission": msgspec.to_builtins(write_new_domains(given, sets, version))}
    if status.unhealthy_nodes:
        # Kueue has written there which nodes have failed.
        made["unhealthyNodes"] = None
    return made


def let_run(conditions: Conditions) -> Json:
    """Return the changes of a status with which a workload that has quota may run."""
    conditions.set(ADMITTED, ADMITTED, "The workload is admitted", is_true=True)
    return {"conditions": conditions.write()}


def may_run(status: kueue.WorkloadStatus, checks: Sequence[str]) -> bool:
    """Whether a workload has passed all checks that it has to pass."""
    ready = {one.name for one in status.admission_checks or () if one.state == CHECK_READY}
    return ready.issuperset(checks)


def preempt(
    status: kueue.WorkloadStatus, conditions: Conditions, reason: str, message: str, now: float
) -> Json:
    """Return the changes of a status by which a workload is to give its quota back to another one."""
    conditions.set(PREEMPTED, reason, message, is_true=True)
    made = evict(status, conditions, PREEMPTED, message, now)
    return made | {"schedulingStats": count_eviction(status, PREEMPTED, "")}


def count_eviction(status: kueue.WorkloadStatus, reason: str, cause: str) -> Json:
    """Count an eviction among those for its reason, and what is behind it."""
    stats, cause = status.scheduling_stats, cause[:_CAUSE_MAX]
    counts = {(one.reason, one.underlying_cause): one.count for one in (stats and stats.evictions) or ()}  # fmt: skip
    counts[reason, cause] = counts.get((reason, cause), 0) + 1
    return {
        "evictions": [
            {"reason": why, "underlyingCause": behind, "count": n}
            for (why, behind), n in counts.items()
        ]
    }


def evict(
    status: kueue.WorkloadStatus, conditions: Conditions, reason: str, message: str, now: float
) -> Json:
    """Return the changes of a status by which a workload is to give its quota back."""
    conditions.set(EVICTED, reason, message, is_true=True)
    if conditions.is_true(BLOCKED):
        conditions.set(BLOCKED, reason, message, is_true=False)
    made: Json = {"conditions": conditions.write()}
    if status.admission_checks:
        checks = [_reset_check(one, times.write_time(now)) for one in status.admission_checks]
        made["admissionChecks"] = _write_checks(checks)
    if status.preemption_gates:
        closed = {"position": "Closed", "lastTransitionTime": times.write_time(now)}
        made["preemptionGates"] = [{**one, **closed} for one in status.preemption_gates]
    if status.unhealthy_nodes:
        made["unhealthyNodes"] = None
    return made


def _reset_check(found: kueue.CheckState, now: str) -> kueue.CheckState:
    if found.state == CHECK_PENDING:
        return found
    retries = (found.retry_count or 0) + 1 if found.state == "Retry" else None
    message = f"Reset to Pending after eviction. Previously: {found.state}"
    return kueue.CheckState(
        name=found.name,
        state=CHECK_PENDING,
        message=message,
        last_transition_time=now,
        retry_count=retries,
        requeue_after_seconds=found.requeue_after_seconds,
    )


def _write_checks(checks: Sequence[kueue.CheckState]) -> list[Json]:
    return [msgspec.to_builtins(one) | {"message": one.message} for one in checks]


def take_quota(
    status: kueue.WorkloadStatus, conditions: Conditions, why: tuple[str, str], now: float
) -> Json:
    """Return the changes of a status with which a workload has no quota; ``why``: a reason and a message.

    If it might run, its status adds up for how long it did.
    """
    conditions.set(QUOTA_RESERVED, *why, is_true=False)
    made: Json = {"admission": None} if status.admission is not None else {}
    before = conditions.get(ADMITTED)
    if before is not None and before.status == "True":
        conditions.set(ADMITTED, "NoReservation", "The workload has no reservation", is_true=False)
        since = times.read_time(before.last_transition_time)
        past = status.accumulated_past_execution_time_seconds or 0
        ran = max(0, int(now - since)) if since is not None else 0
        made["accumulatedPastExecutionTimeSeconds"] = min(past + ran, _INT32_MAX)
    return made | {"conditions": conditions.write()}


def leave_queued(
    status: kueue.WorkloadStatus, conditions: Conditions, why: tuple[str, str], now: float
) -> Json | None:
    """Return the changes of a status that say why a workload waits; None if it says so already.

    ``why``: a reason and a message.
    """
    reason, message = why
    before = conditions.get(QUOTA_RESERVED)
    if before is not None and (before.status, before.reason, before.message) == (
        "False",
        reason,
        shorten(message, _MESSAGE_MAX),
    ):
        return None
    if why == (GATED, EVICTS_NOBODY_SAID):
        conditions.set(BLOCKED, EVICTS_NOBODY, message, is_true=True)
    return take_quota(status, conditions, why, now)


def describe_preemption(uid: str, job_uid: str, reason: str, paths: tuple[str, str]) -> str:
    """Say for which workload another one has to go; ``paths``: of the queue of the one, and of that of the other."""
    unknown = "UNKNOWN"
    return (
        f"Preempted to accommodate a workload (UID: {uid or unknown}, JobUID: {job_uid or unknown}) "
        f"due to {_WHY_PREEMPTED.get(reason, unknown)}; preemptor path: {paths[0] or unknown}; "
        f"preemptee path: {paths[1] or unknown}"
    )


def describe_replacement(uid: str, job_uid: str) -> str:
    """Say which slice of a workload has the quota of another one."""
    return f"Replaced to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to workload slice aggregation"


def finish(conditions: Conditions, reason: str, message: str) -> Json:
    """Return the changes of a status by which a workload is finished."""
    conditions.set(FINISHED, reason, message, is_true=True)
    return {"conditions": conditions.write()}


def requeue(status: kueue.WorkloadStatus, conditions: Conditions, message: str, now: float) -> Json:
    """Return the changes of a status by which an evicted workload, whose job has stopped, waits again.

    Source: Kueue (2026-08), ``pkg/controller/jobframework/reconciler.go`` (``ReconcileGenericJob``, 6.).
    """
    evicted = conditions.get(EVICTED)
    reason = evicted.reason if evicted is not None else ""
    conditions.set(REQUEUED, reason, message, is_true=reason in _WAIT_AT_ONCE)
    return take_quota(status, conditions, ("PendingEvaluation", message), now)


def note_readiness(conditions: Conditions, *, is_ready: bool) -> bool:
    """Set the condition that says whether the pods of a workload are ready; return whether it was another one.

    It is not set before the workload may run.

    Source: Kueue (2026-08), ``pkg/controller/jobframework/reconciler.go`` (``generatePodsReadyCondition``).
    """
    before = conditions.get(PODS_READY)
    reason = before.reason if before is not None else ""
    recovers = reason in {WAIT_FOR_RECOVERY, _HAS_RECOVERED}
    if not conditions.is_true(ADMITTED):
        if before is None or before.status != "True":
            return False
        now = False, WAIT_FOR_START, _NOT_READY
    elif is_ready:
        now = True, _HAS_RECOVERED if recovers else _HAS_STARTED, _READY
    elif before is not None and (before.status == "True" or reason == WAIT_FOR_RECOVERY):
        now = False, WAIT_FOR_RECOVERY, "At least one pod has failed, waiting for recovery"
    else:
        now = False, WAIT_FOR_START, _NOT_READY
    if before is not None and (before.status == "True", before.reason) == now[:2]:
        return False
    conditions.set(PODS_READY, now[1], now[2], is_true=now[0])
    return True
