"""Domains of nodes by a label, numbered for kernels; shared by all shapes that look at the label."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster

# No node has a label without a name.
_NO_LABEL = ""


class Topology(NamedTuple):
    """The domains of one label.

    Attributes:
        domain: [N] domain of each node, -1 where it has no such label.
        n: how many domains there are.
        empty: the domain of the empty value, -1 when no node has that.
    """

    domain: c.Ints
    n: int
    empty: int


class Topologies:
    """The labels that rules have looked at since any node's labels changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made_at = -1
        self._made: dict[tuple[str, bool], Topology] = {}
        self._logs: c.Floats = np.zeros(0)

    def get_topology(self, key: str, *, by_node: bool) -> Topology:
        """The domains of a label; ``by_node``: each node that has it is a domain by itself."""
        position = self._cluster.described.position
        if self._made_at != position:
            self._made, self._made_at = {}, position
        # All labels that no node has are alike: pods can name any number of them.
        key = key if self._cluster.nodes.has_label(key) else _NO_LABEL
        found = self._made.get((key, by_node))
        if found is None:
            found = self._made[key, by_node] = self._make(key, by_node=by_node)
        return found

    def logs(self) -> c.Floats:
        """[N + 3] ln(n + 2): what a pod counts in one of n domains."""
        size = self._cluster.nodes.capacity + 3
        if self._logs.size != size:
            # Of one number at a time, as kube-scheduler does it: those of whole arrays may differ in the last bit.
            self._logs = np.array([math.log(n + 2) for n in range(size)])
        return self._logs

    def _make(self, key: str, *, by_node: bool) -> Topology:
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
