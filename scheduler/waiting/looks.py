"""The kinds of waiting pods that are still to be looked at, in the order of the queue."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

# How many kinds that no longer wait may be kept beside twice those that do.
_SPARE = 64
# When several events together are about more rows than this, the kind is looked at on all rows.
_ROWS_MAX = 256
_Rows = frozenset[int]


class Looks:
    """The kinds to look at, each with the rows to look at; None stands for all rows.

    Kinds with equal places come in the order in which they were noted. One event may wake thousands of kinds. These
    share the event's set of rows, and the union of two events' rows is made once for all kinds that both events woke.
    """

    def __init__(self, place_of: Callable[[Hashable], tuple[Any, ...]]) -> None:
        """``place_of`` returns the place of a kind among the waiting kinds, the lowest first."""
        self._place_of = place_of
        self._rows: dict[Hashable, _Rows | None] = {}
        # The union of two sets of rows, by the identities of the sets. The sets are kept here, too: otherwise Python
        # could give their identities to other sets.
        self._joined: dict[tuple[int, int], tuple[_Rows, _Rows, _Rows | None]] = {}
        self._order: list[tuple[tuple[Any, ...], int, Hashable]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._rows)

    def note_kind(self, kind: Hashable, rows: _Rows | None) -> None:
        """Note that a kind is to be looked at on these rows, beside the rows noted before."""
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
        """Take out the kind to look at next, with its rows; there has to be a kind."""
        _, _, kind = heappop(self._order)
        return kind, self._rows.pop(kind)

    def keep_waiting(self, waiting: Container[Hashable], n_waiting: int) -> None:
        """Forget the kinds that no longer wait, once they may outnumber the waiting ones. Call this now and then."""
        self._joined.clear()
        if len(self._order) <= 2 * n_waiting + _SPARE:
            return
        self._rows = {kind: rows for kind, rows in self._rows.items() if kind in waiting}
        self._order = [one for one in self._order if one[2] in self._rows]
        heapify(self._order)

    def clear(self) -> None:
        """Forget all kinds: no pod waits."""
        self._rows.clear()
        self._joined.clear()
        self._order.clear()
