"""Kinds of pods, sorted by how much of one resource they wait for: which could more free room help?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator

_Kind = Hashable


class Amounts:
    """The kinds that wait for one resource. Listing costs O(kinds listed); adding and dropping cost O(all kinds)."""

    def __init__(self) -> None:
        self._ordered: list[tuple[int, int]] = []
        self._numbers: dict[tuple[int, _Kind], int] = {}
        self._kinds: dict[int, _Kind] = {}
        self._n = 0

    def __len__(self) -> int:
        return len(self._ordered)

    def add(self, kind: _Kind, amount: int) -> None:
        """Note that a kind waits for an amount; nothing when it is noted already."""
        if (amount, kind) in self._numbers:
            return
        self._n += 1
        self._numbers[amount, kind] = self._n
        self._kinds[self._n] = kind
        insort(self._ordered, (amount, self._n))

    def drop(self, kind: _Kind, amount: int) -> None:
        """Forget that a kind waits for an amount; nothing when it is not noted."""
        number = self._numbers.pop((amount, kind), None)
        if number is not None:
            del self._kinds[number]
            del self._ordered[bisect_left(self._ordered, (amount, number))]

    def list_within(self, low: int, high: int) -> Iterator[_Kind]:
        """List the kinds that wait for more than ``low`` and no more than ``high``."""
        first = bisect_right(self._ordered, (low, self._n))
        end = bisect_right(self._ordered, (high, self._n))
        for _, number in self._ordered[first:end]:
            yield self._kinds[number]
