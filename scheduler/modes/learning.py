"""Learns the demand: when the tables that ``keel`` and ``fgd`` score by are made anew.

It learns between batches, never within: after 30 % more pods were seen, when nodes or their words have
changed, or when pods leave at another rate. What the tables hold: ``modes/demand_tables.py``.
"""

from __future__ import annotations

import numpy as np

from scheduler.modes import demand_tables
from scheduler.modes.demand_tables import Counts
from scheduler.modes.empty_nodes import EmptyNodes
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# So many pods are seen before their demand is believed.
ENOUGH = 60
_NEVER = 1 << 40
# Learn again when so many more have been seen: a part of those before, within a least and a most.
_MORE, _MORE_LEAST, _MORE_MOST = 0.3, 50, 5000
# The value of departures per arrival in use changes when it is off by more than this.
_DEPARTURES_STEP = 0.1


class Learner:
    """Keeps the tables.

    Attributes:
        tables: what kernels read.
        generation: rises with every change of the tables, after which all nodes must be scored again.
    """

    def __init__(self, cluster: Cluster, known: Counts | None = None) -> None:
        """With ``known`` the demand is given instead of learnt; departures are counted all the same."""
        self._cluster = cluster
        self._known = known
        self._next = 0
        self._described = -1
        self._departures = 0.0
        self._hosts: dict[DemandShape, c.Flags] = {}
        self.generation = 0
        self.tables = demand_tables.made(EmptyNodes(cluster), {}, 0.0, {}, assume=True)

    def learn(self, *, anew: bool = False) -> bool:
        """Make the tables anew if enough has changed, or ``anew``; whether they changed."""
        demand = self._cluster.demand
        departures = demand.departures
        described = self._cluster.described.position
        if (
            not anew
            and demand.seen < self._next
            and described == self._described
            and self.fits_nodes()
            and abs(departures - self._departures) <= _DEPARTURES_STEP
        ):
            return False
        if abs(departures - self._departures) > _DEPARTURES_STEP:
            self._departures = departures
        if described != self._described:
            self._hosts.clear()
            self._described = described
        counts = demand.counts() if self._known is None else self._known
        enough = self._known is not None or demand.seen >= ENOUGH
        nodes = EmptyNodes(self._cluster)
        made = demand_tables.made(nodes, counts, self._departures, self._hosts, assume=not enough)
        more = max(_MORE_LEAST, min(_MORE_MOST, int(demand.seen * _MORE)))
        if self._known is None:
            self._next = demand.seen + more if enough else ENOUGH
        else:
            self._next = _NEVER
        if _same(made, self.tables):
            return False
        self.tables = made
        self.generation += 1
        return True

    def fits_nodes(self) -> bool:
        """Whether the tables have a figure for every node row and every kind of cards."""
        cluster = self._cluster
        return (self.tables.price.size, len(self.tables.value)) == (
            cluster.nodes.capacity,
            len(cluster.cards.kinds),
        )


def _same(a: c.Demand, b: c.Demand) -> bool:
    return all(map(np.array_equal, _columns(a), _columns(b)))


def _columns(a: c.Demand) -> tuple[c.Ints | c.Flags | c.Floats, ...]:
    return (*a.keel, a.close, *a.fgd, a.price, a.value, a.rates)
