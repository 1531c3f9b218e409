"""Writes what a workload was given as its object says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.api import kueue
from scheduler.api.door.decisions import Admit, DomainsGiven
from scheduler.api.queues.amounts import write_amount

Json = dict[str, Any]
# The version in which domains are listed one by one; later ones write what they have in common once.
_ONE_BY_ONE = "v1beta1"


def write_admission(decision: Admit, version: str = "v1beta2") -> kueue.Admission:
    """Write ``status.admission`` of a workload that gets quota, in a version of Kueue's API."""
    return kueue.Admission(
        cluster_queue=decision.queue,
        pod_set_assignments=[
            kueue.PodSetAssignment(
                name=one.name,
                flavors=dict(one.flavors),
                resource_usage={name: write_amount(name, n) for name, n in one.used},
                count=one.n_pods,
                topology_assignment=_write_domains(one.domains, version),
            )
            for one in decision.sets
        ],
    )


def _write_domains(given: DomainsGiven | None, version: str) -> Json | None:
    """Write a ``topologyAssignment``."""
    if given is None:
        return None
    made: Json = {"levels": list(given.levels)}
    if version == _ONE_BY_ONE:
        domains = [{"values": list(values), "count": n} for values, n in given.domains]
        return made | {"domains": domains}
    by_level = zip(*(values for values, _ in given.domains), strict=True)
    slice_ = {
        "domainCount": len(given.domains),
        "valuesPerLevel": [_write_values(values) for values in by_level],
        "podCounts": _write_counts([n for _, n in given.domains]),
    }
    return made | {"slices": [slice_]}


def _write_values(values: Sequence[str]) -> Json:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    return {"individual": {"roots": list(values)}}


def _write_counts(counts: Sequence[int]) -> Json:
    if len(set(counts)) == 1:
        return {"universal": counts[0]}
    return {"individual": list(counts)}
