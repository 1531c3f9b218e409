"""What a queue is and has, as rows of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from scheduler.api.queues.amounts import write_amount, write_quota
from scheduler.api.queues.definitions import QueueDefinition, ResourceGroup
from scheduler.api.selectors import NOTHING, Requirement, Selector
from scheduler.api.times import write_time
from scheduler.engine.questions.queues import (
    KnownQueue,
    QueueRecord,
    QueueStanding,
    WaitersOf,
    WorkloadStanding,
)
from scheduler.queues.scene import Scene, is_aside
from scheduler.queues.starts import write_start
from scheduler.simulate.queues import write_queue
from scheduler.simulate.reading.objects import NOT_YET

Json = dict[str, Any]
_ALL = 2**31


def list_queues(scene: Scene) -> list[Json]:
    """List the queues of the cluster by name."""
    found = [one for one in scene.queues if not one.is_cohort]
    return [_write_queue(scene, one) for one in sorted(found, key=lambda one: one.name)]


def list_tree(scene: Scene) -> list[Json]:
    """List cohorts and queues, each behind its parent and before the next one beside its parent."""
    below: dict[str, list[QueueStanding]] = {}
    names = {one.name for one in scene.queues if one.is_cohort}
    for one in scene.queues:
        # Cohorts in a circle have no place in a tree: their queues stand by themselves.
        below.setdefault(one.parent if one.parent in names else "", []).append(one)
    return [_write_queue(scene, one) for one in _walk(below, "")]


def _write_queue(scene: Scene, one: QueueStanding) -> Json:
    return write_queue(one) | {"aside": 0 if one.is_cohort else scene.n_aside[one.name]}


def _walk(below: dict[str, list[QueueStanding]], root: str) -> Iterator[QueueStanding]:
    """List what is below a cohort; chains of cohorts may be longer than Python's stack is deep."""
    left = [iter(_sort(below.get(root, ())))]
    while left:
        one = next(left[-1], None)
        if one is None:
            left.pop()
            continue
        yield one
        if one.is_cohort:
            left.append(iter(_sort(below.get(one.name, ()))))


def _sort(some: Iterable[QueueStanding]) -> list[QueueStanding]:
    return sorted(some, key=lambda one: (one.is_cohort, one.name))


def list_lost(scene: Scene) -> list[Json]:
    """List the workloads that lead to no queue, with the reasons."""
    known = {one.name for one in scene.queues if not one.is_cohort}
    lost = (one for one in scene.workloads.values() if is_aside(one) and one.queue not in known)
    return [_write_aside(one) for one in lost]


def list_astray(scene: Scene) -> list[Json]:
    """List the local queues that lead to no queue."""
    return [
        {"namespace": one.namespace, "name": one.name, "queue": one.queue}
        for one in scene.list_astray()
    ]


def _write_aside(one: WorkloadStanding) -> Json:
    return _write_name(one) | {"reason": one.reason, "message": one.message}


def show(scene: Scene, standing: QueueStanding, most: int) -> Json:
    """Show one queue, or a cohort, in full; of those who wait at most so many, 0 for all."""
    record = scene.engine.ask(KnownQueue(standing.name, standing.is_cohort))
    name = "" if standing.is_cohort else standing.name
    of_queue = [one for one in scene.workloads.values() if one.queue == name] if name else []
    waiters = scene.engine.ask(WaitersOf(name, most or _ALL)) if name else ()
    starts = scene.foresee(one.key for one in waiters)
    is_strict = record.queue is not None and record.queue.is_strict
    return {
        "queue": _write_queue(scene, standing),
        "quotas": list(_list_quotas(record)),
        "policies": None if record.queue is None else _write_policies(record.queue),
        "path": list(_list_path(scene, standing)),
        "children": [
            one.name for one in scene.queues if standing.is_cohort and one.parent == standing.name
        ],
        "localQueues": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "weight": one.weight,
                "stopPolicy": str(one.stop),
            }
            for one in record.locals
        ],
        "holders": [
            _write_name(one)
            | {
                "priority": one.priority,
                "since": write_time(one.reserved_at),
                "admitted": one.is_admitted,
                "going": one.is_going,
                "uses": write_uses(one),
            }
            for one in of_queue
            if one.where == "holds"
        ],
        "waiters": [
            _write_name(scene.workloads[one.key])
            | {
                "priority": scene.workloads[one.key].priority,
                "position": i,
                "since": write_since(scene.workloads[one.key].since),
                "state": "behind" if is_strict and i and one.verdict != "goes" else one.verdict,
                "reason": one.reason,
                "message": one.message,
                **write_start(starts.get(one.key)),
            }
            for i, one in enumerate(waiters)
        ],
        "notShown": max(0, standing.waiting - len(waiters)),
        "aside": [_write_aside(one) for one in of_queue if is_aside(one)],
    }


