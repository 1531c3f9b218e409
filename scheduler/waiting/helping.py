"""Tells cheaply which waiting pods a change on some nodes cannot help, before anybody looks closer.

A pod that fitted nowhere when it was last looked at can fit now only on rows that have changed since then. The bounds
here are exact: they never exclude a pod that fits.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from scheduler.api.door.decisions import Barriers
from scheduler.api.pods.templates import PodTemplate
from scheduler.plugins import barriers
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.waiting import needs

# Labels are compared node by node. For more rows than this that is too expensive, and only amounts are compared.
_ROWS_MAX = 64
# More than any pod asks, and less than ``needs`` has in a slot without a kind.
_ANY = 2**63 - 2


class FreeRows:
    """Remembers what sets of rows have free, as many kinds of pods are looked at on the same rows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[frozenset[int] | None, Changed] = {}

    def find_changed(self, rows: AbstractSet[int] | None) -> Changed:
        """Return what some rows have free; None stands for all rows."""
        key = None if rows is None else frozenset(rows)
        found = self._found.get(key)
        if found is None:
            asked = None if rows is None else np.array(sorted(rows), np.int64)
            found = self._found[key] = Changed(self._cluster, asked)
        return found


class Changed:
    """Rows that changed, and the most that any of these rows has free of each resource.

    Attributes:
        rows: [n] rows of usable nodes; None when nobody knows which rows changed: any of them may have.
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
        # Where a class serves a resource, claims say how much of it is there.
        self._most = np.where(nodes.by_class[:, self.rows], _ANY, free).max(axis=1)
        if self.rows.size <= _ROWS_MAX:
            found = (cluster.nodes.facts[row] for row in self.rows.tolist())
            self._labels = [facts.labels for facts in found if facts is not None]

    def find_most(self) -> c.Ints:
        """Return [RESOURCES] the most that a row has free of each of ``needs.RESOURCES``."""
        if self.rows is None:
            return np.full(len(needs.RESOURCES), _ANY, np.int64)
        # A node may have less than 0 free of a resource; a pod that asks none of the resource still fits there.
        return np.array([max(0, self._free(name)) for name in needs.RESOURCES], np.int64)

    def find_barriers(self, template: PodTemplate) -> Barriers | None:
        """Return what keeps pods of a template off all these rows, by amounts and selectors alone.

        None: perhaps nothing keeps them off.
        """
        if self.rows is None:
            return None
        if not self.rows.size:
            return Barriers()
        inner = self._cluster.nodes.devices.inner_resources
        for i, (resource, amount) in enumerate(template.requests.amounts, 1):
            # No node reports a driver's inner resources, and this check does not look at cards.
            if resource not in inner and amount > self._free(resource):
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
        row = self._cluster.nodes.find_row_asked(resource)
        return int(self._most[row]) if row < self._most.size else 0
