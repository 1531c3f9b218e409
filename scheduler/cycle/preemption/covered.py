"""Which set of disruption budgets covers each pod on a node, by row of the pod table."""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster


class Covered:
    """Kept up with the nodes that are asked about and have changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sets: c.Ints = np.zeros(0, np.int64)
        self._version = -1

    def sets(self, rows: c.Ints) -> c.Ints:
        """[M] ``Prey.sets`` of the pods on these rows; those of others may be out of date."""
        cluster = self._cluster
        budgets, size = cluster.budgets, cluster.ledger.pods.columns.node.size
        if self._sets.size != size or self._version != budgets.version:
            self._sets, self._version = np.full(size, -1, np.int64), budgets.version
        if not len(budgets):
            return self._sets
        for row in rows.tolist():
            for pod in cluster.pods_on.get(cluster.nodes.name_of(row), {}).values():
                self._sets[pod.row] = budgets.set_of(pod)
        return self._sets
