"""Nodes that are withheld from the pods of a shape, because the room there is promised to other pods."""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c

_NONE: c.Ints = np.zeros(0, np.int64)


class Withheld:
    """The refusal bits of such nodes for pods of one shape.

    Attributes:
        bits: [W, N].
        changed: [n] rows whose bits have changed since ``mark_read`` was called last.
        seen: the positions in the logs of moved rows and of nominations up to which ``bits`` are current.
    """

    def __init__(self, words: int) -> None:
        self.bits: c.Ints = np.zeros((words, 0), np.int64)
        self.changed = _NONE
        self.seen = -1, -1

    def add(self, row: int, bits: int) -> None:
        """Withhold a node as well, until it is judged again."""
        self.bits[0, row] |= bits
        self.changed = np.union1d(self.changed, [row])

    def mark_read(self) -> None:
        """Note that the board has taken over all changes."""
        self.changed = _NONE
