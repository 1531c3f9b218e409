"""Entries of the queue by the time at which they are due, the earliest first."""

from __future__ import annotations

import heapq
from collections.abc import Callable

# Takes a uid and a ticket, and answers whether the entry has moved since it got the ticket.
IsStale = Callable[[str, int], bool]


class Dues:
    """A heap. The item of an entry that has moved meanwhile is stale, and is dropped when it comes to the top."""

    def __init__(self, is_stale: IsStale) -> None:
        self._is_stale = is_stale
        # The time at which an entry is due (in seconds), its ticket and its uid.
        self._heap: list[tuple[float, int, str]] = []

    def __bool__(self) -> bool:
        """Whether the heap has items, stale or not."""
        return bool(self._heap)

    def push(self, due: float, ticket: int, uid: str) -> None:
        """Add an entry that is due at a time."""
        heapq.heappush(self._heap, (due, ticket, uid))

    def find_first(self) -> float | None:
        """Return the earliest time; None when no entry is due."""
        while self._heap:
            due, ticket, uid = self._heap[0]
            if not self._is_stale(uid, ticket):
                return due
            heapq.heappop(self._heap)
        return None

    def pop(self, until: float) -> str | None:
        """Take out the earliest entry that is due by ``until``, and return its uid; None when there is none."""
        while self._heap and self._heap[0][0] <= until:
            _, ticket, uid = heapq.heappop(self._heap)
            if not self._is_stale(uid, ticket):
                return uid
        return None

    def compact(self, most: int) -> None:
        """Drop stale items once the heap has more than ``most`` items."""
        if len(self._heap) > most:
            self._heap = [one for one in self._heap if not self._is_stale(one[2], one[1])]
            heapq.heapify(self._heap)
