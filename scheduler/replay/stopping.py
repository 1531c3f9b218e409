"""A run in which pods may be evicted before they end: each has a stay for each time that it runs."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace

import numpy as np

from scheduler.replay.experiment import Floats, Ints, RunOptions, Series, Stays, Trace, Workload
from scheduler.replay.run import Replay


class StoppingReplay(Replay):
    """One run in which some pods may have several stays."""

    def __init__(self, trace: Trace, workload: Workload, options: RunOptions) -> None:
        super().__init__(trace, workload, options)
        # When the pod of an arrival will end that has a place.
        self._ends: dict[int, float] = {}
        self._stays: list[tuple[int, int, float, float, bool]] = []

    def _note_placed(self, i: int, node: str, at: float) -> None:
        super()._note_placed(i, node, at)
        self._ends[i] = at + float(self._workload.lifetime[i])

    def _note_stopped(self, i: int, at: float) -> None:
        """Note that the pod of an arrival was evicted, if it had a place."""
        if self._ends.pop(i, None) is None:
            return
        self._note_stay(i, at, is_lost=True)
        self._allocated -= self._amounts[self._workload.pod[i]]
        self._placed_at[i], self._node[i] = math.nan, -1

    def _note_stay(self, i: int, end: float, *, is_lost: bool) -> None:
        self._stays.append((i, int(self._node[i]), float(self._placed_at[i]), end, is_lost))

    def _leave(self, at: float) -> None:
        self._now = at
        if self._ends.get(self._leaving[0][1]) != at:
            # It was evicted before.
            heapq.heappop(self._leaving)
            return
        i = self._leaving[0][1]
        super()._leave(at)
        del self._ends[i]
        self._note_stay(i, at, is_lost=False)

    def _make_series(
        self, asked: Ints, allocated: Ints, frag: Floats, occupied: Ints, seconds: float
    ) -> Series:
        for i, end in self._ends.items():
            self._note_stay(i, end, is_lost=False)
        series = super()._make_series(asked, allocated, frag, occupied, seconds)
        return replace(series, stays=gather_stays(self._stays))


def gather_stays(found: list[tuple[int, int, float, float, bool]]) -> Stays:
    """Gather stays in the order of their starts."""
    found = sorted(found, key=lambda one: (one[2], one[0]))
    columns = list(zip(*found, strict=True)) or [()] * 5
    kinds = np.int64, np.int64, np.float64, np.float64, np.bool_
    return Stays(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))
