"""Which pods of a cluster a policy lets move, and how many of each namespace."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api.rebalancing.policy import Rebalancing, When
from scheduler.plan.making import Limits
from scheduler.simulate.reading.inventory import Inventory

OTHER_NAMESPACES = "in namespaces that the policy does not select"
OTHER_PODS = "that the policy does not select"
SPENT = "in namespaces of which no more pods may be moved this hour"


def find_limits(policy: Rebalancing, moved: Mapping[str, int], inventory: Inventory) -> Limits:
    """Find what a policy lets move; ``moved`` has how many pods of each namespace were moved within the hour."""
    labels = {one.metadata.name: one.metadata.labels or {} for one in inventory.namespaces}
    most_in = {
        namespace: policy.per_namespace - moved.get(namespace, 0)
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
    return Limits(kept, most_in, policy.when == When.PODS_WAIT)
