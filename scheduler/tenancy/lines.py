"""Who waits in a queue, by kinds: like workloads are tried in turn, and wait together for a change.

Source: Kueue (2026-08), ``pkg/cache/queue/cluster_queue.go``: order, parking, likeness and the sticky preemptor.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from scheduler.tenancy.outcomes import Next
from scheduler.tenancy.works import Likeness, Place, Work

# So many of a kind are tried one by one though others of it are kept back; of how long each runs depends who may start.
_KEPT_BACK_MOST = 16


class _Kind:
    """Workloads of one lane that are alike.

    Attributes:
        is_parked: they wait for a change in their tree, with ``reason`` and ``message``.
        n_kept_back: how many more are like them, and wait for a change by themselves.
    """

    __slots__ = ("_heap", "_places", "is_parked", "key", "lane", "message", "n_kept_back", "reason")

    def __init__(self, lane: str, key: tuple[str, Likeness]) -> None:
        self.lane, self.key = lane, key
        self.is_parked, self.n_kept_back = False, 0
        self.reason = self.message = ""
        self._heap: list[tuple[Place, str]] = []
        # The place of each member; an entry of the heap with another place no longer counts.
        self._places: dict[str, Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, work: Work) -> None:
        self._places[work.key] = work.place
        heapq.heappush(self._heap, (work.place, work.key))

    def remove(self, key: str) -> None:
        del self._places[key]

    def find_first(self) -> tuple[Place, str] | None:
        """Find the first member; None if there is none."""
        while self._heap:
            place, key = self._heap[0]
            if self._places.get(key) == place:
                return place, key
            heapq.heappop(self._heap)
        return None


class Line:
    """The workloads that wait in one queue.

    Attributes:
        is_strict: nobody passes the first one.
        preemptor: the workload that waits for its victims; empty for none.
    """

    def __init__(
        self, *, is_strict: bool, find_usage: Callable[[str], float] | None = None
    ) -> None:
        """``find_usage`` finds how much a local queue has used, if that counts."""
        self.is_strict = is_strict
        self.preemptor = ""
        self._find_usage = find_usage
        self._works: dict[str, Work] = {}
        self._kind_of: dict[str, _Kind] = {}
        self._kinds: dict[tuple[str, Likeness], _Kind] = {}
        # Those who wait for a change by themselves, while others who are like them are tried.
        self._kept_back: dict[str, None] = {}
        # By lane, the kinds that are tried, by their first members; other entries no longer count.
        self._lanes: dict[str, list[tuple[Place, int, _Kind]]] = {}

    def __len__(self) -> int:
        return len(self._works)

    def __contains__(self, key: str) -> bool:
        return key in self._works

    def count_parked(self) -> int:
        """Count those who wait for a change."""
        parked = sum(len(one) for one in self._kinds.values() if one.is_parked)
        return parked + len(self._kept_back)

    def count_reason(self, reason: str, still_holds: Callable[[Work], bool]) -> int:
        """Count those who wait for a reason that still holds.

        Of those who may be tried, only the first of each kind was looked at.
        """
        return sum(self._count_kind(one, reason, still_holds) for one in self._kinds.values())

    def _count_kind(self, kind: _Kind, reason: str, still_holds: Callable[[Work], bool]) -> int:
        first = kind.find_first()
        if first is None:
            return 0
        work = self._works[first[1]]
        said = kind.reason if kind.is_parked else work.reason
        if said != reason or not still_holds(work):
            return 0
        return len(kind) if kind.is_parked else 1

    def put(self, work: Work) -> None:
        """Add a workload. Where those who are like it wait for a change, it waits for it, too."""
        self.drop(work.key)
        # Each local queue has a lane if it counts how much it has used.
        lane = "" if self._find_usage is None else work.local
        key = lane, work.likeness
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(lane, key)
        self._works[work.key], self._kind_of[work.key] = work, kind
        kind.add(work)
        if not kind.is_parked:
            self._push(kind)

    def _push(self, kind: _Kind) -> None:
        first = kind.find_first()
        if first is not None:
            heapq.heappush(self._lanes.setdefault(kind.lane, []), (first[0], id(kind), kind))

    def note_left(self, work: Work, what: Next) -> None:
        """Note what becomes of a workload that was tried and got nothing."""
        if what.is_preemptor:
            self.preemptor = work.key
        elif what.is_kept_back and not self.is_strict:
            self.keep_back(work)
        elif what.is_parked and not self.is_strict:
            self.park(work)

    def park(self, work: Work) -> None:
        """Let a workload, and those who are like it, wait for a change in their tree."""
        if self.preemptor == work.key:
            self.preemptor = ""
        kind = self._kind_of[work.key]
        kind.is_parked, kind.reason, kind.message = True, work.reason, work.message

    def keep_back(self, work: Work) -> None:
        """Let a workload wait for a change by itself; with too many of its kind already, let all of them wait."""
        kind = self._kind_of[work.key]
        if kind.n_kept_back >= _KEPT_BACK_MOST:
            self.park(work)
            return
        kind.n_kept_back += 1
        kind.remove(work.key)
        self._kept_back[work.key] = None
        self._push(kind)

    def find_reason(self, work: Work) -> tuple[str, str]:
        """Find why a workload waits, as a reason and a message; both are empty if it was not looked at yet."""
        kind = self._kind_of[work.key]
        is_with_kind = kind.is_parked and work.key not in self._kept_back
        return (kind.reason, kind.message) if is_with_kind else (work.reason, work.message)

    def is_parked(self, key: str) -> bool:
        """Whether a workload waits for a change."""
        return key in self._kept_back or self._kind_of[key].is_parked

    def drop(self, key: str) -> None:
        """Remove a workload that waits no longer; nothing if it does not wait."""
        if self._works.pop(key, None) is None:
            return
        kind = self._kind_of.pop(key)
        if key in self._kept_back:
            del self._kept_back[key]
            kind.n_kept_back -= 1
        else:
            kind.remove(key)
        if not len(kind) and not kind.n_kept_back:
            del self._kinds[kind.key]
        elif not kind.is_parked:
            self._push(kind)
        if self.preemptor == key:
            self.preemptor = ""

    def retry_all(self) -> None:
        """Try those again who wait for a change."""
        for key in self._kept_back:
            kind = self._kind_of[key]
            kind.n_kept_back -= 1
            kind.add(self._works[key])
            self._push(kind)
        self._kept_back.clear()
        for kind in self._kinds.values():
            if kind.is_parked:
                kind.is_parked = False
                self._push(kind)

    def find_head(self) -> Work | None:
        """Find whose turn it is: of the local queue that has used least, the preemptor, then by place."""
        if self._find_usage is None:
            return self._find_first("")
        best: tuple[float, bool, Place] | None = None
        found = None
        for lane in sorted(self._lanes):
            work = self._find_first(lane)
            if work is not None:
                order = self._find_usage(lane), work.key != self.preemptor, work.place
                if best is None or order < best:
                    best, found = order, work
        return found

    def _find_first(self, lane: str) -> Work | None:
        """Find the first one of a lane who is not parked."""
        if self.preemptor and not self.is_strict:
            kind = self._kind_of[self.preemptor]
            if kind.lane == lane and not kind.is_parked:
                return self._works[self.preemptor]
        heap = self._lanes.get(lane, [])
        while heap:
            place, _, kind = heap[0]
            first = kind.find_first()
            if not kind.is_parked and first is not None and first[0] == place:
                return self._works[first[1]]
            heapq.heappop(heap)
        return None

    def list_in_order(self) -> list[Work]:
        """List all who wait, in the order in which they would be tried if all could be."""
        return sorted(self._works.values(), key=self.find_order)

    def list_first(self, most: int) -> list[Work]:
        """List the first so many of those who wait, in their order."""
        return heapq.nsmallest(most, self._works.values(), key=self.find_order)

    def find_order(self, work: Work) -> tuple[float, bool, Place]:
        """Find by what a workload is compared with others of the queue: the least is tried first."""
        used = 0.0 if self._find_usage is None else self._find_usage(work.local)
        return used, self.is_strict or work.key != self.preemptor, work.place
