"""The order of turns: by priority, then age; within a priority, namespaces that used much lately come last.

A kind of pod that was not looked at lately is expensive to decide, and its namespace pays for it: a namespace that
has spent more than its allowance stands behind the others, the least spent first, until that is forgotten (by
half every ten seconds). Nobody else's pods wait for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

from scheduler.state.entities import AnyEntity

# What a namespace may spend before others go first, in units of cost, and how soon half of it is forgotten.
# Nobody owes more than is forgotten in a few half-lives: perhaps nobody else wanted the time.
_ALLOWANCE, _SPENT_MAX = 100.0, 400.0
_HALF_LIFE_SECONDS = 10.0


class _Turn(NamedTuple):
    urgency: int
    created: str
    order: int
    ticket: int
    uid: str
    namespace: str


class ActivePods:
    """The active pods as heaps. A turn whose pod has moved on is stale, and is dropped when it is met."""

    def __init__(self, is_stale: Callable[[str, int], bool]) -> None:
        """``is_stale`` says of a uid and a ticket whether the pod has moved on since."""
        self._is_stale = is_stale
        self._active: list[_Turn] = []
        # Of namespaces that have spent more than their allowance.
        self._behind: dict[str, list[_Turn]] = {}
        self._spent: dict[str, float] = {}
        self._faded_at = 0.0
        # The heap that ``head`` looked at last.
        self._first: list[_Turn] = []

    def __len__(self) -> int:
        """Stale turns count."""
        return len(self._active) + sum(map(len, self._behind.values()))

    def push(self, one: AnyEntity, ticket: int) -> None:
        """An entity is active."""
        turn = _Turn(-one.priority, one.created, one.order, ticket, one.uid, one.namespace)
        heapq.heappush(self._active, turn)

    def head(self) -> str | None:
        """Uid of the pod whose turn is next; None when there is none."""
        self._first = self._heap()
        return self._first[0].uid if self._first else None

    def pop(self) -> None:
        """The pod that ``head`` has just told has its turn."""
        heapq.heappop(self._first)

    def pay(self, namespace: str, cost: float) -> None:
        """A pod of a namespace costs so much beyond the usual."""
        self._spent[namespace] = min(_SPENT_MAX, self._spent.get(namespace, 0.0) + cost)

    def fade(self, now: float) -> None:
        """Forget what was spent as time goes; a namespace with allowance again stands among all others."""
        passed = now - self._faded_at
        if not self._spent or passed < 1.0:
            self._faded_at = now if not self._spent else self._faded_at
            return
        self._faded_at = now
        left = 0.5 ** (passed / _HALF_LIFE_SECONDS)
        self._spent = {n: spent * left for n, spent in self._spent.items() if spent * left >= 1.0}
        for namespace in list(self._behind):
            if self._spent.get(namespace, 0.0) <= _ALLOWANCE:
                for turn in self._behind.pop(namespace):
                    heapq.heappush(self._active, turn)

    def compact(self, most: int) -> None:
        """Drop stale turns once there are more than ``most``: a standby never pops."""
        if len(self._active) > most:
            self._active = [one for one in self._active if not self._is_stale(one.uid, one.ticket)]
            heapq.heapify(self._active)

    def _heap(self) -> list[_Turn]:
        """The heap whose head is next and not stale; an empty one when nobody is."""
        active = self._active
        while active:
            turn = active[0]
            if self._is_stale(turn.uid, turn.ticket):
                heapq.heappop(active)
                continue
            if self._spent.get(turn.namespace, 0.0) <= _ALLOWANCE:
                break
            heapq.heappush(self._behind.setdefault(turn.namespace, []), heapq.heappop(active))
        best, heap = (active[0].urgency, 0.0) if active else None, active
        for namespace, behind in list(self._behind.items()):
            while behind and self._is_stale(behind[0].uid, behind[0].ticket):
                heapq.heappop(behind)
            if not behind:
                del self._behind[namespace]
                continue
            key = (behind[0].urgency, self._spent.get(namespace, 0.0))
            if best is None or key < best:
                best, heap = key, behind
        return heap
