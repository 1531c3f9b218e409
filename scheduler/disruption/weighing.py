"""What it costs if units go for a group, and which of them are to come back first."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api.times import read_time
from scheduler.disruption.cleared import Cost
from scheduler.disruption.group_units import Unit, is_core
from scheduler.disruption.units import find_costs
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord

_SECONDS_AN_HOUR = 3600.0


def sum_costs(cluster: Cluster, entity: Entity, units: Sequence[Unit]) -> Cost:
    """Sum up what it costs if units go for a group."""
    pods = [pod for unit in units for pod in unit.pods]
    costs = find_costs(cluster, pods) if pods else {}
    came = max((read_time(pod.created) or 0 for pod in entity.members), default=0)
    start = cluster.ledger.pods.columns.start
    hours = sum(
        _count_cards(pod) * max(0, came - int(start[pod.row])) / _SECONDS_AN_HOUR
        for pod in pods
        if start[pod.row] != c.NOT_STARTED
    )
    return Cost(
        sum(costs.values()),
        max((pod.priority for pod in pods), default=-(2**62)),
        len({unit.group for unit in units if is_core(unit)}),
        hours,
        len(pods),
        tuple(sorted(pod.key for pod in pods)),
    )


def _count_cards(pod: PodRecord) -> int:
    return max(1, sum(len(uses) for uses in pod.claim))


def find_worth(unit: Unit, costs: dict[str, int]) -> tuple[object, ...]:
    """Return a key that puts the unit first that is dearest; an extra pod comes after its group."""
    cost = sum(costs[pod.uid] for pod in unit.pods)
    is_alone = unit.group is None or unit.is_extra
    return (
        unit.is_extra,
        -cost,
        -unit.priority,
        is_alone,
        -len(unit.pods),
        unit.pods[0].created,
        unit.pods[0].key,
    )
