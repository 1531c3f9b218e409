"""Which counts count which classes of pods: a bit for each count and class."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from scheduler.schema.columns import Ints

_BITS = 64
# Room for so many classes that are gone may stay.
_SPARE_CLASSES = 1024
_Words = NDArray[np.uint64]


class Links:
    """A matrix of bits: a row for each class by number, a column for each count by slot.

    A count may count thousands of classes, and a class may be counted by thousands of counts. NumPy sets and finds the
    bits of one count or of one class in some microseconds.

    Attributes:
        version: rises whenever a bit may be another.
    """

    def __init__(self) -> None:
        # [classes, slots / 64] the bits.
        self._words: _Words = np.zeros((0, 0), np.uint64)
        self._free: list[int] = []
        self._n_slots = 0
        self.version = 0

    def open(self) -> int:
        """Take the lowest free slot for a count that counts no class yet, and return it."""
        if self._free:
            return heappop(self._free)
        self._n_slots += 1
        return self._n_slots - 1

    def close(self, slot: int) -> None:
        """Give back the slot of a count that ends."""
        self.clear(slot)
        heappush(self._free, slot)
        if len(self._free) == self._n_slots:
            self._words, self._free, self._n_slots = self._words[:0, :0].copy(), [], 0

    def trim(self, n_classes: int) -> None:
        """Free room: all classes have numbers below this one."""
        if len(self._words) > 2 * n_classes + _SPARE_CLASSES:
            self._words = self._words[:n_classes].copy()

    def clear(self, slot: int) -> None:
        """Link a count with no class any more."""
        word, bit = divmod(slot, _BITS)
        if word < self._words.shape[1]:
            self._words[:, word] &= ~np.uint64(1 << bit)
            self.version += 1

    def count(self, slot: int, classes: Ints) -> None:
        """Link a count with these classes, too."""
        if classes.size:
            word, bit = divmod(slot, _BITS)
            self._make_room(int(classes.max()) + 1, word + 1)
            self._words[classes, word] |= np.uint64(1 << bit)
            self.version += 1

    def enter(self, number: int, slots: Ints) -> None:
        """Link a class with the counts in these slots, too."""
        if slots.size:
            self._make_room(number + 1, int(slots.max()) // _BITS + 1)
            bits = np.left_shift(np.uint64(1), (slots % _BITS).astype(np.uint64))
            np.bitwise_or.at(self._words[number], slots // _BITS, bits)
            self.version += 1

    def leave(self, number: int) -> None:
        """Link a class with no count any more."""
        if number < len(self._words):
            self._words[number] = 0
            self.version += 1

    def find_slots(self, number: int) -> list[int]:
        """Find the slots of the counts that count a class, ascending."""
        if number >= len(self._words):
            return []
        bits = np.unpackbits(self._words[number].view(np.uint8), bitorder="little")
        found: list[int] = np.flatnonzero(bits).tolist()
        return found

    def _make_room(self, n_classes: int, n_words: int) -> None:
        before = self._words
        if n_classes > before.shape[0] or n_words > before.shape[1]:
            # Half as much again as is needed: classes come one by one.
            rows = max(before.shape[0], n_classes + n_classes // 2)
            words = max(before.shape[1], n_words)
            self._words = np.zeros((rows, words), np.uint64)
            self._words[: before.shape[0], : before.shape[1]] = before
