"""Kinds of waiting pods that are to be looked at, in their order."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

# So many kinds that wait no longer are no burden.
_SPARE = 64
# More rows than this of several events are all rows.
_ROWS_MAX = 256
_Rows = frozenset[int]


class Looks:
    """Which kinds are to be looked at, and on which rows; None for all.

    Kinds of one place come in the order in which they were noted. One event may wake thousands of kinds: they share
    its rows, and what the rows of two events are together is found once for all kinds that both have woken.
    """

    def __init__(self, place_of: Callable[[Hashable], tuple[Any, ...]]) -> None:
        """``place_of`` says where a kind stands among those that wait, the lowest first."""
        self._place_of = place_of
        self._rows: dict[Hashable, _Rows | None] = {}
        # The rows of two events together, by their identities; with the rows themselves, which so keep these.
        self._joined: dict[tuple[int, int], tuple[_Rows, _Rows, _Rows | None]] = {}
        self._order: list[tuple[tuple[Any, ...], int, Hashable]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._rows)

    def note(self, kind: Hashable, rows: _Rows | None) -> None:
        """A kind is to be looked at on these rows, too."""
        if kind not in self._rows:
            heappush(self._order, (self._place_of(kind), next(self._numbers), kind))
        noted = self._rows.setdefault(kind, rows)
        if noted is not rows:
            self._rows[kind] = self._join(noted, rows)

    def _join(self, one: _Rows | None, other: _Rows | None) -> _Rows | None:
        if one is None or other is None:
            return None
        by = id(one), id(other)
        found = self._joined.get(by)
        if found is None:
            both = one | other
            found = self._joined[by] = one, other, both if len(both) <= _ROWS_MAX else None
        return found[2]

    def take(self) -> tuple[Hashable, _Rows | None]:
        """The kind to look at next, with its rows; there has to be one."""
        _, _, kind = heappop(self._order)
        return kind, self._rows.pop(kind)

    def keep(self, waiting: Container[Hashable], n_waiting: int) -> None:
        """Forget the kinds that wait no longer, once they may be more than those that do; to be called now and then."""
        self._joined.clear()
        if len(self._order) <= 2 * n_waiting + _SPARE:
            return
        self._rows = {kind: rows for kind, rows in self._rows.items() if kind in waiting}
        self._order = [one for one in self._order if one[2] in self._rows]
        heapify(self._order)

    def clear(self) -> None:
        """Nobody waits."""
        self._rows.clear()
        self._joined.clear()
        self._order.clear()
