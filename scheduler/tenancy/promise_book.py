"""Keeps who may be promised quota, and who waits because of a promise.

A promise is made to one of the first workloads of a queue that were tried in vain. Others are kept back that would delay it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.lines import Line
from scheduler.tenancy.trees import Tree
from scheduler.tenancy.works import Where, Work

# So many of a queue are looked at for one that can be told when it starts.
CANDIDATES_MOST = 4
# Those who wait for a promise are tried again that often: the one to whom it was made may be promised nothing any more.
LOOK_SECONDS = 60.0


class Ends(NamedTuple):
    """When those with quota in a tree will have ended.

    Attributes:
        times: the ends, the earliest first.
        keys: whose they are.
        doubted: namespaces with a workload that runs longer than it said: what others there say is not believed.
    """

    times: list[float]
    keys: list[str]
    doubted: frozenset[str]

    def add(self, at: float, key: str) -> None:
        """Add a workload that has got quota."""
        i = bisect_right(self.times, at)
        self.times.insert(i, at)
        self.keys.insert(i, key)


@dataclass(slots=True)
class Known:
    """What was found out about promises in one tree at one time.

    Attributes:
        tree, now: the tree and the time.
        ends: when those with quota will have ended; None if that was not looked for.
        queues: the queues whose promises others keep; None if they were not looked for.
        promises: by when a workload starts, and what it gets then; None for nothing.
    """

    tree: Tree | None = None
    now: float = 0.0
    ends: Ends | None = None
    queues: list[str] | None = None
    promises: dict[str, tuple[float, Assignment] | None] = field(default_factory=dict)


class PromiseBook:
    """Who was tried in vain and may be promised quota, and who waits because of a promise."""

    def __init__(self, works: Mapping[str, Work], lines: Mapping[str, Line]) -> None:
        """All workloads by key, and those who wait in each queue."""
        self._works, self._lines = works, lines
        self._vain: dict[str, dict[str, None]] = {}
        # The queues in which somebody waits because of a promise, by the workload to which it was made.
        self._kept_back: dict[str, dict[str, None]] = {}
        self._look = 0
        self._known = Known()

    def note_vain(self, work: Work) -> None:
        """Note a workload that was tried, and waits for quota or a place. Of each queue the first ones are known."""
        vain = self._vain.setdefault(work.queue, {})
        vain[work.key] = None
        if len(vain) > CANDIDATES_MOST:
            self._vain[work.queue] = dict.fromkeys(one.key for one in self.list_vain(work.queue))

    def list_vain(self, queue: str) -> list[Work]:
        """List in their order the first workloads of a queue that were tried in vain and still wait."""
        line = self._lines.get(queue)
        known = (self._works.get(key) for key in self._vain.get(queue, ()))
        waiting = [
            work
            for work in known
            if work is not None and work.where == Where.WAITS and work.queue == queue
        ]
        if line is None:
            return []
        return sorted(waiting, key=line.find_order)[:CANDIDATES_MOST]

    @contextmanager
    def suppose_vain(self, queue: str, works: Iterable[Work]) -> Iterator[None]:
        """Suppose meanwhile that some workloads of a queue were tried in vain, if nobody in it was tried yet."""
        if queue in self._vain:
            yield
            return
        before = self._vain, self._known
        self._vain = before[0] | {queue: dict.fromkeys(one.key for one in works)}
        self._known = Known()
        try:
            yield
        finally:
            self._vain, self._known = before

    def get_known(self, tree: Tree, now: float) -> Known:
        """Return what was found out about promises in a tree at a time."""
        if self._known.tree is not tree or self._known.now != now:
            self._known = Known(tree, now)
        return self._known

    def list_queues(self, among: Container[str]) -> list[str]:
        """List those of some queues in which somebody may have been tried in vain."""
        return [queue for queue in self._vain if queue in among]

    def has_vain(self, queue: str) -> bool:
        """Whether anybody in a queue may have been tried in vain."""
        return queue in self._vain

    def keep_back(self, work: Work, promised: Work, now: float) -> None:
        """Note that a workload waits so as not to delay another one."""
        if not self._kept_back:
            self._look = int(now // LOOK_SECONDS)
        self._kept_back.setdefault(promised.key, {})[work.queue] = None

    def take_freed(self, key: str, queue: str) -> list[str]:
        """Forget a workload that waits no longer; return the queues in which others may have waited because of it."""
        vain = self._vain.get(queue)
        if vain is not None:
            vain.pop(key, None)
            if not vain:
                del self._vain[queue]
        return list(self._kept_back.pop(key, ()))

    def find_due(self) -> float | None:
        """Find when those are tried again who wait because of a promise; None if nobody does."""
        return (self._look + 1) * LOOK_SECONDS if self._kept_back else None

    def take_due(self, now: float) -> list[str]:
        """Return the queues of those who are to be tried again by now, and forget them."""
        due = self.find_due()
        if due is None or now < due:
            return []
        kept_back, self._kept_back = self._kept_back, {}
        return list(dict.fromkeys(queue for queues in kept_back.values() for queue in queues))
