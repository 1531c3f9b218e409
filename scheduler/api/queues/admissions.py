"""Writes what a workload was given as its object says it."""

from __future__ import annotations

from scheduler.api import kueue
from scheduler.api.door.decisions import Admit
from scheduler.api.queues.amounts import write_amount


def write_admission(decision: Admit) -> kueue.Admission:
    """Write ``status.admission`` of a workload that gets quota."""
    return kueue.Admission(
        cluster_queue=decision.queue,
        pod_set_assignments=[
            kueue.PodSetAssignment(
                name=one.name,
                flavors=dict(one.flavors),
                resource_usage={name: write_amount(name, n) for name, n in one.used},
                count=one.n_pods,
            )
            for one in decision.sets
        ],
    )
