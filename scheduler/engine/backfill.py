"""Promises room for a later time to the first group in line that does not fit, so that no group waits for ever.

The promise says in which domain the group fits, and by when: computed from the pods that say how long they run. Pods and
groups that come after it may use that room only if they will have ended by then, or if the group fits all the same
(EASY backfill). A group of a profile with mode ``kube-scheduler`` is promised nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from heapq import nsmallest

from msgspec.structs import replace

from scheduler.api.door import notes
from scheduler.api.door.decisions import Outcome, Plan
from scheduler.cycle.schedule import Cycle
from scheduler.engine.allowance import Allowance, Work
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.later import LaterRoom, Place
from scheduler.waiting.entries import Entry, Where
from scheduler.waiting.pending import Pending

_NEVER = float("inf")
# So many groups, from the first in line on, are looked at in one round for one that can be told a time.
_CANDIDATES = 4
# So many of one namespace.
_OF_A_NAMESPACE = 2
# A group that cannot be told a time is looked at again after so many rounds' time.
_ROUNDS_IN_VAIN = 60
# Without a pause between rounds, so many groups are looked at after each change.
_A_CHANGE = 64
# So many groups that fit nowhere are looked at for a first promise before the pods behind them are placed.
_FIRST_ROUNDS = 4
# A promise counts as kept if the group is placed no later than so many seconds after its time.
_SLACK_SECONDS = 60.0
# Others use promised room only until the time that was promised first: pods that end a little late would else move it, and
# give others time to come, without end. A promise that is later by more has moved for another reason.
_MOVED_SECONDS = 600.0


class Backfill:
    """Keeps one promise for a later time up to date."""

    def __init__(self, cluster: Cluster, cycle: Cycle, pending: Pending, pause: float) -> None:
        """``pause``: the least time between two rounds, in seconds; 0: a round with every change, and never by time alone."""
        self._cluster, self._cycle, self._pending = cluster, cycle, pending
        self._pause = pause
        self._running: Generator[None, None, None] | None = None
        # Whether anything has changed since the last round, and whether there are more groups to look at.
        self._is_stale = self._goes_on = False
        self._looked_at = -_NEVER
        self._n_first = _FIRST_ROUNDS
        # By the uid of a waiting group: the time that it was promised first.
        self._promised: dict[str, float] = {}
        # By when others must have ended that use its room, likewise.
        self._ends_by: dict[str, float] = {}
        # The cluster's log of moved rows as of the last round.
        self._position = -1
        # By the uid of a group: when it could be told no time.
        self._in_vain: dict[str, float] = {}

    def note_group(self, uid: str, entity: Entity | None) -> None:
        """Note that a group has changed, or waits no longer: nothing is promised to one that may not be tried."""
        self._is_stale = True
        room = self._cluster.later.room
        if room is None or room.entity != uid:
            return
        if entity is None or entity.lacks or entity.problem is not None or entity.gated:
            self._end_promise()

    def _end_promise(self) -> None:
        """End the promise; who comes next in line is looked for at once."""
        if self._cluster.later.room is not None:
            self._cluster.later.put(None)
            self._looked_at = -_NEVER

    def find_due(self) -> float:
        """Return when the next round is due; infinite when only a change can bring one."""
        if self._running is not None:
            return 0.0
        is_due = self._is_stale or self._goes_on
        due = self._looked_at + self._pause if is_due else _NEVER
        room = self._cluster.later.room
        if room is not None and self._pause:
            # Pods may have ended early, or a promised node may be gone.
            has_moved = self._cluster.moved.position != self._position
            due = min(due, max(0.0 if has_moved else room.until, self._looked_at + self._pause))
        return due

    def split_batch(self, batch: list[AnyEntity]) -> Iterator[list[AnyEntity]]:
        """Yield the parts of a batch; as long as nothing was promised since the start, a part ends with each group."""
        begin = 0
        for end in range(1, len(batch) + 1):
            if end == len(batch) or (self._n_first and isinstance(batch[end - 1], Entity)):
                yield batch[begin:end]
                begin = end

    def promise_first(self, entity: AnyEntity, now: float) -> None:
        """Look at once for the first promise since the start, if a group that was tried fits nowhere.

        Nothing is known of what an earlier leader promised, and pods behind the group may not take its room for that.
        """
        if self._cluster.later.room is not None:
            self._n_first = 0
        entry = self._pending.find_entry(entity.uid) if self._n_first else None
        if entry is not None and self._waits_in_vain(entry):
            self._n_first -= 1
            for _ in self._look_for_first(now):
                pass

    def work(self, now: float, allowance: Allowance) -> None:
        """Go on with the running round, or begin one that is due, as far as the allowance goes."""
        if self._running is None:
            if self.find_due() > now:
                return
            if self._is_stale and not self._pause:
                self._in_vain.clear()
            self._is_stale = self._goes_on = False
            self._looked_at = now
            self._position = self._cluster.moved.position
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
            is_promised = later.room is not None and plan.entity == later.room.entity
            if is_promised and any(one.node for one in plan.nominates):
                # Room is made for it now.
                self._end_promise()
            if later.room is None or not plan.binds:
                continue
            if plan.entity == later.room.entity:
                if plan.group is not None:
                    is_kept = now <= self._promised.pop(plan.entity, now) + _SLACK_SECONDS
                    outcome.notes.append(notes.PromiseEnded(plan.group.group, is_kept=is_kept))
                self._end_promise()
                continue
            there = [bind.uid for bind in plan.binds if bind.node in later.on]
            filled = [uid for uid in there if self._comes_after(uid)]
            outcome.notes += [notes.Backfilled(uid) for uid in filled]
            if len(filled) < len(there):
                # Who comes before the group has taken its room, so the group is promised another time.
                self._is_stale = True
                self._promised.pop(later.room.entity, None)
                self._ends_by.pop(later.room.entity, None)

    def _comes_after(self, uid: str) -> bool:
        room = self._cluster.later.room
        place = self._pending.order.find_place(self._cluster.pods[uid])
        return room is not None and place > room.place

    def _look_for_first(self, now: float) -> Generator[None, None, None]:
        """Find the first group in line that can be told a time, and promise it the room; else end the promise."""
        later = self._cluster.later
        uids, is_all = self._choose_candidates(now)
        for uid in uids:
            room = yield from self._search_room(uid, now)
            if room is None:
                continue
            self._in_vain.pop(uid, None)
            self._promised.setdefault(uid, room.until)
            if room.until > self._ends_by.get(uid, -_NEVER) + _MOVED_SECONDS:
                self._ends_by[uid] = room.until
            later.put(replace(room, ends_by=self._ends_by[uid]))
            entry = self._pending.find_entry(uid)
            if entry is not None and room.until <= now:
                self._pending.help_pod_at_once(entry.pod.uid, now)
            return
        self._end_promise()
        # The groups behind those that can be told no time have their turn in the next rounds.
        self._goes_on = not is_all and (self._pause > 0 or len(self._in_vain) < _A_CHANGE)

    def _search_room(self, uid: str, now: float) -> Generator[None, None, LaterRoom | None]:
        """Find when and where a waiting group fits; None if nobody can tell, or the group changes meanwhile."""
        entry = self._pending.find_entry(uid)
        if entry is None or not isinstance(entry.entity, Entity) or not self._waits_in_vain(entry):
            return None
        entity = entry.entity
        search = self._cycle.find_later_room(entity, self._pending.order.find_place(entity))
        while (entry := self._pending.find_entry(uid)) is not None and entry.entity is entity:
            try:
                next(search)
            except StopIteration as end:
                room: LaterRoom | None = end.value
                if room is None:
                    self._in_vain[uid] = now
                return room
            yield
        self._is_stale = True
        return None

    def _choose_candidates(self, now: float) -> tuple[list[str], bool]:
        """Choose groups that were tried in vain, the first in line first; return also whether these are all.

        Those that could be told no time lately are left out, except the one that the room is promised to. No namespace
        has more than its part of a round.
        """
        find = self._pending.find_entry
        since = now - _ROUNDS_IN_VAIN * self._pause if self._pause else -_NEVER
        self._in_vain = {uid: at for uid, at in self._in_vain.items() if find(uid) and at > since}
        self._promised = {uid: at for uid, at in self._promised.items() if find(uid)}
        self._ends_by = {uid: at for uid, at in self._ends_by.items() if find(uid)}
        room = self._cluster.later.room
        promised = "" if room is None else room.entity
        waiting = [
            entry
            for entry in self._pending.list_groups()
            if self._waits_in_vain(entry)
            and (entry.uid == promised or entry.uid not in self._in_vain)
        ]
        n_of: Counter[str] = Counter()
        chosen: list[str] = []
        for entry in self._list_first(waiting, promised):
            namespace = entry.pod.namespace
            is_due = len(chosen) < _CANDIDATES and n_of[namespace] < _OF_A_NAMESPACE
            if is_due or entry.uid == promised:
                n_of[namespace] += 1
                chosen.append(entry.uid)
        return chosen, len(chosen) == len(waiting)

    def _list_first(self, waiting: list[Entry], promised: str) -> list[Entry]:
        """List in order the first groups of each namespace, and the one that the room is promised to."""

        def find_place(entry: Entry) -> Place:
            return self._pending.order.find_place(entry.entity)

        of_namespace: dict[str, list[Entry]] = {}
        for entry in waiting:
            of_namespace.setdefault(entry.pod.namespace, []).append(entry)
        first = {
            entry.uid: entry
            for entries in of_namespace.values()
            for entry in nsmallest(_OF_A_NAMESPACE, entries, find_place)
        }
        if promised:
            first |= {entry.uid: entry for entry in waiting if entry.uid == promised}
        return sorted(first.values(), key=find_place)

    def _waits_in_vain(self, entry: Entry) -> bool:
        """Whether a group was tried and its minimum found no room. Pods beyond the minimum are promised nothing."""
        entity, result = entry.entity, entry.result
        if result is None or entry.where == Where.GATED or not isinstance(entity, Entity):
            return False
        if self._pending.order.goes_alone(entity):
            # In queues the shares decide who uses what is free, not who came first.
            return False
        placed: set[str] = set()
        if result.n_placed >= result.least:
            # It may have been placed: then the binds of its minimum are under way.
            pods = self._cluster.pods
            placed = {one.uid for one in entity.members if (pod := pods.get(one.uid)) and pod.node}
        return entity.team.count_least(placed) > 0
