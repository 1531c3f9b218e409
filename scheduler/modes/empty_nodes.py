"""The capacity of empty nodes for one family of devices; the demand is compared with it."""

from __future__ import annotations

import numpy as np

from scheduler.devices import card_order
from scheduler.plugins import table
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape


def list_families(cluster: Cluster) -> list[int]:
    """List the families of which a node has devices; the first family if no node has any devices."""
    pools = cluster.nodes.columns.pools
    return np.unique(pools.family[pools.node >= 0]).tolist() or [0]


class EmptyNodes:
    """What the nodes have of one family when they are empty. Arrays are [N], with 0 for rows without a usable node.

    Attributes:
        family: the resource by which pods request its devices.
        makes: (kind, model) of each make of cards.
        having: [makes, N] how many cards of each make a node has.
    """

    def __init__(self, cluster: Cluster, family: int) -> None:
        nodes, cards = cluster.nodes.columns, cluster.cards
        pools = cluster.nodes.find_pools(family)
        self.table, self.cards, self.columns = cluster.nodes, cards, nodes
        self.kinds = cards.kinds.values
        self.family = cluster.registers.devices.families[family]
        self._managed = nodes.pools.managed[pools]
        self.makes, self.having = _count_makes(cluster, pools)
        rows = np.arange(pools.size)
        offered = nodes.allocatable[nodes.pools.resource[pools], rows]
        whole = np.where(self._managed, 0, offered)
        self.count = np.where(nodes.valid, whole + self.having.sum(axis=0), 0)
        self.cpu, self.memory = nodes.allocatable[c.CPU], nodes.allocatable[c.MEMORY]
        self.capacity = self.count * float(c.WHOLE)
        of_make = np.where(nodes.valid, self.having, 0).sum(axis=1)
        mib = np.array([self.kinds[kind][1] for kind, _ in self.makes], np.int64)
        self._measured: dict[tuple[int, int, int, int], int] = {}
        self.mean_mib = float((of_make * mib).sum() / max(1, of_make.sum()))

    def measure_request(self, shape: DemandShape) -> int:
        """Measure the milli-GPU that a pod requests; MiB count as parts of the cluster's mean card."""
        asked = shape.cards, shape.mib, shape.percent, shape.cores
        measured = self._measured.get(asked)
        if measured is None:
            memory = int(shape.mib * c.WHOLE / self.mean_mib) if self.mean_mib else 0
            share = max(shape.cores * 10, shape.percent * 10, memory, 1)
            measured = self._measured[asked] = min(share, c.WHOLE) * shape.cards
        return measured

    def find_hosts(self, shape: DemandShape) -> c.Flags:
        """Find the nodes [N] that could host a pod of the shape if they were empty."""
        milli = [shape.convert_to_milli(*kind) for kind in self.kinds]
        accepted = self._list_accepted(shape)
        suits = [
            accepts and max(milli[kind]) <= c.WHOLE
            for accepts, (kind, _) in zip(accepted, self.makes, strict=True)
        ]
        # Devices that are only counted go to pods that request whole devices.
        is_whole = set(milli[0]) == {c.WHOLE}
        usable = np.where(self._managed, self.having[suits].sum(axis=0), self.count * is_whole)
        fitting: c.Flags = (
            (usable >= max(1, shape.cards))
            & (self.cpu >= shape.cpu)
            & (self.memory >= shape.memory)
        )
        for name, amount in shape.others:
            row = self.table.find_row_asked(name)
            fitting &= self.columns.allocatable[row] >= amount if row >= 0 else amount <= 0
        return fitting & self.find_allowed(shape)

    def find_allowed(self, shape: DemandShape) -> c.Flags:
        """Find the nodes [N] that a pod of the shape may go to by its selectors, tolerations and card types.

        Cordons and host ports come and go, so they do not count.
        """
        flags: c.Flags = self.columns.valid.copy()
        if shape.use_types or shape.nouse_types:
            has_cards, accepted = self.having.any(axis=0), self.having[self._list_accepted(shape)]
            flags &= ~has_cards | accepted.any(axis=0)
        rows = np.flatnonzero(flags)
        flags[rows] = table.could_host(shape, self.table, rows)
        return flags

    def _list_accepted(self, shape: DemandShape) -> list[bool]:
        """List for each make whether the shape accepts the model."""
        accepted = card_order.accept_models(shape, self.cards.models.values)
        return [bool(accepted[model]) for _, model in self.makes]


def _count_makes(cluster: Cluster, pools: c.Ints) -> tuple[list[tuple[int, int]], c.Ints]:
    """List the makes of cards, which differ in kind or model, and count [makes, N] the cards of each make by node."""
    nodes, cards = cluster.nodes.columns, cluster.cards.columns
    n, starts = nodes.pools.count[pools], nodes.pools.start[pools]
    owner = np.repeat(np.arange(n.size), n)
    d = np.arange(owner.size) - np.repeat(np.cumsum(n) - n, n) + np.repeat(starts, n)
    # No pod can get a card without memory.
    mib = np.array([mib for _, mib in cluster.cards.kinds.values])
    has_memory = mib[cards.kind[d]] > 0
    owner, d = owner[has_memory], d[has_memory]
    n_models = max(1, len(cluster.cards.models))
    makes, which = np.unique(cards.kind[d] * n_models + cards.model[d], return_inverse=True)
    having = np.bincount(which * n.size + owner, minlength=makes.size * n.size)
    pairs = [divmod(make, n_models) for make in makes.tolist()]
    return pairs, having.reshape(makes.size, n.size)
