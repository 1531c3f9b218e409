"""A log of rows that changed, for readers that catch up at their own pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Generic, TypeVar

import numpy as np

from scheduler.schema.columns import Ints

T = TypeVar("T", bound=Hashable)

_CAPACITY = 1 << 14
_FEW = 64


class Changes:
    """Rows in the order in which they changed; a reader keeps the position up to which it has read.

    Attributes:
        widen: returns some rows with those that change with them; None while each row changes by itself.
    """

    def __init__(self) -> None:
        self._rows: Ints = np.zeros(_CAPACITY, np.int64)
        self.position = 0
        self.widen: Callable[[Ints], Ints] | None = None
        # Rows before this position may have been overwritten.
        self._oldest = 0
        self._n_undone = 0

    @property
    def n_lasting(self) -> int:
        """How many changes there were that were not undone by the trial that made them."""
        return self.position - self._n_undone

    def add(self, row: int) -> None:
        """Note that a row changed."""
        self._rows[self.position % _CAPACITY] = row
        self.position += 1

    def add_many(self, rows: Sequence[int] | Ints) -> None:
        """Note that several rows changed."""
        at = self.position % _CAPACITY
        if at + len(rows) <= _CAPACITY:
            self._rows[at : at + len(rows)] = rows
            self.position += len(rows)
        else:
            for row in rows:
                self.add(int(row))

    def rewind(self, position: int) -> None:
        """Drop what was added since a position: it was undone, and no reader has read it."""
        self._oldest = max(self._oldest, self.position - _CAPACITY)
        self.position = position

    def note_undone(self, position: int) -> None:
        """Note that the rows added since a position are as they were: what changed them was undone."""
        self._n_undone += self.position - position

    def list_since(self, position: int) -> Ints | None:
        """List the distinct rows that changed since a position, ascending; None when the position is too old to say."""
        if self.position - position > _CAPACITY or position < self._oldest:
            return None
        if self.position == position:
            return self._rows[:0]
        first, end = position % _CAPACITY, self.position % _CAPACITY
        if first < end:
            rows = self._rows[first:end].copy()
        else:
            rows = np.concatenate((self._rows[first:], self._rows[:end]))
        if self.widen is not None:
            return self.widen(np.unique(rows))
        if rows.size <= _FEW:
            # This takes a tenth of the time that NumPy takes for so few.
            return rows if rows.size == 1 else np.array(sorted(set(rows.tolist())), np.int64)
        return np.unique(rows)


class Log(Generic[T]):
    """As ``Changes``, for values of any type that do not change often."""

    def __init__(self) -> None:
        self._values: deque[T] = deque(maxlen=_CAPACITY)
        self.position = 0

    def add(self, value: T) -> None:
        """Note that a value changed."""
        self._values.append(value)
        self.position += 1

    def list_since(self, position: int) -> dict[T, None] | None:
        """List the values that changed since a position, each once; None when the position is too old to say."""
        n = self.position - position
        if n > len(self._values):
            return None
        return dict.fromkeys(islice(reversed(self._values), n))
