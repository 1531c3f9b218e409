"""The parts of the queue, and the moves of an entry from one part to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from scheduler.config import Config
from scheduler.waiting.active import ActiveQueue
from scheduler.waiting.admissions import Admission, Door, Held
from scheduler.waiting.dues import Dues
from scheduler.waiting.entries import Came, Entry, Where
from scheduler.waiting.orders import Order
from scheduler.waiting.parked import Parked

_STALE_MAX = 64
# kube-scheduler, too, tries a pod again after five minutes, in case an event was missed. Of thousands of such pods
# only a few are tried at a time: otherwise all other pods would wait for them.
_FLUSH_SECONDS, _FLUSHED_MOST = 300.0, 100
_EVER = float("inf")


class Parts:
    """All entries, each of which is in one part of the queue. One writer, like the cluster.

    Attributes:
        entries: the entries by the uid of their entity.
        active: the active entities in the order in which they are tried.
        parked: the pods that wait for a change.
        came: how often an entity came to each part of the queue, by the reason.
    """

    def __init__(
        self, config: Config, order: Order, parked: Parked, admissions: Sequence[Admission]
    ) -> None:
        self._config = config
        self.entries: dict[str, Entry] = {}
        self.active = ActiveQueue(order, self._is_stale)
        self.parked = parked
        self.came: Counter[tuple[Where, Came]] = Counter()
        # Entries in their backoff. Those in ``_penance`` wait until its end, even while no entity is active.
        self._backoff, self._penance = Dues(self._is_stale), Dues(self._is_stale)
        # Parked entries by the time at which they were parked.
        self._parked_at = Dues(self._is_stale)
        self._door = Door(admissions, parked.hooks)
        self._tickets = 0
        # How many entries changed since stale ones were last looked for.
        self._n_changes = 0

    def drop(self, uid: str) -> None:
        """Remove the entry of an entity, if there is one."""
        entry = self.entries.pop(uid, None)
        if entry is not None:
            self._leave(entry)
        self._compact()

    def activate(self, entry: Entry, now: float, why: Came) -> None:
        """Make an entity active, or hold it if an admission says no."""
        if (held := self._door.judge(entry.entity)) is not None:
            self.hold(entry, held, why)
            return
        self.move(entry, Where.ACTIVE, why)
        entry.active_at = now
        if entry.since is None:
            entry.since = now
        self._compact()
        self.active.push(entry.entity, entry.ticket)

    def hold(self, entry: Entry, held: Held, why: Came) -> None:
        """Hold an entity that may not be tried."""
        self.move(entry, Where.GATED, why)
        entry.held = held
        self._door.hold(entry.uid, held)

    def park(self, entry: Entry, now: float, kind: Hashable) -> None:
        """Let an entity wait for a change that could help the pods of its kind."""
        self.move(entry, Where.UNSCHEDULABLE, Came.FAILED)
        self._parked_at.push(now, entry.ticket, entry.uid)
        self.parked.add(entry, kind)

    def back_off(self, entry: Entry, now: float, why: Came, *, in_full: bool) -> None:
        """Let an entity sit out its backoff; it becomes active at once when the backoff is over.

        Unless ``in_full``, the entity becomes active earlier if no other entity is active.
        """
        config = self._config
        wait = min(
            config.backoff_max_seconds,
            config.backoff_seconds * 2.0 ** min(30, max(0, entry.attempts - 1)),
        )
        due = entry.failed_at + wait
        if due <= now:
            self.activate(entry, now, why)
            return
        self.move(entry, Where.BACKOFF, why)
        (self._penance if in_full else self._backoff).push(due, entry.ticket, entry.uid)

    def release(self, most: int, now: float) -> None:
        """Make the entities active whose backoff is over.

        If no entity is active then, up to ``most`` of the entities that a change could help become active before
        their backoff is over. The others, such as those whose bind failed, do not.
        """
        while (uid := self._backoff.pop(now) or self._penance.pop(now)) is not None:
            self.activate(self.entries[uid], now, Came.BACKOFF_OVER)
        if self.active.find_head() is None:
            while most and (uid := self._backoff.pop(_EVER)) is not None:
                self.activate(self.entries[uid], now, Came.BACKOFF_OVER)
                most -= 1

    def release_longest_parked(self, now: float) -> None:
        """Make entities active that were parked for five minutes: a few of them, those parked first."""
        for _ in range(_FLUSHED_MOST):
            if (uid := self._parked_at.pop(now - _FLUSH_SECONDS)) is None:
                return
            self.activate(self.entries[uid], now, Came.WAITED_LONG)

    def find_next_due(self) -> float | None:
        """When the next entity in its backoff becomes active if no other is; None when no entity is in its backoff."""
        return 0.0 if self._backoff.find_first() is not None else self._penance.find_first()

    def move(self, entry: Entry, where: Where, why: Came) -> None:
        """Note that an entry is in another part of the queue, and no longer in the one that it was in."""
        self.came[where, why] += 1
        self._tickets += 1
        entry.ticket = self._tickets
        entry.where = where
        self._leave(entry)

    def _leave(self, entry: Entry) -> None:
        """Let an entry no longer wait for a change, nor for an admission."""
        self.parked.drop(entry)
        if entry.held is not None:
            self._door.release(entry.uid)
            entry.held = None

    def _is_stale(self, uid: str, ticket: int) -> bool:
        entry = self.entries.get(uid)
        return entry is None or entry.ticket != ticket

    def _compact(self) -> None:
        """Drop stale entries once they may outnumber the others: a replica that does not lead never pops any."""
        most = _STALE_MAX + 2 * len(self.entries)
        self._n_changes += 1
        if self._n_changes <= most:
            return
        self._n_changes = 0
        self.active.compact(most)
        for heap in (self._backoff, self._penance, self._parked_at):
            heap.compact(most)
