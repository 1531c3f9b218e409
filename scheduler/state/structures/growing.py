"""Arrays of integers that grow at the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.schema.columns import Ints

_LEAST = 64


class Growing:
    """An array that takes more integers at its end.

    Attributes:
        all: [capacity] the integers, and room for more.
        n: how many there are.
    """

    def __init__(self) -> None:
        self.all: Ints = np.zeros(_LEAST, np.int64)
        self.n = 0

    @property
    def used(self) -> Ints:
        """[n] the integers; a view that is valid until the next addition."""
        return self.all[: self.n]

    def add(self, more: Sequence[int] | Ints) -> int:
        """Add integers, and return the place of the first of them."""
        first, self.n = self.n, self.n + len(more)
        if self.n > len(self.all):
            before, self.all = self.all, np.zeros(_add_quarter(self.n), np.int64)
            self.all[:first] = before[:first]
        self.all[first : self.n] = more
        return first

    def put(self, one: int) -> None:
        """Add one integer."""
        if self.n == len(self.all):
            self.add([one])
        else:
            self.all[self.n] = one
            self.n += 1

    def keep(self, some: Ints) -> None:
        """Replace all integers by these, and free the room that they do not need."""
        self.n = len(some)
        self.all = np.zeros(_add_quarter(self.n), np.int64)
        self.all[: self.n] = some


def _add_quarter(n: int) -> int:
    """Add a quarter to what is needed: then additions cost the same on average, however many there were."""
    return max(_LEAST, n + n // 4)
