"""What a cycle, and the controllers behind it, write into the status of a Workload."""

import copy
from collections.abc import Mapping
from typing import Any

from tests.oracles.kueue.amounts import write_amount
from tests.oracles.kueue.assignments import Assignment
from tests.oracles.kueue.order import Entry
from tests.oracles.kueue.slices import REPLACED
from tests.oracles.kueue.tree import walk_ancestors
from tests.oracles.kueue.victims import (
    IN_QUEUE,
    RECLAIMED,
    RECLAIMED_WHILE_BORROWING,
    SHARED,
    Target,
)
from tests.oracles.kueue.workloads import Manifest, find_condition
from tests.oracles.kueue.world import Queue

_WORDS = {
    IN_QUEUE: "prioritization in the ClusterQueue",
    RECLAIMED: "reclamation within the cohort",
    SHARED: "Fair Sharing within the cohort",
    RECLAIMED_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
_LONGEST = 32 * 1024
# Reason and message of the condition.
Told = tuple[str, str]


def tell_preemption(entry: Entry, target: Target, victims: Queue) -> str:
    """Tell a victim for whom it goes, and why."""
    metadata = entry.info.manifest["metadata"]
    job = (metadata.get("labels") or {}).get("kueue.x-k8s.io/job-uid") or "UNKNOWN"
    return (
        f"Preempted to accommodate a workload (UID: {entry.info.uid or 'UNKNOWN'}, JobUID: {job}) due to "
        f"{_WORDS[target.reason]}; preemptor path: {write_path(entry.queue)}; preemptee path: {write_path(victims)}"
    )


def write_path(queue: Queue) -> str:
    names = [queue.name, *(cohort.name for cohort in walk_ancestors(queue))]
    return "/" + "/".join(reversed(names))


def set_condition(manifest: Manifest, kind: str, status: str, told: Told, now: str) -> Manifest:
    """Set a condition; its time is that of its last change from true to false or back."""
    changed: dict[str, Any] = copy.deepcopy(dict(manifest))
    conditions = changed.setdefault("status", {}).setdefault("conditions", [])
    old = find_condition(changed, kind)
    since = now if old is None or old["status"] != status else old.get("lastTransitionTime")
    if old is not None:
        conditions.remove(old)
    message = told[1] if len(told[1]) <= _LONGEST else f"{told[1][: _LONGEST - 4]} ..."
    conditions.append(
        {
            "type": kind,
            "status": status,
            "reason": told[0],
            "message": message,
            "lastTransitionTime": since,
        }
    )
    return changed


def reserve_quota(manifest: Manifest, queue: str, assignment: Assignment, now: str) -> Manifest:
    """Write what the workload got, and that it is evicted no more."""
    told = ("QuotaReserved", f"Quota reserved in ClusterQueue {queue}")
    changed: Mapping[str, Any] = set_condition(manifest, "QuotaReserved", "True", told, now)
    for kind in ("Evicted", "Preempted"):
        old = find_condition(changed, kind)
        if old is not None and old["status"] == "True":
            before = ("QuotaReserved", f"Previously: {old['message']}")
            changed = set_condition(changed, kind, "False", before, now)
    pod_sets = [
        {
            "name": one.name,
            "count": one.count,
            "flavors": {resource: choice.flavor for resource, choice in one.flavors.items()},
            "resourceUsage": {name: write_amount(name, one.requests[name]) for name in one.flavors},
        }
        for one in assignment.pod_sets
    ]
    admission = {"clusterQueue": queue, "podSetAssignments": pod_sets}
    return {**changed, "status": {**changed["status"], "admission": admission}}


def finish_old(old: Manifest, new: Manifest, now: str) -> Manifest:
    """Write that another workload has taken this one's place."""
    metadata = new["metadata"]
    job = (metadata.get("labels") or {}).get("kueue.x-k8s.io/job-uid", "")
    message = (
        f"Replaced to accommodate a workload (UID: {metadata.get('uid', '')}, JobUID: {job}) "
        "due to workload slice aggregation"
    )
    return set_condition(old, "Finished", "True", (REPLACED, message), now)


def mark_preempted(manifest: Manifest, reason: str, message: str, now: str) -> Manifest:
    """Write that the workload must go; it keeps its quota until its job has stopped."""
    changed = set_condition(manifest, "Evicted", "True", ("Preempted", message), now)
    return set_condition(changed, "Preempted", "True", (reason, message), now)


def take_quota(manifest: Manifest, now: str) -> Manifest:
    """Write that the job of an evicted workload has stopped; only who was preempted may come back at once."""
    evicted = find_condition(manifest, "Evicted") or {}
    reason, message = evicted["reason"], evicted.get("message", "")
    is_back = "True" if reason in {"Preempted", "NodeFailures"} else "False"
    changed = set_condition(manifest, "Requeued", is_back, (reason, message), now)
    changed = set_condition(changed, "QuotaReserved", "False", ("PendingEvaluation", message), now)
    status = {key: value for key, value in changed["status"].items() if key != "admission"}
    return {**changed, "status": status}
