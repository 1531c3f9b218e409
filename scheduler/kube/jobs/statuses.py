"""What is read of a workload as the API server has it, and what is written in its status."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from scheduler.api import kinds, kueue, names
from scheduler.api.jobs.parts import Json, get_in, read_list, read_object
from scheduler.api.queues.words import FINISHED, PAST
from scheduler.kube.jobs.deeds import Words, WriteWorkload
from scheduler.kube.queues import conditions
from scheduler.kube.queues.conditions import Conditions

NO_OWNER = "The workload's owner no longer exists"
# Makes the changes of a status from what it is, its conditions, a reason and a message, and the time.
Write = Callable[[kueue.WorkloadStatus, Conditions, tuple[str, str], float], Json]


def get_message(workload: Json, kind: str) -> str:
    """Return the message of a condition; empty if there is none."""
    for one in read_list(workload, "status", "conditions"):
        if one.get("type") == kind:
            return str(one.get("message", ""))
    return ""


def has_quota(workload: Json) -> bool:
    """Whether a workload has quota."""
    return bool(get_in(workload, ("status", "admission")))


def is_past_slice(workload: Json) -> bool:
    """Whether a workload is finished as a slice that its job needs no longer."""
    return any(
        one.get("type") == FINISHED and one.get("status") == "True" and one.get("reason") in PAST
        for one in read_list(workload, "status", "conditions")
    )


def is_going(workload: Json) -> bool:
    """Whether a workload is being deleted."""
    return get_in(workload, ("metadata", "deletionTimestamp")) is not None


def is_held(workload: Json) -> bool:
    """Whether a workload cannot go before its job has let go of it."""
    return names.KUEUE_IN_USE in (get_in(workload, ("metadata", "finalizers")) or ())


def write_key(workload: Json) -> str:
    """Write the namespace and the name of a workload."""
    meta = read_object(workload, "metadata")
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}"


def read_class(workload: Json) -> tuple[str, bool]:
    """Read the class of a workload, empty for none, and whether it is one of workloads."""
    spec = read_object(workload, "spec")
    found = spec.get("priorityClassRef")
    if isinstance(found, Mapping):
        return str(found.get("name", "")), found.get("kind") == kinds.WORKLOAD_CLASSES.kind
    source = str(spec.get("priorityClassSource") or "")
    return str(spec.get("priorityClassName") or ""), source.startswith("kueue")


def read_conditions(workload: Json, now: float) -> Conditions:
    """Read the conditions of a workload, to be changed."""
    listed = read_list(workload, "status", "conditions")
    found = msgspec.convert(listed, list[kueue.TimedCondition])
    generation = get_in(workload, ("metadata", "generation")) or 0
    return Conditions(found, generation, now)


def write_status(
    workload: Json, now: float, write: Write, reason: str, message: str, words: Words | None = None
) -> WriteWorkload:
    """Return the deed that changes the status of a workload."""
    before = msgspec.convert(read_object(workload, "status"), kueue.WorkloadStatus)
    status = write(before, read_conditions(workload, now), (reason, message), now)
    return WriteWorkload(workload, {"status": status}, is_status=True, words=words)


def finish(
    status: kueue.WorkloadStatus, changing: Conditions, why: tuple[str, str], now: float
) -> Json:
    """Return the changes of a status by which a workload is finished."""
    del status, now
    return conditions.finish(changing, *why)


def requeue(
    status: kueue.WorkloadStatus, changing: Conditions, why: tuple[str, str], now: float
) -> Json:
    """Return the changes of a status by which an evicted workload waits again, for the reason of its eviction."""
    return conditions.requeue(status, changing, why[1], now)
