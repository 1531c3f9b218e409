"""Tenants that have seen manifests of Kueue's objects, and cycles over them one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from scheduler.api import kueue
from scheduler.api.kinds import BY_KIND
from scheduler.api.queues import bounds, configuration, reading
from scheduler.api.queues.settings import QueueSettings
from scheduler.api.queues.workloads import Admission, Assigned, Shapes, read_workload
from scheduler.api.times import read_time
from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.outcomes import Outcome
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Work

Json = Mapping[str, Any]


def read_settings(config: Json) -> QueueSettings:
    """Read the settings of a Configuration of Kueue; a history that it does not weigh counts in Kueue's units."""
    told = {key: one for key, one in config.items() if key in {"fairSharing", "waitForPodsReady"}}
    if (history := config.get("admissionFairSharing")) is not None:
        told["admissionFairSharing"] = {"resourceWeights": {}, **history}
    return configuration.read_settings({"kueue": True, **told})


def make_tenants(objects: Iterable[Json], config: Json, now: str) -> Tenants:
    """Make tenants that have seen some objects, workloads last."""
    labels = {
        one["metadata"]["name"]: one["metadata"].get("labels", {})
        for one in objects
        if one["kind"] == "Namespace"
    }
    settings = read_settings(config)
    tenants, shapes = Tenants(settings, labels.get), Shapes()
    at = float(read_time(now) or 0)
    for body in sorted(objects, key=lambda one: one["kind"] == "Workload"):
        put_object(tenants, shapes, body, at, by_eviction=settings.by_eviction)
    return tenants


def put_object(
    tenants: Tenants, shapes: Shapes, body: Json, at: float, *, by_eviction: bool = True
) -> None:
    """Let tenants see an object; nothing if it is none of queues."""
    tenants.note_time(at)
    found: Any = None
    for kind in BY_KIND.get(body["kind"], ()):
        if kind.is_of_queues:
            found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
    match found:
        case kueue.ResourceFlavor():
            tenants.put_flavor(reading.read_flavor(found))
        case kueue.Cohort():
            tenants.directory.forest.put_cohort(reading.read_cohort(found))
        case kueue.ClusterQueue():
            tenants.put_queue(reading.read_queue(found))
        case kueue.LocalQueue():
            tenants.put_local_queue(reading.read_local_queue(found))
        case kueue.AdmissionCheck():
            tenants.put_check(found.metadata.name, reading.read_check(found))
        case kueue.LimitRange():
            meta = found.metadata
            tenants.put_ranges(meta.namespace, meta.name, bounds.read_limit_range(found.spec))
        case kueue.Workload():
            tenants.put_workload(read_workload(found, shapes, by_eviction=by_eviction), at)


def run_one_cycle(tenants: Tenants, now: str) -> Outcome:
    """Run one cycle over every tree, as Kueue does in one."""
    at, whole = float(read_time(now) or 0), Outcome()
    # All that has happened counts from here on.
    list(tenants.list_due(at))
    for tree in tenants.directory.forest.list_trees():
        outcome = tenants.run_cycle(tree, tenants.find_heads(tree), at)
        whole.admitted += outcome.admitted
        whole.preempted += outcome.preempted
        whole.left += outcome.left
    return whole


def make_work(body: Json, queue: str, *, by_eviction: bool = True) -> Work:
    """Make a workload that stands in no queue yet."""
    found = msgspec.convert({**body, "kind": "Workload"}, kueue.Workload)
    work = Work(read_workload(found, Shapes(), by_eviction=by_eviction))
    work.queue = queue
    return work


def run_cycles(tenants: Tenants, now: str, limit: int) -> list[Outcome]:
    """Run so many cycles; victims give their quota back before the next one, and wait again."""
    at, outcomes = float(read_time(now) or 0), [run_one_cycle(tenants, now)]
    while len(outcomes) < limit:
        outcome = outcomes[-1]
        for work, assignment in outcome.admitted:
            write_admission(tenants, work, assignment, at)
        for victim, _ in outcome.preempted:
            work = tenants.works[victim.key]
            tenants.put_workload(replace(work.defined, evicted="Preempted"), at)
        for work in sorted(tenants.works.values(), key=lambda one: one.key):
            if work.defined.evicted and work.defined.admission is not None:
                tenants.put_workload(replace(work.defined, admission=None), at)
        outcomes.append(run_one_cycle(tenants, now))
    return outcomes


def write_admission(tenants: Tenants, work: Work, assignment: Assignment, at: float) -> None:
    """Let the object of a workload say what the workload was given."""
    given = tuple(
        Assigned(
            one.name,
            one.n_pods,
            tuple((resource, chosen.flavor) for resource, chosen in one.flavors.items()),
            tuple((resource, one.requests[resource]) for resource in one.flavors),
        )
        for one in assignment.sets
    )
    admission = Admission(work.queue, given, at)
    defined = replace(work.defined, admission=admission, evicted="", is_admitted=True)
    tenants.put_workload(defined, at)
