"""Learns the demand: decides when the tables that ``keel`` and ``fgd`` score by are made again.

It learns between batches, never within a batch: after 30 % more pods were seen, when nodes, their labels or taints have
changed, or when pods leave at another rate. ``modes/demand_tables.py`` describes the tables; ``modes/plain.py`` learns
the places of nodes without devices.
"""

from __future__ import annotations

import numpy as np

from scheduler.modes import demand_tables, plain, single
from scheduler.modes.demand_tables import Counts
from scheduler.modes.empty_nodes import EmptyNodes, list_families
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# How many pods must be seen before the tables are made from them instead of from an assumed demand.
ENOUGH = 60
# Learn again when so many more pods have been seen: a part of the seen pods, within a minimum and a maximum.
_MORE, _MORE_LEAST, _MORE_MOST = 0.3, 50, 5000
# The tables take over the departures per arrival when these differ by more than this.
_DEPARTURES_STEP = 0.1


class Learner:
    """Keeps the tables of every family of which a node has devices.

    A table that changes is replaced by another object; then all nodes must be scored again.
    """

    def __init__(self, cluster: Cluster, known: Counts | None = None) -> None:
        """``known`` is a demand that is used instead of the learnt demand; departures are counted in any case."""
        self._cluster = cluster
        self._known = known
        self._shaped = -1
        self._departures = 0.0
        # By family: the number of seen pods at which its tables are made again.
        self._next: dict[int, int] = {}
        self._hosts: dict[int, dict[DemandShape, c.Flags]] = {}
        self._plain = plain.PlainPlaces(cluster, known)
        self._sizes = self._read_sizes()
        self._tables = {
            0: demand_tables.make_tables(EmptyNodes(cluster, 0), {}, 0.0, {}, assume=True)
        }
        self.tables = self._tables[0]
        """The tables by which pods without devices are scored: those of the first family, and the places."""

    def get_tables(self, family: int) -> c.Demand:
        """Return the tables by which pods that request a family are scored; -1: pods without devices."""
        return self._tables.get(family, self.tables)

    def learn_demand(self, *, anew: bool = False) -> bool:
        """Make the tables again if enough has changed, or if ``anew``; return whether they changed."""
        changed = self._learn_devices(anew=anew)
        if self._plain.refresh(anew=anew) or changed:
            self.tables = self._tables[min(self._tables)].replace(places=self._plain.places)
            return True
        return False

    def _learn_devices(self, *, anew: bool) -> bool:
        departures = self._cluster.demand.devices.departures
        shaped = self._cluster.shaped
        if (
            not anew
            and not self._are_due()
            and shaped == self._shaped
            and self.fits_nodes()
            and abs(departures - self._departures) <= _DEPARTURES_STEP
        ):
            return False
        if abs(departures - self._departures) > _DEPARTURES_STEP:
            self._departures = departures
        if shaped != self._shaped:
            self._hosts.clear()
            self._shaped = shaped
        made, self._sizes = self._make_tables(), self._read_sizes()
        before = self._tables
        self._tables = {
            family: before[family]
            if family in before and _are_equal(tables, before[family])
            else tables
            for family, tables in made.items()
        }
        return self._tables.keys() != before.keys() or any(
            self._tables[family] is not before[family] for family in before
        )

    def _make_tables(self) -> dict[int, c.Demand]:
        """Make the current tables, and set when they are to be made again."""
        counts = self._cluster.demand.list_counts() if self._known is None else self._known
        made = {}
        for family in list_families(self._cluster):
            seen = self._count_seen(family)
            enough = self._known is not None or seen >= ENOUGH
            nodes = EmptyNodes(self._cluster, family)
            made[family] = demand_tables.make_tables(
                nodes,
                counts,
                self._departures,
                self._hosts.setdefault(family, {}),
                assume=not enough,
            ).replace(single=single.make_places(self._cluster, nodes, family, counts))
            more = max(_MORE_LEAST, min(_MORE_MOST, int(seen * _MORE)))
            self._next[family] = seen + more if enough else plain.find_next_early(seen)
        return made

    def _are_due(self) -> bool:
        """Whether enough more pods of any family were seen."""
        if self._known is not None:
            return not self._next
        return any(self._count_seen(family) >= self._next.get(family, 0) for family in self._tables)

    def _count_seen(self, family: int) -> int:
        return self._cluster.demand.count_seen(self._cluster.registers.devices.families[family])

    def fits_nodes(self) -> bool:
        """Whether the tables have a figure for every node row and every kind of cards."""
        return self._sizes == self._read_sizes()

    def _read_sizes(self) -> tuple[int, int, int]:
        """Read the sizes that the tables must have: the number of node rows, of kinds of cards and of carvings."""
        cards = self._cluster.cards
        return self._cluster.nodes.capacity, len(cards.kinds), len(cards.carvings.sizes)


def _are_equal(a: c.Demand, b: c.Demand) -> bool:
    return all(map(np.array_equal, _list_columns(a), _list_columns(b)))


def _list_columns(a: c.Demand) -> list[c.Ints | c.Flags | c.Floats]:
    parts = [a.keel, a.fgd, a.single]
    of_parts = [column for part in parts for column in part.list_values()]
    return [*of_parts, a.close, a.price, a.value, a.carved, a.rates, a.serving, a.served]
