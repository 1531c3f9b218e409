"""A figure per node row, kept up by the table that counts for as long as a reader holds it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scheduler.schema.columns import Ints


class Figure(Protocol):
    """A figure per node row, with a version that shows whether it has changed."""

    @property
    def version(self) -> int:
        """Rises with every change."""

    def list_by_row(self, capacity: int) -> Ints:
        """Return [capacity] the figure of every row, for reading only."""


class Count:
    """Counts something on each node row.

    The table that counts holds the count weakly and keeps it up as long as it lives; a reader sees by ``version``
    whether the count has changed.
    """

    __slots__ = ("__weakref__", "_by_row", "version")

    def __init__(self, capacity: int) -> None:
        self._by_row: Ints = np.zeros(capacity, np.int64)
        self.version = 0

    def begin(self, by_row: Ints) -> None:
        """Begin with [n] these figures on the first rows, and 0 on the others."""
        self._by_row = by_row if by_row.any() else by_row[:0]
        self.version += 1

    def change(self, row: int, by: int) -> None:
        """Add to the figure of a row."""
        if row >= self._by_row.size:
            self._by_row = _extend(self._by_row, max(row + 1, 2 * row))
        self._by_row[row] += by
        self.version += 1

    def list_by_row(self, capacity: int) -> Ints:
        """Return [capacity] the figure of every row, for reading only.

        The array is kept only if something was counted: pods can name thousands of things that are on no node.
        """
        if not self._by_row.size:
            return np.zeros(capacity, np.int64)
        if self._by_row.size < capacity:
            self._by_row = _extend(self._by_row, capacity)
        return self._by_row[:capacity]


def _extend(figures: Ints, size: int) -> Ints:
    longer = np.zeros(size, np.int64)
    longer[: figures.size] = figures
    return longer
