"""What waits: order, backoff, and whom a change could help.

    offer ─▶ active ─ pop ─▶ (in the cycle) ─ failed ─▶ unschedulable ─ helped ─▶ backoff ─▶ active
      └─▶ gated (scheduling gates)     └─ retry ─▶ backoff

A pod that failed waits in ``unschedulable`` until something changed that could help its shape; if it
failed only just now it sits out its backoff first (1 s doubling to 10 s by default).

Pods go by priority, then age. A kind of pod that was not looked at lately is dear to decide, and its
namespace pays for it: a namespace that has spent more than its allowance stands behind the others of equal
priority, the least spent first, until that is forgotten (by half every ten seconds). Nobody else's pods wait
for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator
from enum import StrEnum

import msgspec

from scheduler.config import Config
from scheduler.queues.needs import Needs
from scheduler.schema.columns import Ints
from scheduler.state.pods import PodRecord

# What a namespace may spend before others go first, in units of ``cost``, and how soon half of it is forgotten.
# Nobody owes more than is forgotten in a few half-lives: perhaps nobody else wanted the time.
_ALLOWANCE, _SPENT_MAX = 100.0, 400.0
_HALF_LIFE_SECONDS = 10.0
_STALE_MAX = 64
# As kube-scheduler: whatever an event missed is tried again after five minutes.
_FLUSH_SECONDS = 300.0


class Where(StrEnum):
    """Which part of the queue a pod is in; kube-scheduler's names, used as metric labels."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


class _Entry(msgspec.Struct):
    pod: PodRecord
    where: Where
    ticket: int
    attempts: int = 0
    failed_at: float = 0.0
    kind: Hashable = None


_Heap = list[tuple[int, str, int, int, str]]


def _free_of_charge(_: PodRecord) -> int:
    return 0


