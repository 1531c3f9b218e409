"""How important pods on nodes are, by what protectors say that their going costs and then by priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.disruption.units import find_costs
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Importance(NamedTuple):
    """How important some pods are together; compares as the search for victims does.

    Attributes:
        cost: what protectors say that their going costs.
        priority: the highest priority of one of the pods.
    """

    cost: int
    priority: int


def find_importance(cluster: Cluster, pods: Sequence[PodRecord]) -> Importance:
    """Find how important pods are if just these go together; there must be a pod."""
    costs = find_costs(cluster, pods)
    return Importance(sum(costs.values()), max(pod.priority for pod in pods))


def rank_pods(cluster: Cluster, pods: Sequence[PodRecord]) -> dict[str, int]:
    """Rank pods that may go together, by uid: 0 for the pod to keep first, equal for pods that are equally important."""
    costs = find_costs(cluster, pods)
    found = {pod.uid: Importance(costs[pod.uid], pod.priority) for pod in pods}
    rank_of = {one: rank for rank, one in enumerate(sorted(set(found.values()), reverse=True))}
    return {uid: rank_of[one] for uid, one in found.items()}
