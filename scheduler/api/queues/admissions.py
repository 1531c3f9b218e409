"""Writes what a workload was given as its object says it."""

from __future__ import annotations

from scheduler.api import kueue
from scheduler.api.door.workload_decisions import Admit
from scheduler.api.kinds import WORKLOADS
from scheduler.api.queues.amounts import write_amount
from scheduler.api.queues.domains import write_domains


def write_admission(decision: Admit, version: str = WORKLOADS.version) -> kueue.Admission:
    """Write ``status.admission`` of a workload that gets quota, in a version of Kueue's API."""
    return kueue.Admission(
        cluster_queue=decision.queue,
        pod_set_assignments=[
            kueue.PodSetAssignment(
                name=one.name,
                flavors=dict(one.flavors),
                resource_usage={name: write_amount(name, n) for name, n in one.used},
                count=one.n_pods,
                topology_assignment=write_domains(one.domains, version),
            )
            for one in decision.sets
        ],
    )
