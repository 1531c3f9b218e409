"""Which pods of a cluster a policy lets move, and how many of each namespace."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import wire
from scheduler.api.rebalancing.policy import Rebalancing, When
from scheduler.plan.making import Limits
from scheduler.rebalance import budgets
from scheduler.rebalance.budgets import PastMove
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.inventory import Inventory

OTHER_NAMESPACES = "in namespaces that the policy does not select"
OTHER_PODS = "that the policy does not select"
SPENT = "in namespaces of which no more pods may be moved this hour"
MISSED = "of controllers of which a move did not end as planned within the hour"


def find_limits(policy: Rebalancing, moves: Sequence[PastMove], inventory: Inventory) -> Limits:
    """Find what a policy lets move, after its moves of the last hour.

    Where a move did not end as planned, the next one would hardly do: the pods of that controller would be moved at each
    plan for nothing, and no others would have their turn.
    """
    moved, missed = budgets.count_by_namespace(moves), budgets.list_missed(moves)
    labels = {one.metadata.name: one.metadata.labels or {} for one in inventory.namespaces}
    most_in = {
        namespace: policy.per_namespace - moved[namespace]
        for namespace in {pod.metadata.namespace for pod in inventory.pods}
    }
    kept: dict[str, str] = {}
    for pod in inventory.pods:
        meta = pod.metadata
        if not policy.namespaces.matches(labels.get(meta.namespace, {})):
            kept[meta.uid] = OTHER_NAMESPACES
        elif not policy.pods.matches(meta.labels or {}):
            kept[meta.uid] = OTHER_PODS
        elif most_in[meta.namespace] <= 0:
            kept[meta.uid] = SPENT
        elif _find_controller(pod) in missed:
            kept[meta.uid] = MISSED
    return Limits(kept, most_in, policy.when == When.PODS_WAIT)


def _find_controller(pod: wire.Pod) -> tuple[str, str]:
    """Find the controller of a pod as ``list_missed`` names it."""
    owner = objects.find_owner(pod)
    return pod.metadata.namespace, "" if owner is None else budgets.name_controller(owner)
