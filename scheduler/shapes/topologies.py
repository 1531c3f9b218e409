"""Domains of nodes by a label, numbered for kernels; all shapes that use the label share them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

# A label that no node has, because every label has a name.
_NO_LABEL = ""


class Topology(NamedTuple):
    """The domains of one label.

    Attributes:
        domain: [N] domain of each node, -1 for a node without the label.
        n: the number of domains.
        empty: the domain of the empty value, -1 if no node has the empty value.
    """

    domain: c.Ints
    n: int
    empty: int


class Topologies:
    """The domains of the labels that rules have used since a node's labels changed last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made_at = -1
        self._made: dict[tuple[str, bool], Topology] = {}
        self._logs: c.Floats = np.zeros(0)

    def get_topology(self, key: str, *, by_node: bool) -> Topology:
        """Return the domains of a label; ``by_node``: each node with the label is a domain by itself."""
        position = self._cluster.described.position
        if self._made_at != position:
            self._made, self._made_at = {}, position
        # All labels that no node has share one entry, because pods can name any number of such labels.
        key = key if self._cluster.nodes.has_label(key) else _NO_LABEL
        found = self._made.get((key, by_node))
        if found is None:
            found = self._made[key, by_node] = self._make_topology(key, by_node=by_node)
        return found

    def get_logs(self) -> c.Floats:
        """Return [N + 3] ln(n + 2): the weight of a pod in one of n domains."""
        size = self._cluster.nodes.capacity + 3
        if self._logs.size != size:
            # One number at a time, as kube-scheduler does it: NumPy's logarithms of arrays may differ in the last bit.
            self._logs = np.array([math.log(n + 2) for n in range(size)])
        return self._logs

    def _make_topology(self, key: str, *, by_node: bool) -> Topology:
        nodes = self._cluster.nodes
        column = nodes.get_label_column(key)
        if by_node:
            domain = np.where(column >= 0, np.arange(nodes.capacity), -1)
            return Topology(domain, nodes.capacity, -1)
        rows = np.flatnonzero(column >= 0)
        values, domains = np.unique(column[rows], return_inverse=True)
        domain = np.full(nodes.capacity, -1, np.int64)
        domain[rows] = domains
        empty = np.flatnonzero(values == nodes.label_values.find(""))
        return Topology(domain, values.size, int(empty[0]) if empty.size else -1)
