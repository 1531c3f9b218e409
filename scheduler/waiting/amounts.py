"""Kinds of pods by how much of a resource they wait for, in order: which are helped by more being free?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator

_Kind = Hashable


class Amounts:
    """One resource. Finding costs by what is found; adding and dropping move what lies behind."""

    def __init__(self) -> None:
        self._ordered: list[tuple[int, int]] = []
        self._numbers: dict[tuple[int, _Kind], int] = {}
        self._kinds: dict[int, _Kind] = {}
        self._n = 0

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, kind: _Kind, amount: int) -> None:
        """A kind waits for so much; nothing when it does already."""
        if (amount, kind) in self._numbers:
            return
        self._n += 1
        self._numbers[amount, kind] = self._n
        self._kinds[self._n] = kind
        insort(self._ordered, (amount, self._n))

    def drop(self, kind: _Kind, amount: int) -> None:
        """It does so no longer; nothing when it did not."""
        number = self._numbers.pop((amount, kind), None)
        if number is not None:
            del self._kinds[number]
            del self._ordered[bisect_left(self._ordered, (amount, number))]

    def within(self, low: int, high: int) -> Iterator[_Kind]:
        """Those that wait for more than ``low`` and no more than ``high``."""
        first = bisect_right(self._ordered, (low, self._n))
        end = bisect_right(self._ordered, (high, self._n))
        for _, number in self._ordered[first:end]:
            yield self._kinds[number]
