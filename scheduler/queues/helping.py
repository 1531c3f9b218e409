"""Whom a change could help: cheap exact bounds first, for thousands of kinds of pods that wait.

A pod that fitted nowhere when it was last looked at can fit now only on rows that have changed since.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.templates import PodTemplate
from scheduler.devices.table import INNER_RESOURCES
from scheduler.queues import needs
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

# Labels are compared node by node, which is too dear for more rows than this: then only amounts are compared.
_ROWS_MAX = 64
# More than any pod asks, and less than what nobody asks.
_ANY = 2**63 - 2


class Changed:
    """The rows that changed, and the most of everything that one of them has free.

    Attributes:
        rows: [n] rows of usable nodes; None when it is not known which changed, and all may have.
    """

    def __init__(self, cluster: Cluster, rows: c.Ints | None) -> None:
        self._cluster = cluster
        nodes = cluster.nodes.columns
        self.rows = None if rows is None else rows[nodes.valid[rows]]
        self._most: c.Ints = np.zeros(0, np.int64)
        self._labels: list[dict[str, str]] | None = None
        if self.rows is None or not self.rows.size:
            return
        free = nodes.allocatable[:, self.rows] - nodes.requested[:, self.rows]
        self._most = free.max(axis=1)
        if self.rows.size <= _ROWS_MAX:
            found = (cluster.nodes.facts[row] for row in self.rows.tolist())
            self._labels = [facts.labels for facts in found if facts is not None]

    def lowest_priority(self) -> int:
        """Of the pods on the rows; higher than any where there is none."""
        pods = self._cluster.ledger.pods.columns
        there = pods.node >= 0
        if self.rows is not None:
            there &= np.isin(pods.node, self.rows)
        return int(pods.priority[there].min()) if there.any() else _ANY

    def most(self) -> c.Ints:
        """[RESOURCES] the most that a row has free of each that ``needs`` looks at."""
        if self.rows is None:
            return np.full(len(needs.RESOURCES), _ANY, np.int64)
        # Where more is used than there is, a pod that asks none of it still fits.
        return np.array([max(0, self._free(name)) for name in needs.RESOURCES], np.int64)

    def may_help(self, template: PodTemplate) -> bool:
        """False only where no pod of the template fits on any of the rows."""
        if self.rows is None:
            return True
        if not self.rows.size:
            return False
        for resource, amount in template.requests.amounts:
            # No node has a driver's inner resources; what its cards have is not looked at here.
            if resource not in INNER_RESOURCES and amount > self._free(resource):
                return False
        if self._labels is None or not template.selector:
            return True
        return any(
            all(labels.get(key) == value for key, value in template.selector)
            for labels in self._labels
        )

    def _free(self, resource: str) -> int:
        row = self._cluster.nodes.row_asked(resource)
        return int(self._most[row]) if row < self._most.size else 0
