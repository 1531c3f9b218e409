"""Writes what a workload was given as its object says it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from scheduler.api import kueue
from scheduler.api.door.workload_decisions import Admit, DomainsGiven
from scheduler.api.kinds import WORKLOADS
from scheduler.api.queues.amounts import write_amount
from scheduler.api.queues.domains import read_domains, write_domains


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


def write_new_domains(
    given: kueue.Admission, sets: Mapping[str, DomainsGiven], version: str = WORKLOADS.version
) -> kueue.Admission:
    """Write what a workload was given with other domains for some of its pod sets."""
    assigned = [
        msgspec.structs.replace(one, topology_assignment=write_domains(sets[one.name], version))
        if one.name in sets
        else one
        for one in given.pod_set_assignments or ()
    ]
    return msgspec.structs.replace(given, pod_set_assignments=assigned)


def has_domains(given: kueue.Admission | None, sets: Mapping[str, DomainsGiven]) -> bool:
    """Whether what a workload was given has these domains already."""
    found = (given.pod_set_assignments if given is not None else None) or ()
    return given is not None and all(
        read_domains(one.topology_assignment) == sets[one.name] for one in found if one.name in sets
    )
