"""What one shape counts of pods in domains of nodes, as dense arrays for kernels."""

from __future__ import annotations

import numpy as np

from scheduler.plugins.contract import Tally
from scheduler.schema import columns as c
from scheduler.schema import empty


class Counted:
    """The tallies of one shape.

    Attributes:
        arrays: for the kernels; a placing kernel keeps them up for what it places itself.
    """

    def __init__(self, tallies: tuple[tuple[int, Tally], ...]) -> None:
        """``tallies``: each with its refusal bit."""
        self._tallies = tallies
        self._versions: tuple[int, ...] = ()
        self.arrays = empty.domains()

    def refresh(self, capacity: int) -> bool:
        """Read what was counted since; whether anything was."""
        if not self._tallies:
            return False
        if self.arrays.counts.shape[1] == capacity and self._versions == self._counted():
            return False
        self.arrays = c.Domains(
            tallies=np.array([(bit, tally.gain) for bit, tally in self._tallies], np.int64),
            counts=np.stack([tally.count.by_row(capacity) for _, tally in self._tallies]),
        )
        self.catch_up()
        return True

    def catch_up(self) -> None:
        """What has been counted since is in the arrays already: the placing kernel wrote it."""
        self._versions = self._counted()

    def refusals(self, rows: c.Ints) -> c.Ints:
        """[n] refusal bits of some rows by what is counted now."""
        bits = np.zeros(rows.size, np.int64)
        for (bit, _), count in zip(self._tallies, self.arrays.counts, strict=True):
            bits[count[rows] > 0] |= 1 << bit
        return bits

    def _counted(self) -> tuple[int, ...]:
        return tuple(tally.count.version for _, tally in self._tallies)
