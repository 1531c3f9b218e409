"""Finds the waiting pods that a change could help; cheap exact bounds sort out most of them first.

A pod that fitted nowhere when it was last looked at can fit now only on rows that have changed since.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from scheduler.api.door.decisions import Barriers
from scheduler.api.pods.templates import PodTemplate
from scheduler.devices.table import INNER_RESOURCES
from scheduler.plugins import barriers
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.waiting import needs

# Labels are compared node by node, which is too expensive for more rows than this: then only amounts are compared.
_ROWS_MAX = 64
# More than any pod asks, and less than what nobody asks.
_ANY = 2**63 - 2


class FreeRows:
    """What was free on rows when somebody looked: the same rows are looked at for many kinds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[frozenset[int] | None, Changed] = {}

    def on(self, rows: AbstractSet[int] | None) -> Changed:
        """Of some rows; None: of any."""
        key = None if rows is None else frozenset(rows)
        found = self._found.get(key)
        if found is None:
            asked = None if rows is None else np.array(sorted(rows), np.int64)
            found = self._found[key] = Changed(self._cluster, asked)
        return found


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

    def most(self) -> c.Ints:
        """[RESOURCES] the most that a row has free of each that ``needs`` looks at."""
        if self.rows is None:
            return np.full(len(needs.RESOURCES), _ANY, np.int64)
        # Where more is used than there is, a pod that asks none of it still fits.
        return np.array([max(0, self._free(name)) for name in needs.RESOURCES], np.int64)

    def keeps_off(self, template: PodTemplate) -> Barriers | None:
        """What keeps pods of a template off all of the rows, as far as is seen without looking closer.

        None: perhaps nothing does.
        """
        if self.rows is None:
            return None
        if not self.rows.size:
            return Barriers()
        for i, (resource, amount) in enumerate(template.requests.amounts, 1):
            # No node has a driver's inner resources; what its cards have is not looked at here.
            if resource not in INNER_RESOURCES and amount > self._free(resource):
                return barriers.make_shortage(i)
        if self._labels is None or not template.selector:
            return None
        if any(
            all(labels.get(key) == value for key, value in template.selector)
            for labels in self._labels
        ):
            return None
        return barriers.LACKS_LABEL

    def _free(self, resource: str) -> int:
        row = self._cluster.nodes.row_asked(resource)
        return int(self._most[row]) if row < self._most.size else 0
