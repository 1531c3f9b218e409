"""Reads what the object of a workload says of its life: whether its pods are ready, how long it runs, when it is tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scheduler.api import kueue, times
from scheduler.api.queues.words import (
    ADMITTED,
    CHECK_RETRY,
    DEACTIVATION_TARGET,
    PODS_READY,
    REQUEUED,
)

Conditions = Mapping[str, kueue.TimedCondition]
_CLOSED = "Closed"


class Lifecycle(NamedTuple):
    """What the object of a workload says of its life; times in seconds since 1970.

    Attributes:
        admitted_at: since when it may run; 0 if it may not.
        is_ready: whether all its pods are ready; None if nobody has said.
        ready_reason: why they are not, or are.
        ready_at: since when it has been so.
        target: why it is to be deactivated, as a reason and a message; None if it is not.
        left: why it was not put back into its queue, as a reason; empty if it was.
        requeue_at: it is not tried before; 0 for no such time.
        n_requeued: how often it was put back because of its pods.
        has_requeue_state: whether its object says anything of that.
        limit_seconds: how long it may run in all; None for any time.
        past_seconds: how long it has run before it was admitted last.
        check_messages: (name, message) of its admission checks that have one.
        retry_at: when the last of the checks that want to be tried again wants it; 0 for at once.
    """

    admitted_at: float = 0.0
    is_ready: bool | None = None
    ready_reason: str = ""
    ready_at: float = 0.0
    target: tuple[str, str] | None = None
    left: str = ""
    requeue_at: float = 0.0
    n_requeued: int = 0
    has_requeue_state: bool = False
    limit_seconds: int | None = None
    past_seconds: int = 0
    check_messages: tuple[tuple[str, str], ...] = ()
    retry_at: float = 0.0


# Most workloads wait, and nothing has happened to them.
FRESH = Lifecycle()


def read_lifecycle(found: kueue.Workload) -> Lifecycle:
    """Read what a Workload says of its life."""
    status, limit = found.status, found.spec.maximum_execution_time_seconds
    if not status.conditions and limit is None and status.requeue_state is None:
        return FRESH
    conditions = {one.type: one for one in status.conditions or ()}
    admitted, ready, target = map(conditions.get, (ADMITTED, PODS_READY, DEACTIVATION_TARGET))
    state, checks = status.requeue_state, status.admission_checks or ()
    return Lifecycle(
        admitted_at=_read_since(admitted) if admitted and admitted.status == "True" else 0.0,
        is_ready=None if ready is None else ready.status == "True",
        ready_reason=ready.reason if ready else "",
        ready_at=_read_since(ready),
        target=(target.reason, target.message) if target and target.status == "True" else None,
        left=_find_left(conditions),
        requeue_at=find_requeue_time(status),
        n_requeued=state.count or 0 if state else 0,
        has_requeue_state=state is not None,
        limit_seconds=limit,
        past_seconds=status.accumulated_past_execution_time_seconds or 0,
        check_messages=tuple((one.name, one.message) for one in checks if one.message),
        retry_at=max(map(_find_retry, checks), default=0.0),
    )


def _read_since(condition: kueue.TimedCondition | None) -> float:
    return float(times.read_time(condition.last_transition_time) or 0) if condition else 0.0


def _find_left(conditions: Conditions) -> str:
    requeued = conditions.get(REQUEUED)
    return requeued.reason if requeued and requeued.status == "False" else ""


def find_requeue_time(status: kueue.WorkloadStatus) -> float:
    """Find before when a workload is not tried; 0 for no such time."""
    state = status.requeue_state
    return float(times.read_time(state.requeue_at or "") or 0) if state else 0.0


def _find_retry(check: kueue.CheckState) -> float:
    if check.state != CHECK_RETRY or check.requeue_after_seconds is None:
        return 0.0
    since = times.read_time(check.last_transition_time)
    return float(since + check.requeue_after_seconds) if since else 0.0


def has_closed_gate(found: kueue.Workload) -> bool:
    """Whether one of a workload's preemption gates is closed: one of which the status says nothing is."""
    states = {
        str(one.get("name")): one.get("position") for one in found.status.preemption_gates or ()
    }
    wanted = [str(one.get("name")) for one in found.spec.preemption_gates or ()]
    return any(states.get(name, _CLOSED) == _CLOSED for name in wanted)
