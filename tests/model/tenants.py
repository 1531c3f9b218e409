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
from scheduler.api.queues.workloads import Shapes, read_workload
from scheduler.api.times import read_time
from scheduler.tenancy import rounds
from scheduler.tenancy.cycle import Outcome
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
    tenants = Tenants(settings, labels.get)
    shapes = Shapes()
    at = float(read_time(now) or 0)
    for body in sorted(objects, key=lambda one: one["kind"] == "Workload"):
        found: Any = None
        for kind in BY_KIND.get(body["kind"], ()):
            if kind.is_of_queues:
                found = msgspec.convert({**body, "kind": kind.name}, kind.shape)
        match found:
            case kueue.ResourceFlavor():
                tenants.put_flavor(reading.read_flavor(found))
            case kueue.Cohort():
                tenants.put_cohort(reading.read_cohort(found))
            case kueue.ClusterQueue():
                tenants.put_queue(reading.read_queue(found))
            case kueue.LocalQueue():
                tenants.put_local_queue(reading.read_local_queue(found))
            case kueue.LimitRange():
                meta = found.metadata
                tenants.put_ranges(meta.namespace, meta.name, bounds.read_limit_range(found.spec))
            case kueue.Workload():
                defined = read_workload(found, shapes, by_eviction=settings.by_eviction)
                tenants.put_workload(defined, at)
    return tenants


def run_one_cycle(tenants: Tenants, now: str) -> Outcome:
    """Run one cycle over every tree, as Kueue does in one."""
    at, whole = float(read_time(now) or 0), Outcome()
    for tree in list(tenants.list_due(at)):
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


def run_rounds(tenants: Tenants, now: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run cycles until nothing comes of any; victims give their quota back at once, and wait again.

    Returns:
        Who was admitted, with queue and flavors, and who was preempted, by whom and why, over all cycles.
    """
    at = float(read_time(now) or 0)
    admitted: dict[str, Any] = {}
    preempted: dict[str, Any] = {}
    while tenants.has_due:
        for one in rounds.run_rounds(tenants, at):
            for work, assignment in one.admitted:
                admitted[work.key] = {
                    "clusterQueue": work.queue,
                    "podSets": {
                        given.name: {
                            "count": given.n_pods,
                            "flavors": {k: chosen.flavor for k, chosen in given.flavors.items()},
                        }
                        for given in assignment.sets
                    },
                }
            for victim, by in one.preempted:
                preempted[victim.key] = {"by": by.key, "reason": str(victim.why)}
                work = tenants.works[victim.key]
                tenants.put_workload(replace(work.defined, admission=None, evicted="Preempted"), at)
    return admitted, preempted
