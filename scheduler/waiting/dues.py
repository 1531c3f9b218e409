"""Entries by the time at which something is to happen to them, the earliest first."""

from __future__ import annotations

import heapq
from collections.abc import Callable

# Of a uid and a ticket, whether the entry has moved on since.
IsStale = Callable[[str, int], bool]


class Dues:
    """A heap. What stands in it of an entry that has moved on is stale, and is dropped when it is met."""

    def __init__(self, is_stale: IsStale) -> None:
        self._is_stale = is_stale
        # When, ticket and uid of an entry.
        self._heap: list[tuple[float, int, str]] = []

    def __bool__(self) -> bool:
        """Whether there is anything, stale or not."""
        return bool(self._heap)

    def push(self, due: float, ticket: int, uid: str) -> None:
        """Something is to happen to an entry at that time."""
        heapq.heappush(self._heap, (due, ticket, uid))

    def first(self) -> float | None:
        """The earliest time; None when nothing is to happen."""
        while self._heap:
            due, ticket, uid = self._heap[0]
            if not self._is_stale(uid, ticket):
                return due
            heapq.heappop(self._heap)
        return None

    def pop(self, until: float) -> str | None:
        """Take the first out whose time has come; None when there is none."""
        while self._heap and self._heap[0][0] <= until:
            _, ticket, uid = heapq.heappop(self._heap)
            if not self._is_stale(uid, ticket):
                return uid
        return None

    def compact(self, most: int) -> None:
        """Drop what is stale once there is more than so much in all."""
        if len(self._heap) > most:
            self._heap = [one for one in self._heap if not self._is_stale(one[2], one[1])]
            heapq.heapify(self._heap)
