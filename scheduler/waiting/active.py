"""The active entities in the order in which they are tried."""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Any

from scheduler.state.entities import AnyEntity
from scheduler.waiting.dues import IsStale
from scheduler.waiting.orders import First, Order

# The items of the entity's place, then its ticket and the entity. One flat row compares in half the time of a nested one.
_Item = tuple[Any, ...]


class ActiveQueue:
    """One heap for each lane. An item is stale when its entity has moved; it is dropped when it comes to the top."""

    def __init__(self, order: Order, is_stale: IsStale) -> None:
        self._order, self._is_stale = order, is_stale
        self._lanes: defaultdict[str, list[_Item]] = defaultdict(list)
        # The heap whose first item ``find_head`` has returned last.
        self._first: list[_Item] = []

    def __len__(self) -> int:
        """Return the number of items; stale items count."""
        return sum(map(len, self._lanes.values()))

    def push(self, entity: AnyEntity, ticket: int) -> None:
        """Add an active entity."""
        self._push((*self._order.find_place(entity), ticket, entity))

    def find_head(self) -> str | None:
        """Return the uid of the entity that is tried next; None when no entity is active."""
        lanes = self._lanes
        for lane in tuple(lanes):
            self._settle(lane, lanes[lane])
        if not lanes:
            return None
        self._first = self._pick() if len(lanes) > 1 else next(iter(lanes.values()))
        uid: str = self._first[0][-1].uid
        return uid

    def _pick(self) -> list[_Item]:
        """Return the heap of the lane that comes first now."""
        firsts = {lane: First(heap[0][:-2], heap[0][-1]) for lane, heap in self._lanes.items()}
        return self._lanes[self._order.pick_lane(firsts)]

    def pop(self) -> None:
        """Remove the item that ``find_head`` has just returned."""
        heapq.heappop(self._first)

    def compact(self, most: int) -> None:
        """Drop stale items once there are more than ``most`` items: a replica that does not lead never pops any."""
        if len(self) <= most:
            return
        for lane, heap in list(self._lanes.items()):
            left = [one for one in heap if not self._is_stale(one[-1].uid, one[-2])]
            heapq.heapify(left)
            self._lanes[lane] = left

    def _push(self, item: _Item) -> None:
        heapq.heappush(self._lanes[self._order.find_lane(item[-1])], item)

    def _settle(self, lane: str, heap: list[_Item]) -> None:
        """Drop or move the first items of a lane until one is valid and still in this lane; drop a lane without items."""
        while heap:
            item = heap[0]
            if self._is_stale(item[-1].uid, item[-2]):
                heapq.heappop(heap)
            elif self._order.find_lane(item[-1]) != lane:
                self._push(heapq.heappop(heap))
            else:
                return
        del self._lanes[lane]
