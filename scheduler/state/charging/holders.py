"""The pod table: a row for every pod that has a node, with what it holds and what decisions read about it."""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c

_FIRST_CAPACITY = 64


class PodTable:
    """Owns and grows ``columns.Pods``, whose rows ``kernels/charge.py`` gives out and takes back.

    The row of a pod is in its record.
    """

    def __init__(self) -> None:
        self.columns = _make_columns(_FIRST_CAPACITY, _FIRST_CAPACITY)

    def make_room(self, pods: int, holds: int) -> None:
        """Grow, if need be, until so many more pods may come, each with so many cards held."""
        old = self.columns
        rows, n_holds = old.node.size, len(old.holds)
        end_row, end_holds = self.ends
        # Runs are rounded up to a power of two.
        more_rows, more_holds = end_row + pods, end_holds + pods * 2 * holds
        if more_rows <= rows and more_holds <= n_holds:
            return
        fresh = _make_columns(_grow_rows(rows, more_rows), _grow_rows(n_holds, more_holds))
        for before, after in zip(old.list_values(), fresh.list_values(), strict=True):
            if before is not old.holds:
                after[..., : before.shape[-1]] = before
        fresh.holds[:n_holds] = old.holds
        self.columns.adopt(fresh)

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the rows of pods and of holds that have ever been in use."""
        free = self.columns.free
        return int(free[c.END_ROW]), int(free[c.END_HOLDS])

    def update(self, row: int, priority: int, start: int) -> None:
        """Update a pod whose charge is unchanged."""
        self.columns.priority[row] = priority
        self.columns.start[row] = start

    def read_held(self, row: int) -> c.Ints:
        """Read [h, N_HOLD] what the pod holds on cards, as ``Pods.holds``."""
        first, n = self.columns.held[:, row].tolist()
        holds = self.columns.holds[first : first + n]
        return holds[holds[:, c.HOLD_PART] >= c.NO_PART]


def _grow_rows(rows: int, least: int) -> int:
    return rows if least <= rows else max(least, 2 * rows)


def _make_columns(rows: int, holds: int) -> c.Pods:
    free = np.full(c.N_FREE, -1, np.int64)
    free[c.END_ROW] = free[c.END_HOLDS] = 0
    return c.Pods(
        node=np.full(rows, -1, np.int64),
        priority=np.zeros(rows, np.int64),
        start=np.zeros(rows, np.int64),
        charge=np.zeros(rows, np.int64),
        held=np.zeros((2, rows), np.int64),
        holds=np.zeros((holds, c.N_HOLD), np.int64),
        free=free,
    )
