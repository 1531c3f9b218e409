"""The active entities in the order of their turns."""

from __future__ import annotations

import heapq
from collections import defaultdict
from operator import itemgetter
from typing import Any

from scheduler.state.entities import AnyEntity
from scheduler.waiting.dues import IsStale
from scheduler.waiting.orders import Order

# What its place is made of, then its ticket and the entity: in one row, which is compared in half the time.
_Turn = tuple[Any, ...]


class Turns:
    """A heap for each lane. A turn whose entity has moved on is stale, and is dropped when it is met."""

    def __init__(self, order: Order, is_stale: IsStale) -> None:
        self._order, self._is_stale = order, is_stale
        self._lanes: defaultdict[str, list[_Turn]] = defaultdict(list)
        # The heap that ``head`` looked at last.
        self._first: list[_Turn] = []

    def __len__(self) -> int:
        """Stale turns count."""
        return sum(map(len, self._lanes.values()))

    def push(self, entity: AnyEntity, ticket: int) -> None:
        """An entity is active."""
        self._push((*self._order.place(entity), ticket, entity))

    def head(self) -> str | None:
        """Uid of the entity whose turn is next; None when there is none."""
        lanes = self._lanes
        for lane in tuple(lanes):
            self._settle(lane, lanes[lane])
        if not lanes:
            return None
        self._first = self._pick() if len(lanes) > 1 else next(iter(lanes.values()))
        uid: str = self._first[0][-1].uid
        return uid

    def _pick(self) -> list[_Turn]:
        """The lane whose first comes before those of the others."""
        rank = self._order.rank
        ranks = [(rank(lane, heap[0][:-2]), heap) for lane, heap in self._lanes.items()]
        return min(ranks, key=itemgetter(0))[1]

    def pop(self) -> None:
        """The entity that ``head`` has just told has its turn."""
        heapq.heappop(self._first)

    def compact(self, most: int) -> None:
        """Drop stale turns once there are more than ``most``: a standby never pops."""
        if len(self) <= most:
            return
        for lane, heap in list(self._lanes.items()):
            left = [one for one in heap if not self._is_stale(one[-1].uid, one[-2])]
            heapq.heapify(left)
            self._lanes[lane] = left

    def _push(self, turn: _Turn) -> None:
        heapq.heappush(self._lanes[self._order.lane(turn[-1])], turn)

    def _settle(self, lane: str, heap: list[_Turn]) -> None:
        """The first of a lane is not stale, and stands in it by now; a lane without any is dropped."""
        while heap:
            turn = heap[0]
            if self._is_stale(turn[-1].uid, turn[-2]):
                heapq.heappop(heap)
            elif self._order.lane(turn[-1]) != lane:
                self._push(heapq.heappop(heap))
            else:
                return
        del self._lanes[lane]