def write_uses(one: WorkloadStanding) -> list[Json]:
    """Write what a workload holds."""
    return [
        {"flavor": flavor, "resource": resource, "amount": write_amount(resource, n)}
        for flavor, resource, n in one.flavors
    ]


def _write_name(one: WorkloadStanding) -> Json:
    namespace, _, name = one.key.partition("/")
    return {"namespace": namespace, "name": name, "localQueue": one.local.partition("/")[2]}


def _list_path(scene: Scene, standing: QueueStanding) -> Iterator[str]:
    """List the cohorts above a queue, the nearest first."""
    parents = {one.name: one.parent for one in scene.queues if one.is_cohort}
    name, seen = standing.parent, set[str]()
    while name and name not in seen:
        yield name
        seen.add(name)
        name = parents.get(name, "")


def _list_quotas(record: QueueRecord) -> Iterator[Json]:
    groups: tuple[ResourceGroup, ...] = ()
    if record.queue is not None:
        groups = record.queue.groups
    elif record.cohort is not None:
        groups = record.cohort.groups
    for group in groups:
        for flavor in group.flavors:
            for resource, quota in zip(group.resources, flavor.quotas, strict=True):
                limits = quota.borrowing, quota.lending
                borrowing, lending = (
                    None if n is None else write_quota(resource, n) for n in limits
                )
                yield {
                    "flavor": flavor.flavor,
                    "resource": resource,
                    "nominal": write_quota(resource, quota.nominal),
                    "borrowingLimit": borrowing,
                    "lendingLimit": lending,
                }


def _write_policies(queue: QueueDefinition) -> Json:
    preemption, fungibility = queue.preemption, queue.fungibility
    return {
        "queueingStrategy": "StrictFIFO" if queue.is_strict else "BestEffortFIFO",
        "withinClusterQueue": str(preemption.within),
        "reclaimWithinCohort": str(preemption.reclaim),
        "borrowWithinCohort": "LowerPriority" if preemption.borrows else "Never",
        "maxPriorityThreshold": preemption.threshold,
        "whenCanBorrow": "TryNextFlavor" if fungibility.skips_borrowing else "MayStopSearch",
        "whenCanPreempt": "TryNextFlavor" if fungibility.skips_preempting else "MayStopSearch",
        "preference": "PreemptionOverBorrowing"
        if fungibility.prefers_preempting
        else "BorrowingOverPreemption",
        "stopPolicy": str(queue.stop),
        "namespaceSelector": _write_selector(queue.namespaces),
        "admissionChecks": [one.name for one in queue.checks],
        "usageBasedOrder": queue.by_usage,
    }


def _write_selector(selector: Selector) -> str:
    """Write a selector of namespaces in words."""
    if selector == NOTHING:
        return "no namespace"
    return ", ".join(map(_write_requirement, selector.requirements)) or "all namespaces"


def _write_requirement(one: Requirement) -> str:
    values = list(one.values)
    match one.operator:
        case "In" if len(values) == 1:
            return f"{one.key}={values[0]}"
        case "In" | "NotIn":
            return f"{one.key} {one.operator.lower()} ({', '.join(values)})"
        case "Exists":
            return one.key
        case _:
            return f"!{one.key}"


def write_since(at: float) -> str | None:
    """Write since when a workload has its place; None for one that is not in a cluster yet."""
    text = write_time(at)
    return None if text == NOT_YET else text
