"""What it costs if units go for a group, and which of them are to come back first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.api.cards import list_uses
from scheduler.api.times import read_time
from scheduler.disruption.cleared import Cost
from scheduler.disruption.group_units import Unit, is_core
from scheduler.disruption.units import find_costs
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord

_SECONDS_AN_HOUR = 3600.0
# The cores of a whole card, in percent.
_ALL_CORES = 100


def sum_costs(cluster: Cluster, units: Sequence[Unit], hours: Mapping[str, float]) -> Cost:
    """Sum up what it costs if units go; ``hours`` are by uid the GPU-hours that are lost with each pod."""
    go_through = cluster.pauses.go_through
    pods = [pod for unit in go_through(units) for pod in unit.pods]
    costs = find_costs(cluster, pods) if pods else {}
    return Cost(
        sum(costs.values()),
        max((pod.priority for pod in go_through(pods)), default=-(2**62)),
        len({unit.group for unit in go_through(units) if is_core(unit)}),
        sum(hours[pod.uid] for pod in go_through(pods)),
        len(pods),
        tuple(sorted([pod.key for pod in go_through(pods)])),
    )


def find_hours(cluster: Cluster, entity: Entity, pods: Sequence[PodRecord]) -> dict[str, float]:
    """Find by uid how many GPU-hours of work are lost if pods go for a group.

    It is the work since the pod started, or at most since it saved its work the last time.
    """
    came = max((read_time(pod.created) or 0 for pod in entity.members), default=0)
    # The clock stands still where a file is read that does not say what time it is.
    now = max(came, cluster.now)
    starts = cluster.ledger.pods.columns.start[np.array([pod.row for pod in pods], np.int64)]
    ran = np.where(starts == c.NOT_STARTED, 0.0, np.maximum(0.0, now - starts))
    found = dict.fromkeys((pod.uid for pod in cluster.pauses.go_through(pods)), 0.0)
    for i in np.flatnonzero(ran).tolist():
        pod, seconds = pods[i], float(ran[i])
        if pod.checkpoint_seconds is not None:
            seconds = min(seconds, pod.checkpoint_seconds)
        found[pod.uid] = _count_cards(cluster, pod) * seconds / _SECONDS_AN_HOUR
    return found


def _count_cards(cluster: Cluster, pod: PodRecord) -> float:
    """Count the cards of a pod: of a shared one the part that it holds of its cores, all of it if it may use all."""
    if uses := list_uses(pod.claim):
        return sum(min(1.0, use.cores / _ALL_CORES) if use.cores else 1.0 for use in uses)
    amounts, devices = pod.template.requests.amounts, cluster.nodes.devices
    return float(sum(amount for name, amount in amounts if devices.is_family(name)))


def find_worth(unit: Unit, costs: dict[str, int], hours: dict[str, float]) -> tuple[object, ...]:
    """Return a key that puts the unit first that is dearest; an extra pod comes after its group.

    ``costs`` and ``hours`` say by uid what the protectors say that a pod costs, and the GPU-hours that are lost with it.
    """
    uids = [pod.uid for pod in unit.pods]
    is_alone = unit.group is None or unit.is_extra
    return (
        unit.is_extra,
        -sum(map(costs.__getitem__, uids)),
        -unit.priority,
        is_alone,
        -sum(map(hours.__getitem__, uids)),
        -len(unit.pods),
        unit.pods[0].created,
        unit.pods[0].key,
    )