class Pending:
    """The pods of ours that have no node. One writer, like the cluster."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._entries: dict[str, _Entry] = {}
        # Heaps hold (order..., ticket, uid); an entry whose ticket moved on is stale.
        self._active: _Heap = []
        # Likewise, for namespaces that have spent more than their allowance.
        self._behind: dict[str, _Heap] = {}
        self._spent: dict[str, float] = {}
        self._faded_at = 0.0
        self._backoff: list[tuple[float, int, str]] = []
        # Parked pods by what decides whether they fit: one question for all of a kind.
        self._parked: dict[Hashable, dict[str, _Entry]] = {}
        self._needs = Needs()
        self._n_parked = 0
        self._popped: set[str] = set()
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._entries)

    def offer(self, pod: PodRecord) -> None:
        """A waiting pod was added or changed. A change that could matter makes it active at once."""
        entry = self._entries.get(pod.uid)
        if entry is None:
            entry = self._entries[pod.uid] = _Entry(pod, Where.GATED, 0)
        elif _same(entry.pod, pod):
            entry.pod = pod
            return
        entry.pod = pod
        if pod.gated:
            self._move(entry, Where.GATED)
        elif pod.uid not in self._popped:
            self._activate(entry)

    def drop(self, uid: str) -> None:
        """The pod is bound, finished, deleted, or no longer ours."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._unpark(entry)
        self._popped.discard(uid)
        self._compact()

    def pop(
        self,
        limit: int,
        now: float,
        cost: Callable[[PodRecord], int] = _free_of_charge,
        most: int = 0,
    ) -> list[PodRecord]:
        """Up to ``limit`` active pods: by priority, then age, then arrival. They count as tried.

        ``cost`` is what a pod costs beyond the usual, and is paid by its namespace; a batch ends before it
        costs more than ``most``, with one pod at least.
        """
        self._release_backoff(now)
        self._fade(now)
        batch: list[PodRecord] = []
        paid: set[tuple[str, int]] = set()
        spent = 0
        while len(batch) < limit and (heap := self._next_heap()) is not None:
            entry = self._entries[heap[0][-1]]
            # A pod that is like one of the batch is not dear.
            like = (entry.pod.namespace, id(entry.pod.template))
            dear = 0 if like in paid else cost(entry.pod)
            if batch and dear and spent + dear > most:
                break
            heapq.heappop(heap)
            if dear:
                paid.add(like)
                spent += dear
                namespace = entry.pod.namespace
                self._spent[namespace] = min(_SPENT_MAX, self._spent.get(namespace, 0.0) + dear)
            entry.attempts += 1
            self._popped.add(entry.pod.uid)
            batch.append(entry.pod)
        return batch

    def take(self, uid: str) -> None:
        """Take a pod out as if it had just been popped, wherever it stands: it counts as tried."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._move(entry, Where.ACTIVE)
            entry.attempts += 1
            self._popped.add(uid)

    def peek(self, now: float) -> PodRecord | None:
        """The pod that would be popped next; None when none is active."""
        self._release_backoff(now)
        heap = self._next_heap()
        return self._entries[heap[0][-1]].pod if heap else None

    def _next_heap(self) -> _Heap | None:
        """The heap whose head is next; its head is not stale."""
        active = self._active
        while active:
            if self._is_stale(active[0]):
                heapq.heappop(active)
                continue
            namespace = self._entries[active[0][-1]].pod.namespace
            if self._spent.get(namespace, 0.0) <= _ALLOWANCE:
                break
            heapq.heappush(self._behind.setdefault(namespace, []), heapq.heappop(active))
        best, heap = (active[0][0], 0.0) if active else None, active or None
        for namespace, behind in list(self._behind.items()):
            while behind and self._is_stale(behind[0]):
                heapq.heappop(behind)
            if not behind:
                del self._behind[namespace]
                continue
            key = (behind[0][0], self._spent.get(namespace, 0.0))
            if best is None or key < best:
                best, heap = key, behind
        return heap

    def _is_stale(self, ticketed: tuple[int, str, int, int, str]) -> bool:
        entry = self._entries.get(ticketed[-1])
        return entry is None or entry.ticket != ticketed[-2]

    def _compact(self) -> None:
        """Drop stale entries once they are more than the others: a standby never pops."""
        most = _STALE_MAX + 2 * len(self._entries)
        if len(self._active) > most:
            self._active = [one for one in self._active if not self._is_stale(one)]
            heapq.heapify(self._active)
        if len(self._backoff) > most:
            self._backoff = [
                (due, ticket, uid)
                for due, ticket, uid in self._backoff
                if uid in self._entries and self._entries[uid].ticket == ticket
            ]
            heapq.heapify(self._backoff)

    def _fade(self, now: float) -> None:
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
                for ticketed in self._behind.pop(namespace):
                    heapq.heappush(self._active, ticketed)

    def failed(self, uid: str, now: float, kind: Hashable, *, looks_far: bool = False) -> None:
        """Nothing fits: wait until a change could help.

        ``kind`` is equal for pods that fit the same nodes; they all have one template. ``looks_far``: a
        change on one node may help them on another, so what is free on the former does not rule them out.
        """
        entry = self._returned(uid, now)
        if entry is not None:
            self._move(entry, Where.UNSCHEDULABLE)
            entry.kind = kind
            if kind not in self._parked:
                self._parked[kind] = {}
                self._needs.add(kind, entry.pod.template)
            if looks_far:
                self.look_far(kind)
            self._parked[kind][uid] = entry
            self._n_parked += 1

    def retry(self, uid: str, now: float) -> None:
        """The bind failed through no fault of the pod: try again after its backoff."""
        entry = self._returned(uid, now)
        if entry is not None:
            self._back_off(entry)

    def look_far(self, kind: Hashable) -> None:
        """From now on a change on one node may help the pods of a kind on another, see ``failed``."""
        if kind in self._parked:
            self._needs.widen(kind)

    def looks_far(self, kind: Hashable) -> bool:
        """Whether a change on one node may help the pods of a kind on another."""
        return self._needs.is_wide(kind)

    def kinds(self) -> list[Hashable]:
        """The kinds of pods that wait for a change."""
        return list(self._parked)

    def kinds_within(self, most: Ints) -> list[Hashable]:
        """The kinds among these that ask no more than ``most`` of each of ``needs.RESOURCES``."""
        return self._needs.within(most)

    def one_of(self, kind: Hashable) -> PodRecord | None:
        """A pod of a kind that waits for a change; None when all have moved on."""
        for entry in self._parked.get(kind, {}).values():
            return entry.pod
        return None

    def alike(self, kind: Hashable) -> list[PodRecord]:
        """The pods of a kind that wait for a change; none when all have moved on."""
        return [entry.pod for entry in self._parked.get(kind, {}).values()]

    def is_parked(self, uid: str) -> bool:
        """Whether a pod waits for a change."""
        entry = self._entries.get(uid)
        return entry is not None and entry.kind is not None

    def helped(self, kind: Hashable, now: float) -> None:
        """A change helps the pods of a kind: try them again, after their backoff."""
        for entry in list(self._parked.get(kind, {}).values()):
            self._back_off(entry, now)

    def flush(self, now: float) -> None:
        """Try again what has waited for five minutes, should an event have been missed."""
        for alike in list(self._parked.values()):
            for entry in list(alike.values()):
                if now - entry.failed_at >= _FLUSH_SECONDS:
                    self._activate(entry)

    def next_due(self) -> float | None:
        """When the next pod leaves its backoff; None when none is in it."""
        while self._backoff:
            due, ticket, uid = self._backoff[0]
            entry = self._entries.get(uid)
            if entry is not None and entry.ticket == ticket:
                return due
            heapq.heappop(self._backoff)
        return None

    @property
    def has_active(self) -> bool:
        """Whether a pod may be waiting for the cycle (stale entries count)."""
        return bool(self._active or self._behind)

    @property
    def n_parked(self) -> int:
        """Pods that wait for a change."""
        return self._n_parked

    def in_order(self) -> list[PodRecord]:
        """The active pods, in the order in which they would be popped if nobody had to pay."""
        active = (e.pod for e in self._entries.values() if e.where == Where.ACTIVE)
        return sorted(active, key=lambda pod: (-pod.priority, pod.created, pod.order))

    def pods(self) -> Iterator[PodRecord]:
        """All waiting pods."""
        return (entry.pod for entry in self._entries.values())

    def counts(self) -> dict[Where, int]:
        """Pods in each part of the queue."""
        counts = dict.fromkeys(Where, 0)
        for entry in self._entries.values():
            counts[entry.where] += 1
        return counts

    def attempts(self, uid: str) -> int:
        """How often the pod was tried."""
        entry = self._entries.get(uid)
        return entry.attempts if entry else 0

    def reconsider(self) -> None:
        """Try all waiting pods at once: something that steers every pod changed, such as a policy."""
        for entry in self._entries.values():
            if (
                entry.where in {Where.UNSCHEDULABLE, Where.BACKOFF}
                and entry.pod.uid not in self._popped
            ):
                self._activate(entry)

    def _returned(self, uid: str, now: float) -> _Entry | None:
        self._popped.discard(uid)
        entry = self._entries.get(uid)
        if entry is not None:
            entry.failed_at = now
        return entry

    def _activate(self, entry: _Entry) -> None:
        self._move(entry, Where.ACTIVE)
        self._compact()
        pod = entry.pod
        heapq.heappush(self._active, (-pod.priority, pod.created, pod.order, entry.ticket, pod.uid))

    def _back_off(self, entry: _Entry, now: float | None = None) -> None:
        config = self._config
        wait = min(
            config.backoff_max_seconds,
            config.backoff_seconds * 2.0 ** min(30, max(0, entry.attempts - 1)),
        )
        due = entry.failed_at + wait
        if now is not None and due <= now:
            self._activate(entry)
            return
        self._move(entry, Where.BACKOFF)
        heapq.heappush(self._backoff, (due, entry.ticket, entry.pod.uid))

    def _release_backoff(self, now: float) -> None:
        while self._backoff and self._backoff[0][0] <= now:
            _, ticket, uid = heapq.heappop(self._backoff)
            entry = self._entries.get(uid)
            if entry is not None and entry.ticket == ticket:
                self._activate(entry)

    def _move(self, entry: _Entry, where: Where) -> None:
        self._tickets += 1
        entry.ticket = self._tickets
        entry.where = where
        self._unpark(entry)

    def _unpark(self, entry: _Entry) -> None:
        if entry.kind is None:
            return
        alike = self._parked[entry.kind]
        del alike[entry.pod.uid]
        if not alike:
            del self._parked[entry.kind]
            self._needs.drop(entry.kind)
        entry.kind = None
        self._n_parked -= 1


def _same(a: PodRecord, b: PodRecord) -> bool:
    return (a.template, a.priority, a.gated, a.labels, a.problem) == (
        b.template,
        b.priority,
        b.gated,
        b.labels,
        b.problem,
    )
