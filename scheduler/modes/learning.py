"""Learns the demand: when the tables that ``keel`` and ``fgd`` score by are made anew.

It learns between batches, never within: after 30 % more pods were seen, when nodes or their words have
changed, or when pods leave at another rate. What the tables hold: ``modes/demand_tables.py``; of nodes without
devices, ``modes/plain.py``.
"""

from __future__ import annotations

import numpy as np

from scheduler.modes import demand_tables, plain, single
from scheduler.modes.demand_tables import Counts
from scheduler.modes.empty_nodes import EmptyNodes, pools_of
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# So many pods are seen before their demand is believed.
ENOUGH = 60
# Learn again when so many more have been seen: a part of those before, within a least and a most.
_MORE, _MORE_LEAST, _MORE_MOST = 0.3, 50, 5000
# The value of departures per arrival in use changes when it is off by more than this.
_DEPARTURES_STEP = 0.1


class Learner:
    """Keeps the tables, of every family of which some node has devices.

    Tables that change are replaced, after which all nodes must be scored again by them.
    """

    def __init__(self, cluster: Cluster, known: Counts | None = None) -> None:
        """With ``known`` the demand is given instead of learnt; departures are counted all the same."""
        self._cluster = cluster
        self._known = known
        self._shaped = -1
        self._departures = 0.0
        # By family; how many pods that ask it are seen when its tables are made again.
        self._next: dict[int, int] = {}
        self._hosts: dict[int, dict[DemandShape, c.Flags]] = {}
        self._plain = plain.PlainPlaces(cluster, known)
        self._sizes = self._sizes_now()
        self._tables = {
            0: demand_tables.make_tables(EmptyNodes(cluster, 0), {}, 0.0, {}, assume=True)
        }
        self.tables = self._tables[0]
        """The tables that pods without devices are judged by: those of the first family there is, and places."""

    def get_tables(self, pool: int) -> c.Demand:
        """The tables that pods are judged by that ask a family; -1: that ask none."""
        return self._tables.get(pool, self.tables)

    def learn(self, *, anew: bool = False) -> bool:
        """Make the tables anew if enough has changed, or ``anew``; whether they changed."""
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
        made, self._sizes = self._make_tables(), self._sizes_now()
        before = self._tables
        self._tables = {
            pool: before[pool] if pool in before and _same(tables, before[pool]) else tables
            for pool, tables in made.items()
        }
        return self._tables.keys() != before.keys() or any(
            self._tables[pool] is not before[pool] for pool in before
        )

    def _make_tables(self) -> dict[int, c.Demand]:
        """The tables by now; and when they are to be made again."""
        counts = self._cluster.demand.list_counts() if self._known is None else self._known
        made = {}
        for pool in pools_of(self._cluster):
            seen = self._seen_of(pool)
            enough = self._known is not None or seen >= ENOUGH
            nodes = EmptyNodes(self._cluster, pool)
            made[pool] = demand_tables.make_tables(
                nodes,
                counts,
                self._departures,
                self._hosts.setdefault(pool, {}),
                assume=not enough,
            ).replace(single=single.make_places(self._cluster, nodes, pool, counts))
            more = max(_MORE_LEAST, min(_MORE_MOST, int(seen * _MORE)))
            self._next[pool] = seen + more if enough else plain.next_early(seen)
        return made

    def _are_due(self) -> bool:
        """Whether enough more pods of a family were seen."""
        if self._known is not None:
            return not self._next
        return any(self._seen_of(pool) >= self._next.get(pool, 0) for pool in self._tables)

    def _seen_of(self, pool: int) -> int:
        return self._cluster.demand.count_seen(self._cluster.registers.families[pool].resource)

    def fits_nodes(self) -> bool:
        """Whether the tables have a figure for every node row and every kind of cards."""
        return self._sizes == self._sizes_now()

    def _sizes_now(self) -> tuple[int, int]:
        """Of what the tables are made of, however many families there are."""
        return self._cluster.nodes.capacity, len(self._cluster.cards.kinds)


def _same(a: c.Demand, b: c.Demand) -> bool:
    return all(map(np.array_equal, _columns(a), _columns(b)))


def _columns(a: c.Demand) -> list[c.Ints | c.Flags | c.Floats]:
    parts = [a.keel, a.fgd, a.single]
    of_parts = [column for part in parts for column in part.list_values()]
    return [*of_parts, a.close, a.price, a.value, a.rates, a.serving, a.served]
