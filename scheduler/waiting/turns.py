"""The active entities in the order of their turns."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

from scheduler.state.entities import AnyEntity
from scheduler.waiting.dues import IsStale
from scheduler.waiting.orders import Order


class _Turn(NamedTuple):
    place: tuple[Any, ...]
    ticket: int
    entity: AnyEntity


class Turns:
    """A heap for each lane. A turn whose entity has moved on is stale, and is dropped when it is met."""

    def __init__(self, order: Order, is_stale: IsStale) -> None:
        self._order, self._is_stale = order, is_stale
        self._lanes: dict[str, list[_Turn]] = {}
        # The heap that ``head`` looked at last.
        self._first: list[_Turn] = []

    def __len__(self) -> int:
        """Stale turns count."""
        return sum(map(len, self._lanes.values()))

    def push(self, entity: AnyEntity, ticket: int) -> None:
        """An entity is active."""
        self._push(_Turn(self._order.place(entity), ticket, entity))

    def head(self) -> str | None:
        """Uid of the entity whose turn is next; None when there is none."""
        for lane in list(self._lanes):
            self._settle(lane)
        best: tuple[Any, ...] | None = None
        self._first = []
        for lane, heap in self._lanes.items():
            rank = self._order.rank(lane, heap[0].place)
            if best is None or rank < best:
                best, self._first = rank, heap
        return self._first[0].entity.uid if self._first else None

    def pop(self) -> None:
        """The entity that ``head`` has just told has its turn."""
        heapq.heappop(self._first)

    def compact(self, most: int) -> None:
        """Drop stale turns once there are more than ``most``: a standby never pops."""
        if len(self) <= most:
            return
        for lane, heap in list(self._lanes.items()):
            left = [one for one in heap if not self._is_stale(one.entity.uid, one.ticket)]
            heapq.heapify(left)
            self._lanes[lane] = left

    def _push(self, turn: _Turn) -> None:
        heapq.heappush(self._lanes.setdefault(self._order.lane(turn.entity), []), turn)

    def _settle(self, lane: str) -> None:
        """The first of a lane is not stale, and stands in it by now; a lane without any is dropped."""
        heap, lane_of = self._lanes[lane], self._order.lane
        while heap:
            turn = heap[0]
            if self._is_stale(turn.entity.uid, turn.ticket):
                heapq.heappop(heap)
            elif lane_of(turn.entity) != lane:
                self._push(heapq.heappop(heap))
            else:
                return
        del self._lanes[lane]
