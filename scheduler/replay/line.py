"""A line in which nobody passes another: pods and groups are tried strictly in the order in which they came."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence


class Line:
    """The arrivals that stand in line."""

    def __init__(self, group_of: Sequence[str]) -> None:
        """``group_of`` has the group of each arrival; empty: it comes by itself."""
        self._group_of = group_of
        self._size = Counter(group_of)
        self._waiting: deque[list[int]] = deque()
        self._forming: dict[str, list[int]] = {}

    def add(self, i: int) -> None:
        """Let an arrival stand in line; a group stands where its first pod came."""
        group = self._group_of[i]
        members = self._forming.get(group) if group else None
        if members is not None:
            members.append(i)
            return
        one = [i]
        self._waiting.append(one)
        if group:
            self._forming[group] = one

    def take_first(self) -> list[int]:
        """Take the first pod, or the first group once all its pods have come; an empty list if there is none."""
        if not self._waiting:
            return []
        first = self._waiting[0]
        group = self._group_of[first[0]]
        if group and len(first) < self._size[group]:
            return []
        return self._waiting.popleft()
