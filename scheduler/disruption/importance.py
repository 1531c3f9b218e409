"""How important pods on nodes are, by what protectors say that their going costs and then by priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.disruption.units import find_costs
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Loss(NamedTuple):
    """What is lost if some pods go together; compares as the search for victims does, and less is better.

    Attributes:
        cost: what protectors say that it costs.
        priority: the highest priority of one of the pods.
    """

    cost: int
    priority: int


def find_loss(cluster: Cluster, pods: Sequence[PodRecord]) -> Loss:
    """Find what is lost if just these pods go; there must be a pod."""
    costs = find_costs(cluster, pods)
    return Loss(sum(costs.values()), max(pod.priority for pod in pods))


def rank_pods(cluster: Cluster, pods: Sequence[PodRecord]) -> dict[str, int]:
    """Rank pods that may go together, by uid: 0 for the pod to keep first, equal for pods that are equally important."""
    costs = find_costs(cluster, pods)
    losses = {pod.uid: Loss(costs[pod.uid], pod.priority) for pod in pods}
    rank_of = {loss: rank for rank, loss in enumerate(sorted(set(losses.values()), reverse=True))}
    return {uid: rank_of[loss] for uid, loss in losses.items()}
