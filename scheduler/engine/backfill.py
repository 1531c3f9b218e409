"""Promises room for a later time to the first group in line that does not fit, so that no group waits for ever.

The promise says in which domain the group fits, and by when: computed from the pods that say how long they run. Pods and
groups that come after it may use that room only if they will have ended by then, or if the group fits all the same
(EASY backfill). A group of a profile with mode ``kube-scheduler`` is promised nothing.
"""

from __future__ import annotations

from collections.abc import Generator

from scheduler.api.door import notes
from scheduler.api.door.decisions import Outcome, Plan
from scheduler.cycle.schedule import Cycle
from scheduler.engine.allowance import Allowance, Work
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.waiting.entries import Entry, Where
from scheduler.waiting.pending import Pending

_NEVER = float("inf")
# So many groups, from the first in line on, are looked at in one round for one that can be told a time.
_CANDIDATES = 4
# A group that cannot be told a time is asked about again after so many rounds' time.
_ROUNDS_IN_VAIN = 12
# A promise counts as kept if the group is placed no later than so many seconds after its time.
_SLACK_SECONDS = 60.0


class Backfill:
    """Keeps one promise for a later time up to date."""

    def __init__(self, cluster: Cluster, cycle: Cycle, pending: Pending, pause: float) -> None:
        """``pause``: the least time between two rounds, in seconds; 0: a round with every change, and never by time alone."""
        self._cluster, self._cycle, self._pending = cluster, cycle, pending
        self._pause = pause
        self._running: Generator[None, None, None] | None = None
        self._is_stale = False
        self._looked_at = -_NEVER
        # The time that the group was promised at first.
        self._promised_until = _NEVER
        # By the uid of a group: when it could be told no time.
        self._in_vain: dict[str, float] = {}

    def note_change(self) -> None:
        """Note that a group has begun to wait, has waited in vain, or waits no longer."""
        self._is_stale = True

    def find_due(self) -> float:
        """Return when the next round is due; infinite when only a change can bring one."""
        if self._running is not None:
            return 0.0
        due = self._looked_at + self._pause if self._is_stale else _NEVER
        room = self._cluster.later.room
        if room is not None and self._pause:
            due = min(due, max(room.until, self._looked_at + self._pause))
        return due

    def work(self, now: float, allowance: Allowance) -> None:
        """Go on with the running round, or begin one that is due, as far as the allowance goes."""
        if self._running is None:
            if self.find_due() > now:
                return
            self._is_stale, self._looked_at = False, now
            self._running = self._look_for_first(now)
        for _ in self._running:
            if not allowance.allows(Work.CHORE):
                return
        self._running = None

    def note_plans(self, plans: list[Plan], now: float, outcome: Outcome) -> None:
        """Note what was decided: a promise ends when its group is placed, and pods may have used promised nodes."""
        later = self._cluster.later
        for plan in plans:
            if plan.group is not None:
                self._is_stale = True
            if later.room is None or not plan.binds:
                continue
            if plan.entity == later.room.entity:
                if plan.group is not None:
                    is_kept = now <= self._promised_until + _SLACK_SECONDS
                    outcome.notes.append(notes.PromiseEnded(plan.group.group, is_kept=is_kept))
                later.put(None)
                continue
            there = [bind.uid for bind in plan.binds if bind.node in later.on]
            filled = [uid for uid in there if self._comes_after(uid)]
            outcome.notes += [notes.Backfilled(uid) for uid in filled]
            if len(filled) < len(there):
                # Who comes before the group has taken its room, so the group is promised another time.
                self._is_stale, self._promised_until = True, _NEVER

    def _comes_after(self, uid: str) -> bool:
        room = self._cluster.later.room
        place = self._pending.order.find_place(self._cluster.pods[uid])
        return room is not None and place > room.place

    def _look_for_first(self, now: float) -> Generator[None, None, None]:
        """Find the first group in line that can be told a time, and promise it the room; else end the promise."""
        later, n_asked = self._cluster.later, 0
        for uid in self._list_waiting(now):
            entry = self._pending.find_entry(uid)
            if entry is None or not _waits_in_vain(entry):
                continue
            n_asked += 1
            entity = entry.entity
            if not isinstance(entity, Entity):
                continue
            place = self._pending.order.find_place(entity)
            room = yield from self._cycle.find_later_room(entity, place)
            entry = self._pending.find_entry(uid)
            if room is not None and entry is not None and _waits_in_vain(entry):
                self._in_vain.pop(uid, None)
                is_new = later.room is None or later.room.entity != uid
                if is_new or self._promised_until == _NEVER:
                    self._promised_until = room.until
                later.put(room)
                if room.until <= now:
                    self._pending.help_pod_at_once(entry.pod.uid, now)
                return
            self._in_vain[uid] = now
            if n_asked >= _CANDIDATES:
                break
        later.put(None)

    def _list_waiting(self, now: float) -> list[str]:
        """List the groups that were tried in vain, the first in line first, but those that were told no time lately."""
        waiting = [entry for entry in self._pending.list_groups() if _waits_in_vain(entry)]
        since = now - _ROUNDS_IN_VAIN * self._pause
        uids = {entry.uid for entry in waiting}
        self._in_vain = {uid: at for uid, at in self._in_vain.items() if uid in uids and at > since}
        waiting.sort(key=lambda entry: self._pending.order.find_place(entry.entity))
        return [entry.uid for entry in waiting if entry.uid not in self._in_vain]


def _waits_in_vain(entry: Entry) -> bool:
    """Whether a group was tried and found no room."""
    return entry.result is not None and entry.where != Where.GATED
