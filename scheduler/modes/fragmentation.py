"""The idle GPU capacity that typical pods cannot use: FGD's fragmentation measure of the whole cluster."""

from __future__ import annotations

import numpy as np

from scheduler.kernels.modes import fragments
from scheduler.modes.demand_tables import Counts
from scheduler.modes.learning import Learner
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.schema.world import World
from scheduler.state.cluster import Cluster


class FragmentGauge:
    """Keeps the measure of the first pool of every node; ``read`` computes only the nodes that changed.

    Attributes:
        by_row: [N] idle milli-GPU of each node that the average typical pod cannot use.
    """

    def __init__(self, cluster: Cluster, counts: Counts) -> None:
        """``counts`` is the demand from which the typical pods are chosen, as published for FGD."""
        self._cluster = cluster
        learner = Learner(cluster, counts)
        learner.learn_demand()
        self._tables = learner.tables
        scratch = empty.make_scratch(cluster.cards.most_on_a_node, 1, self._tables.fgd.weight.size)
        self._world = World(cluster.ledger.tables, self._tables, scratch)
        self._moved = -1
        self.by_row: c.Floats = np.zeros(cluster.nodes.capacity)

    def read(self) -> float:
        """Read the fragmentation of the cluster in milli-GPU. The nodes must be those of the constructor call."""
        cluster = self._cluster
        rows = cluster.moved.list_since(self._moved) if self._moved >= 0 else None
        if rows is None:
            rows = np.flatnonzero(cluster.nodes.columns.valid)
        self._world.tables = cluster.ledger.tables
        fragments.measure_rows(self._world, rows, self.by_row)
        self._moved = cluster.moved.position
        return float(self.by_row.sum() / self._tables.rates[c.RATE_FGD])
