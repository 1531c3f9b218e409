"""Finds the nodes on which more may be free for whoever takes the place of others, by comparing columns with earlier ones.

A search that is undone moves many rows and changes none, so it is no news here. A pod of low priority in the place of one
of high priority changes no free amount, and is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster


class _Seen(NamedTuple):
    """Copies of columns, by node in the last axis: amounts that are free, and the numbers and priorities of pods."""

    free: c.Ints
    free_of_cards: c.Ints
    n_pods: c.Ints
    priorities: c.Ints | c.Floats


class FreedRows:
    """Compares the cluster with its state at the last look."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: _Seen | None = None

    def find_rows(self) -> set[int]:
        """Find the rows on which more is free, or other pods are, than at the last look, which this look then is.

        The first look finds none: whoever waits by then was tried on the cluster as it is.
        """
        before, now = self._seen, self._read()
        self._seen = now
        if before is None:
            return set()
        if any(a.shape != b.shape for a, b in zip(before, now, strict=True)):
            return set(np.flatnonzero(self._cluster.nodes.columns.valid).tolist())
        found = (now.free > before.free).any(axis=0)
        found |= (now.free_of_cards > before.free_of_cards).any(axis=0)
        found |= (now.n_pods != before.n_pods) | (now.priorities != before.priorities)
        return set(np.flatnonzero(found).tolist())

    def forget(self) -> None:
        """Forget the last look; the next one is the first."""
        self._seen = None

    def _read(self) -> _Seen:
        nodes, pods = self._cluster.nodes.columns, self._cluster.ledger.pods.columns
        there = np.flatnonzero(pods.node >= 0)
        rows, size = pods.node[there], nodes.valid.size
        return _Seen(
            nodes.allocatable - nodes.requested,
            self._sum_free_of_cards(nodes),
            np.bincount(rows, minlength=size),
            np.bincount(rows, pods.priority[there], minlength=size),
        )

    @staticmethod
    def _sum_free_of_cards(nodes: c.Nodes) -> c.Ints:
        """Sum [3, N] what is free on the cards of each node, of all families."""
        found = np.zeros((3, nodes.valid.size), np.int64)
        there = np.flatnonzero(nodes.pools.node >= 0)
        free = nodes.pools.total[:, there] - nodes.pools.used[:, there]
        for figure in range(3):
            found[figure] = np.bincount(nodes.pools.node[there], free[figure], nodes.valid.size)
        return found
