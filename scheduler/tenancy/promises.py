"""Promises quota and a place to the first workload of a queue that waits in vain, so that small ones do not pass it for ever.

The promise says by when the workload starts: the time is computed from the workloads with quota that say how long they
run. A workload behind it may use what it needs only in two cases: the one behind will have ended by then, or the first one
starts by then all the same (EASY backfill). The same holds for a workload of another queue that would borrow, where the
first one will not borrow. Kueue has no promises: there, in a queue that is not strict, smaller workloads pass a large one
as long as any come.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from typing import NamedTuple

from scheduler.api.queues.definitions import Policy
from scheduler.api.times import write_time
from scheduler.state.ends import LATE_SECONDS
from scheduler.tenancy.assigning import Assigner
from scheduler.tenancy.assignments import Assignment, Mode
from scheduler.tenancy.candidates import may_go
from scheduler.tenancy.fitting import assign_with_place
from scheduler.tenancy.ground import Ground
from scheduler.tenancy.ordering import Entry
from scheduler.tenancy.promise_book import Ends, Known
from scheduler.tenancy.trees import Column, Tree
from scheduler.tenancy.works import Work

# Nothing is promised for later than in a day: what others may not use until then is kept free.
LONGEST_SECONDS = 86_400.0
# The promises of so many other queues are kept by whoever borrows: those whose first workloads come first.
_QUEUES_MOST = 16


class Promise(NamedTuple):
    """What is promised to a workload that waits.

    Attributes:
        work: the workload.
        until: by when it will start, in seconds since 1970.
        ended: the keys of the workloads that will have ended by then.
        assignment: what it will get.
    """

    work: Work
    until: float
    ended: tuple[str, ...]
    assignment: Assignment

    @property
    def borrows(self) -> bool:
        """Whether its queue will use more than it is owed then."""
        return self.assignment.height > 0


class Promises:
    """What is promised in one tree at one time."""

    def __init__(self, tree: Tree, ground: Ground) -> None:
        self._tree, self._ground = tree, ground

    def list_binding(self, entry: Entry) -> list[Promise]:
        """List the promises that an entry has to keep if it gets quota; it must not have taken a place yet."""
        # What others have given back for a workload, nobody else may have.
        if not self._ground.rules.promises or entry.work.is_owed:
            return []
        known, queues = self._known, self._list_queues(entry)
        if not queues:
            return []
        ends = known.ends = known.ends or self._list_ends()
        if not ends.times:
            return []
        found = (self._find_promise(queue, entry, ends) for queue in queues)
        return [
            one
            for one in found
            if one is not None and not self._ends_by(entry.work, one.until, ends)
        ]

    def note_admitted(self, work: Work) -> None:
        """Note that a workload has got quota."""
        ends = self._known.ends if self._ground.rules.promises else None
        seconds = None if ends is None else self._ground.places.find_run_seconds(work)
        if ends is not None and seconds is not None and seconds <= LONGEST_SECONDS:
            ends.add(self._ground.now + seconds, work.key)

    def note_vain(self, work: Work) -> None:
        """Note that a workload was tried in vain, so that it may be promised quota."""
        if self._ground.rules.promises:
            self._ground.promise_book.note_vain(work)

    def find_broken(
        self, promises: Sequence[Promise], entry: Entry, *, has_place: bool
    ) -> Promise | None:
        """Find one of some promises that is not kept if an entry gets what it could get; None if all are kept.

        Args:
            promises: those that the entry has to keep.
            entry: with its assignment and its victims.
            has_place: whether it has taken its place already.
        """
        for one in promises:
            if not self._is_kept(one, entry, has_place=has_place):
                return one
        return None

    def _list_queues(self, entry: Entry) -> list[str]:
        """List the queues whose promises an entry has to keep: its own, and others if it borrows."""
        passed, own = self._ground.promise_book, entry.work.queue
        queues = [own] if passed.has_vain(own) else []
        if entry.assignment.height > 0:
            queues += [queue for queue in self._list_first_queues() if queue != own]
        return queues

    def _list_first_queues(self) -> list[str]:
        """List the queues of the tree with the first workloads that were tried in vain, as many as are worth a search."""
        known, passed = self._known, self._ground.promise_book
        if known.queues is None:
            firsts = [
                (first.place, queue)
                for queue in passed.list_queues(self._tree.queues)
                if (first := next(iter(passed.list_vain(queue)), None))
            ]
            known.queues = [queue for _, queue in nsmallest(_QUEUES_MOST, firsts)]
        return known.queues

    @property
    def _known(self) -> Known:
        return self._ground.promise_book.get_known(self._tree, self._ground.now)

    def _find_promise(self, queue: str, entry: Entry, ends: Ends) -> Promise | None:
        """Find what is promised in a queue, as far as an entry has to keep it."""
        is_own = queue == entry.work.queue
        find_order = self._ground.lines[queue].find_order
        for work in self._ground.promise_book.list_vain(queue):
            if is_own and find_order(work) >= find_order(entry.work):
                return None
            if not is_own and self._can_take_back(work, entry.work):
                return None
            promise = self._search_once(work, ends)
            if promise is not None:
                return promise if is_own or not promise.borrows else None
        return None

    def _can_take_back(self, work: Work, borrower: Work) -> bool:
        """Whether a workload may take quota back that another queue borrows: then it need not be kept free."""
        policy = self._ground.find_queue(work.queue).preemption.reclaim
        return policy != Policy.NEVER and may_go(policy, work, borrower)

    def _search_once(self, work: Work, ends: Ends) -> Promise | None:
        """Find what a workload is promised, once for each time: others that come in between keep the promise."""
        promises = self._known.promises
        if work.key not in promises:
            found = self._search(work, ends)
            promises[work.key] = None if found is None else (found.until, found.assignment)
        known = promises[work.key]
        if known is None:
            return None
        until, assignment = known
        ended = tuple(ends.keys[: bisect_right(ends.times, until)])
        return Promise(work, until, ended, assignment)

    # When others end.

    def _list_ends(self) -> Ends:
        """List by when those with quota will have ended, as far as they say it, within the time of a promise."""
        now, works = self._ground.now, self._ground.works
        found: list[tuple[float, str]] = []
        doubted: set[str] = set()
        for key in self._tree.held.list_keys():
            work = works.get(key)
            # What those give back who are asked to go is for somebody else.
            seconds = None
            if work is not None and not work.is_going:
                seconds = self._ground.places.find_run_seconds(work)
            if work is None or seconds is None:
                continue
            end = (work.defined.life.admitted_at or now) + seconds
            if now - end > LATE_SECONDS:
                # Nobody knows when it ends.
                doubted.add(work.namespace)
            elif end <= now + LONGEST_SECONDS:
                found.append((max(now, end), key))
        found.sort()
        return Ends([end for end, _ in found], [key for _, key in found], frozenset(doubted))

    def _ends_by(self, work: Work, until: float, ends: Ends) -> bool:
        """Whether a workload that starts now will have ended by a time."""
        seconds = self._ground.places.find_run_seconds(work)
        if seconds is None or work.namespace in ends.doubted:
            return False
        return self._ground.now + seconds <= until

    # When a workload starts.

    def _search(self, work: Work, ends: Ends) -> Promise | None:
        """Find by when a workload starts if nobody comes before it; None if it does not within the time of a promise."""
        keys = ends.keys
        n = _find_least(0, len(keys), lambda n: self._fit(work, keys[:n], with_place=False))
        if n is not None and self._ground.places.needs_place(work):
            n = _find_least(n, len(keys), lambda n: self._fit(work, keys[:n]))
        assignment = None if n is None else self._fit(work, keys[:n])
        if n is None or assignment is None:
            return None
        until = ends.times[n - 1] if n else self._ground.now
        return Promise(work, until, tuple(keys[:n]), assignment)

    def _fit(
        self, work: Work, gone: Sequence[str], *, with_place: bool = True
    ) -> Assignment | None:
        """Find what a workload gets once some have gone; None if it gets nothing."""
        with self._go(gone):
            assigner = self._make_assigner(work)
            if with_place:
                found = assign_with_place(assigner, self._ground.places, work, gone=gone)
            else:
                found = assigner.assign(work.sets, work.counts)
        return found if found.mode == Mode.FIT and not found.lacks_place else None

    def _make_assigner(self, work: Work) -> Assigner:
        return Assigner(
            self._ground.find_queue(work.queue),
            self._tree,
            self._ground.book,
            _ask_nobody,
            is_fair=self._ground.rules.is_fair,
        )

    @contextmanager
    def _go(self, keys: Sequence[str]) -> Iterator[None]:
        """Let workloads give their quota back meanwhile."""
        rows = [self._tree.held.find_row(key) for key in keys]
        self._tree.move_rows(rows, -1)
        try:
            yield
        finally:
            self._tree.move_rows(rows, 1)

    # Whether a promise is kept.

    def _is_kept(self, promise: Promise, entry: Entry, *, has_place: bool) -> bool:
        """Whether a workload starts as promised though an entry still has what it could get now."""
        victims = [one.key for one in entry.victims]
        gone = list(dict.fromkeys((*promise.ended, *victims)))
        queue = self._tree.queues[entry.work.queue]
        self._tree.charge(queue, entry.usage, 1)
        try:
            if has_place or not self._ground.places.needs_place(entry.work):
                return self._fit(promise.work, gone) is not None
            fit = self._fit(promise.work, gone, with_place=False)
        finally:
            self._tree.charge(queue, entry.usage, -1)
        if fit is None or not self._ground.places.needs_place(promise.work):
            return fit is not None
        both = [(entry.work, entry.assignment), (promise.work, fit)]
        return self._ground.places.has_places(both, gone)

    def describe(self, promise: Promise) -> str:
        """Describe why a workload waits because of a promise."""
        now, until = self._ground.now, promise.until
        when = f"at {write_time(until)}" if now else f"in {math.ceil(until - now)} s"
        return (
            f"Workload {promise.work.key} comes first, and starts {when} at the latest; this one would delay it,"
            " as it will not have ended by then"
        )


def _ask_nobody(column: Column, amount: int, height: int) -> tuple[Mode, int]:
    """Answer for a workload for which nobody is asked to go."""
    del column, amount
    return Mode.NO_CANDIDATES, height


def _find_least(low: int, high: int, fits: Callable[[int], object]) -> int | None:
    """Find the least number of those who end first with which a workload fits; None if it does not with ``high``."""
    if fits(low):
        return low
    if low == high or not fits(high):
        return None
    between = range(low + 1, high)
    return low + 1 + bisect_left(between, True, key=lambda n: bool(fits(n)))
