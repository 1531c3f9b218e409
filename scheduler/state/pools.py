"""The pool table: every pool of devices of every node; the pools of a node are neighbours, in the order of families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.structures.runs import Runs

_FIRST_CAPACITY = 64


class PoolPlan(NamedTuple):
    """Which driver allocates the devices of a family on a node, and whether one by one or by their number.

    Attributes:
        family, driver: numbers in the table of devices.
        managed: the devices are allocated one by one.
        chooser: who chooses among them, as ``columns.WALK``.
        resource: row of the resource matrix where they are counted.
    """

    family: int
    driver: int
    managed: bool
    chooser: int
    resource: int


class PoolTable:
    """Owns and grows ``columns.Pools``."""

    def __init__(self) -> None:
        self.columns = _make_columns(_FIRST_CAPACITY)
        self._runs = Runs()
        # The first row is the pool of those that have none.
        self._runs.take(1)
        # By family: [N] the pool of each node.
        self._by_row: dict[int, c.Ints] = {}
        self._managed: frozenset[int] | None = None

    def place_pools(self, plans: Sequence[PoolPlan], node: int) -> int:
        """Write the pools of a node, which have no cards yet, and return the row of the first; ``NO_POOL`` for none."""
        if not plans:
            return c.NO_POOL
        first = self._runs.take(len(plans))
        self._grow()
        columns = self.columns
        for pool, plan in enumerate(plans, first):
            columns.family[pool], columns.driver[pool] = plan.family, plan.driver
            columns.managed[pool], columns.chooser[pool] = plan.managed, plan.chooser
            columns.resource[pool] = plan.resource
            columns.node[pool], columns.complete[pool] = node, True
        self._forget_answers()
        return first

    def give_back(self, first: int, n: int) -> None:
        """Give back the pools of a node, whose cards are gone."""
        if not n:
            return
        self._runs.give_back(first, n)
        columns, rows = self.columns, slice(first, first + n)
        for column in (columns.family, columns.driver, columns.node):
            column[rows] = -1
        columns.managed[rows] = columns.complete[rows] = columns.carved[rows] = False
        columns.chooser[rows] = c.WALK
        columns.resource[rows] = c.UNKNOWN
        for figures in (
            columns.start,
            columns.count,
            columns.generation,
            columns.part,
            columns.total,
            columns.used,
        ):
            figures[..., rows] = 0
        self._forget_answers()

    def list_plans(self, first: int, n: int) -> list[PoolPlan]:
        """List what was planned for the pools of a node."""
        columns, rows = self.columns, slice(first, first + n)
        figures = (
            columns.family,
            columns.driver,
            columns.managed,
            columns.chooser,
            columns.resource,
        )
        return [
            PoolPlan(*one) for one in zip(*(each[rows].tolist() for each in figures), strict=True)
        ]

    def find_pools(self, family: int, capacity: int) -> c.Ints:
        """Find [N] the pool of a family on each of ``capacity`` rows of nodes; ``NO_POOL`` for none. Do not write to it."""
        found = self._by_row.get(family)
        if found is None or found.size != capacity:
            pools = np.flatnonzero((self.columns.family == family) & (self.columns.node >= 0))
            found = np.full(capacity, c.NO_POOL, np.int64)
            found[self.columns.node[pools]] = pools
            self._by_row[family] = found
        return found

    def list_managed_families(self) -> frozenset[int]:
        """List the families of which some node's devices are allocated one by one."""
        if self._managed is None:
            self._managed = frozenset(self.columns.family[self.columns.managed].tolist())
        return self._managed

    def _forget_answers(self) -> None:
        self._by_row.clear()
        self._managed = None

    def _grow(self) -> None:
        capacity = self.columns.family.size
        if self._runs.end > capacity:
            fresh = _make_columns(max(self._runs.end, capacity * 2))
            for before, after in zip(self.columns.list_values(), fresh.list_values(), strict=True):
                after[..., :capacity] = before
            self.columns.adopt(fresh)


def _make_columns(capacity: int) -> c.Pools:
    return c.Pools(
        family=np.full(capacity, -1, np.int64),
        driver=np.full(capacity, -1, np.int64),
        node=np.full(capacity, -1, np.int64),
        generation=np.zeros(capacity, np.int64),
        carved=np.zeros(capacity, np.bool_),
        complete=np.zeros(capacity, np.bool_),
        managed=np.zeros(capacity, np.bool_),
        chooser=np.full(capacity, c.WALK, np.int64),
        resource=np.full(capacity, c.UNKNOWN, np.int64),
        start=np.zeros(capacity, np.int64),
        count=np.zeros(capacity, np.int64),
        part=np.zeros((c.N_PART, capacity)),
        total=np.zeros((3, capacity), np.int64),
        used=np.zeros((3, capacity), np.int64),
    )
