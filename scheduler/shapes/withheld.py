"""Nodes that are withheld from the pods of a shape, because their room is promised to others."""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c

_NONE: c.Ints = np.zeros(0, np.int64)


class Withheld:
    """What such nodes say to pods of one shape.

    Attributes:
        bits: [W, N] refusal bits.
        changed: [n] rows whose bits are others than when ``read`` was called last.
        seen: up to where the logs of rows that moved, and of nominations, are taken into account.
    """

    def __init__(self, words: int) -> None:
        self.bits: c.Ints = np.zeros((words, 0), np.int64)
        self.changed = _NONE
        self.seen = -1, -1

    def read(self) -> None:
        """The board is up to date."""
        self.changed = _NONE
