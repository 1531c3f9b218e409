"""What a job does with its Workload, when nobody runs any: it ends, and lets go of its quota when it is evicted."""

from __future__ import annotations

from typing import Any

from tests.differential.queues.outcomes import ADMITTED, FINISHED, PENDING, Eviction, Fate, PodSet
from tests.differential.queues.slices import REPLACED

Json = dict[str, Any]

# After these it waits in its queue again at once; after others until Kueue says so.
REQUEUED = frozenset({"Preempted", "NodeFailures"})


def find_condition(workload: Json, kind: str) -> Json:
    """A condition that is true or false, {} if it has none of the kind."""
    conditions: list[Json] = workload.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def is_true(workload: Json, kind: str) -> bool:
    """Whether it has a condition of the kind that is true."""
    return bool(find_condition(workload, kind).get("status") == "True")


def is_running(workload: Json) -> bool:
    """Whether it has quota and is not finished; what is finished keeps saying what it had."""
    return is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")


def must_let_go(workload: Json) -> bool:
    """Whether it is evicted and has its quota still."""
    return is_true(workload, "Evicted") and is_true(workload, "QuotaReserved")


def let_go(workload: Json, now: str) -> Json:
    """The status by which a job that has stopped lets go of its quota, as a merge patch.

    It says what the reconciler of Kueue's jobframework says once a job is not active any more.
    """
    evicted = find_condition(workload, "Evicted")
    reason, message = evicted["reason"], evicted["message"]
    is_back = "True" if reason in REQUEUED else "False"
    lost = "The workload has no reservation"
    conditions = _set(workload, _condition("Requeued", is_back, reason, message, now))
    for one in (
        _condition("QuotaReserved", "False", "Pending", message, now),
        _condition("Admitted", "False", "NoReservation", lost, now),
    ):
        conditions = _set({"status": {"conditions": conditions}}, one)
    return {"status": {"conditions": conditions, "admission": None}}


def finish(workload: Json, now: str) -> Json:
    """The status of a workload whose job has ended well, as a merge patch."""
    done = _condition("Finished", "True", "Succeeded", "Job finished successfully", now)
    return {"status": {"conditions": _set(workload, done)}}


def _condition(kind: str, status: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
    }


def _set(workload: Json, condition: Json) -> list[Json]:
    """All conditions with this one in its place; the time stays if the status does."""
    old = find_condition(workload, condition["type"])
    if old.get("status") == condition["status"]:
        condition = condition | {"lastTransitionTime": old["lastTransitionTime"]}
    others = workload.get("status", {}).get("conditions", [])
    return [*(one for one in others if one["type"] != condition["type"]), condition]


def read_fate(workload: Json) -> Fate:
    """Where it stands."""
    if is_true(workload, "Finished"):
        finished = find_condition(workload, "Finished")
        if finished["reason"] != REPLACED:
            return Fate(FINISHED)
        return Fate(FINISHED, reason=REPLACED, message=finished["message"])
    admission = workload.get("status", {}).get("admission")
    if admission is None:
        reserved = find_condition(workload, "QuotaReserved")
        return Fate(PENDING, reason=reserved.get("reason", ""), message=reserved.get("message", ""))
    pod_sets = [
        PodSet(one["name"], one["count"], one.get("flavors", {}))
        for one in admission["podSetAssignments"]
    ]
    return Fate(ADMITTED, admission["clusterQueue"], pod_sets)


def read_eviction(workload: Json, round_: int, names: dict[str, str]) -> Eviction:
    """Why it was evicted; ``names`` are those of all workloads by uid."""
    reason = find_condition(workload, "Evicted")["reason"]
    if reason != "Preempted":
        return Eviction(round_, workload["metadata"]["name"], reason)
    preempted = find_condition(workload, "Preempted")
    _, _, rest = preempted["message"].partition("(UID: ")
    uid, _, _ = rest.partition(",")
    return Eviction(
        round_, workload["metadata"]["name"], reason, preempted["reason"], names.get(uid, uid)
    )
