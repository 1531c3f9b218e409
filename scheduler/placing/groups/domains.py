"""The domains of a topology: which nodes belong together at each level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster


class Level(NamedTuple):
    """The domains of one level.

    Attributes:
        domain: [N] the number of each node's domain; -1 for a node that lacks the label of this level or of one above.
        names: the values of the labels by which each domain is named, from the widest level on.
        parent: [domains] the number of the domain of the level above within which each lies; 0 at the widest level.
    """

    domain: c.Ints
    names: tuple[tuple[str, ...], ...]
    parent: c.Ints


class Domains:
    """The levels that groups have named since labels of nodes changed last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made_at = -1
        self._made: dict[tuple[str, ...], Level] = {}

    def get_level(self, labels: tuple[str, ...]) -> Level:
        """Return the domains of the last of these labels: nodes that share the values of all of them are a domain."""
        position = self._cluster.described.position
        if self._made_at != position:
            self._made, self._made_at = {}, position
        found = self._made.get(labels)
        if found is None:
            found = self._made[labels] = self._make_level(labels)
        return found

    def _make_level(self, labels: tuple[str, ...]) -> Level:
        nodes = self._cluster.nodes
        own = nodes.get_label_column(labels[-1])
        if len(labels) > 1:
            above = self.get_level(labels[:-1])
            outer, outer_names = above.domain, above.names
        else:
            outer, outer_names = np.zeros(nodes.capacity, np.int64), ((),)
        rows = np.flatnonzero(nodes.columns.valid & (own >= 0) & (outer >= 0))
        # Domains are numbered by their names, so that equal clusters number them equally.
        values = nodes.label_values.values
        pairs, inverse = np.unique(np.stack((outer[rows], own[rows])), axis=1, return_inverse=True)
        names = [(*outer_names[above], values[value]) for above, value in pairs.T.tolist()]
        order = sorted(range(len(names)), key=names.__getitem__)
        place = np.empty(len(names), np.int64)
        place[order] = np.arange(len(names))
        domain = np.full(nodes.capacity, -1, np.int64)
        domain[rows] = place[inverse.ravel()]
        return Level(domain, tuple(names[i] for i in order), pairs[0][order])
