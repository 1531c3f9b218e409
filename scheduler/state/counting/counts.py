"""A figure per node row that somebody looks at, kept up by whoever counts."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scheduler.schema.columns import Ints


class Figure(Protocol):
    """A figure per node row, and whether it has changed."""

    @property
    def version(self) -> int:
        """Rises with every change."""

    def by_row(self, capacity: int) -> Ints:
        """[capacity] the figure of every row; to be read only."""


class Count:
    """How many of something there are on each node row.

    Whoever counts holds it weakly and keeps it up as long as it lives; who looks at it sees by ``version``
    whether it has changed.
    """

    __slots__ = ("__weakref__", "_by_row", "version")

    def __init__(self, capacity: int) -> None:
        self._by_row: Ints = np.zeros(capacity, np.int64)
        self.version = 0

    def begin(self, by_row: Ints) -> None:
        """[n] So many are on the first rows, and none on the others."""
        self._by_row = by_row if by_row.any() else by_row[:0]
        self.version += 1

    def change(self, row: int, by: int) -> None:
        """So many more are on a row."""
        if row >= self._by_row.size:
            self._by_row = _extend(self._by_row, max(row + 1, 2 * row))
        self._by_row[row] += by
        self.version += 1

    def by_row(self, capacity: int) -> Ints:
        """[capacity] the figure of every row; to be read only.

        The array is kept only if something was counted: pods can name thousands of things that are nowhere.
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
