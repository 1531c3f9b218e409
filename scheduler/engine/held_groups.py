"""Groups that may not be tried, as something is missing or wrong: each is noted once it has been so for a moment.

The pods of a group come one after another. While they do, nobody needs to read that some are missing.
"""

from __future__ import annotations

from scheduler.api.door.decisions import Nominate, Outcome, Plan
from scheduler.api.door.notes import GroupHeld
from scheduler.disruption import group_promises
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.waiting.pending import Pending

_PATIENCE_SECONDS = 2.0
_NEVER = float("inf")


class HeldGroups:
    """What each held group waits for, and which groups are to be noted when."""

    def __init__(self, cluster: Cluster, pending: Pending) -> None:
        self._cluster, self._pending = cluster, pending
        # By the uid of the group: what was noted last.
        self._noted: dict[str, GroupHeld] = {}
        # The groups that are to be noted, with the times, in the order of the times.
        self._due: dict[str, tuple[float, GroupHeld]] = {}

    def see(self, entity: Entity, now: float) -> None:
        """Note the present state of a group."""
        uid = entity.uid
        why = str(entity.problem or entity.lacks)
        if not why:
            self.drop(uid)
            return
        held = GroupHeld(entity.key, entity.members[0].uid, why, entity.problem is not None)
        if uid in self._due:
            self._due[uid] = self._due[uid][0], held
        elif uid not in self._noted or self._noted[uid].why != why:
            self._due[uid] = now + _PATIENCE_SECONDS, held

    def drop(self, uid: str) -> None:
        """Forget a group that is not held any more, or is gone."""
        self._noted.pop(uid, None)
        self._due.pop(uid, None)

    def find_due(self) -> float:
        """Return when the next group is to be noted; infinite for none."""
        return next(iter(self._due.values()))[0] if self._due else _NEVER

    def note_due(self, now: float, outcome: Outcome) -> None:
        """Note the groups that have been held for a moment. No room is kept for them."""
        while self.find_due() <= now:
            uid = next(iter(self._due))
            _, held = self._due.pop(uid)
            self._noted[uid] = held
            outcome.notes.append(held)
            entry = self._pending.find_entry(held.uid)
            if entry is None or not isinstance(entry.entity, Entity):
                continue
            nominated = group_promises.list_nominated(self._cluster, entry.entity)
            group_promises.end_nominations(self._cluster, nominated)
            if nominated:
                ended = tuple(Nominate(uid, "") for uid in nominated)
                outcome.plans.append(Plan(entry.uid, nominates=ended))
