"""What is whole and what is broken: columns of the cards and nodes that take pods, read in one go.

A card is whole if nothing on it is in use, and broken if something is in use and something is left. A node is whole if it
has no pod but those that belong to it, and broken if some of its cards are in use and others are not.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from scheduler.measure import figures
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster


class Whole(NamedTuple):
    """What is whole and what is broken. D rows of cards, N rows of nodes.

    Attributes:
        cards, broken: [D] the whole cards, and the broken ones.
        nodes: [N] the whole nodes.
        kinds: how many cards of each model are whole, then how many nodes of each kind are.
        n_broken: how many cards and how many nodes are broken.
    """

    cards: c.Flags
    broken: c.Flags
    nodes: c.Flags
    kinds: c.Ints
    n_broken: c.Ints

    @property
    def n_cards(self) -> int:
        """How many cards are whole."""
        return int(self.cards.sum())

    @property
    def n_nodes(self) -> int:
        """How many nodes are whole."""
        return int(self.nodes.sum())

    def is_no_worse_than(self, before: Whole) -> bool:
        """Whether as much of every kind is whole as before, and no more is broken."""
        return bool((self.kinds >= before.kinds).all() and (self.n_broken <= before.n_broken).all())


class Gauge:
    """Reads what is whole in one cluster. Between its making and its last use no event arrives."""

    def __init__(self, cluster: Cluster, own: AbstractSet[str]) -> None:
        """``own``: uids of the pods that belong to their node."""
        self._cluster = cluster
        nodes, cards = cluster.nodes.columns, cluster.cards.columns
        pools, pool = nodes.pools, cards.pool
        # What is whole on nodes of another scheduler of devices is nothing that Evenkeel could give.
        rows, self.open = np.arange(pool.size), figures.find_open(cluster) & ~cluster.nodes.foreign
        there = (rows >= pools.start[pool]) & (rows < pools.start[pool] + pools.count[pool])
        there &= pools.managed[pool] & (pools.node[pool] >= 0)
        self.node_of: c.Ints = np.where(there, pools.node[pool], 0)
        is_open = there & self.open[self.node_of] & cards.healthy & ~cards.cordoned
        self.usable: c.Flags = is_open & (~cards.mig | (cards.carving > 0))
        # A node of whose cards none can be given is no gain either.
        n_cards, n_open = (
            np.bincount(self.node_of[of], minlength=self.open.size) for of in (there, is_open)
        )
        self.open &= (n_cards == 0) | (n_open > 0)
        self._n_own = np.zeros(nodes.valid.size, np.int64)
        own_rows = [pod.row for uid in own if (pod := cluster.pods.get(uid)) and pod.row >= 0]
        at = cluster.ledger.pods.columns.node[np.array(own_rows, np.int64)]
        np.add.at(self._n_own, at[at >= 0], 1)
        # A node is of the kind of its first card, and of the first kind without one.
        self._kind = np.zeros(nodes.valid.size, np.int64)
        first = np.flatnonzero(there)[::-1]
        self._kind[self.node_of[first]] = cards.model[first] + 1
        self._n_kinds = len(cluster.cards.models) + 1
        self._counted = self._list_counted()

    def read(self) -> Whole:
        """Read what is whole now."""
        cluster = self._cluster
        nodes, cards = cluster.nodes.columns, cluster.cards.columns
        is_used = self.usable & ((cards.used[c.SLOTS] > 0) | (cards.cut > 0))
        whole, broken = self.usable & ~is_used, is_used & self._has_left()
        n_used = np.bincount(self.node_of[is_used], minlength=nodes.valid.size)
        n_whole = np.bincount(self.node_of[whole], minlength=nodes.valid.size)
        empty = self.open & (self.count_pods() == 0)
        of_cards = np.bincount(cards.model[whole], minlength=self._n_kinds)
        of_nodes = np.bincount(self._kind[empty], minlength=self._n_kinds)
        n_split = int(((n_used > 0) & (n_whole > 0)).sum()) + self._count_split()
        return Whole(
            whole,
            broken,
            empty,
            np.append(of_cards, of_nodes),
            np.array([broken.sum(), n_split], np.int64),
        )

    def count_pods(self) -> c.Ints:
        """Count [N] the pods on each node, but for those that belong to it."""
        on = self._cluster.ledger.pods.columns.node
        found: c.Ints = np.bincount(on[on >= 0], minlength=self._n_own.size) - self._n_own
        return found

    def _has_left(self) -> c.Flags:
        """[D] whether something of a card is left for another pod."""
        cards = self._cluster.cards.columns
        left = (cards.used < cards.total) | (cards.total == 0)
        room = cards.carvings.room[cards.carving, cards.cut] > 0
        found: c.Flags = np.where(cards.carving > 0, room, left.all(axis=0))
        return found

    def _list_counted(self) -> tuple[c.Ints, c.Ints]:
        """List where devices are only counted: the rows of their resources, and of the nodes."""
        table, pools = self._cluster.nodes, self._cluster.nodes.columns.pools
        at: list[c.Ints] = []
        for family in range(len(self._cluster.registers.devices.families)):
            pool = table.find_pools(family)
            rows = np.flatnonzero(self.open & (pool != c.NO_POOL) & ~pools.managed[pool])
            at.append(np.array([pools.resource[pool[rows]], rows], np.int64))
        resource, rows = np.concatenate(at, axis=1)
        return resource, rows

    def _count_split(self) -> int:
        """Count the nodes of whose counted devices some are in use and some are not."""
        nodes, at = self._cluster.nodes.columns, self._counted
        used = nodes.requested[at]
        return int(((used > 0) & (used < nodes.allocatable[at])).sum())
