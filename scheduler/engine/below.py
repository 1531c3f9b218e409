"""Running groups that have fewer pods on nodes than their minimum: what is left of them is of no use to anybody.

The pods that are missing usually come again, and join the group. If they have not done so after a grace period, a group
goes as a whole, so that its controller can start it anew: a group of KAI always, another one only if it asks for that
(``evenkeel.dev/on-failure: restart``), and if all of it would then fit somewhere. A group stays while room is promised to
the pods that it lacks: others have gone for them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from scheduler.api.door.decisions import Evict, Outcome, Plan, Why
from scheduler.api.groups.definitions import GroupKey
from scheduler.cycle.schedule import Cycle
from scheduler.disruption import group_promises
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, make_uid, require_minimum
from scheduler.state.pods import Life, PodRecord
from scheduler.waiting.pending import Pending

_NEVER = float("inf")
# The grace period of a group that names none.
_GRACE_SECONDS = 60.0
# So many groups are looked at in one call: it may be tried whether all of a group would fit.
_GROUPS_A_CALL = 8


class BelowMinimum:
    """Since when each such group has been below its minimum."""

    def __init__(
        self,
        cluster: Cluster,
        cycle: Cycle,
        pending: Pending,
        *,
        is_on: bool,
        is_left: Callable[[GroupKey], bool],
    ) -> None:
        """Unless ``is_on``, no group is sent away, and none that ``is_left`` to another scheduler."""
        self._is_on, self._is_left = is_on, is_left
        self._cluster, self._cycle, self._pending = cluster, cycle, pending
        # The time from which the grace period of a group counts.
        self._since: dict[GroupKey, float] = {}
        # When the first grace period ends; None if it has to be found anew.
        self._due: float | None = None

    def follow(self, now: float) -> None:
        """Note which groups are below their minimum now."""
        below = self._cluster.groups.shortages.below
        if self._is_on and (below or self._since):
            since = self._since
            self._since = {key: since.get(key, now) for key in below if self._has_grace(key)}
            self._due = None

    def _has_grace(self, key: GroupKey) -> bool:
        """Whether a group does not simply wait for its missing pods."""
        groups = self._cluster.groups
        return groups.shortages.goes_when_short(key, groups.find_definition(key))

    def find_due(self) -> float:
        """Return when the first grace period ends; infinite for none."""
        if self._due is None:
            ends = (at + self._find_grace(key) for key, at in self._since.items())
            self._due = min(ends, default=_NEVER)
        return self._due

    def work(self, now: float, outcome: Outcome) -> None:
        """Send those away whose grace period is over, a few with each call."""
        if self.find_due() > now:
            return
        due = (key for key, at in self._since.items() if at + self._find_grace(key) <= now)
        self._due = None
        for key in list(islice(due, _GROUPS_A_CALL)):
            # A group that stays, or of which a pod stays, has its grace period once more.
            self._since[key] = now
            pods = [pod for pod in self._list_there(key) if not pod.deleting]
            if pods and self._is_to_go(key):
                outcome.plans.append(self._send_away(key, pods))

    def _find_grace(self, key: GroupKey) -> float:
        definition = self._cluster.groups.find_definition(key)
        grace = None if definition is None else definition.grace_seconds
        return _GRACE_SECONDS if grace is None else grace

    def _list_there(self, key: GroupKey) -> list[PodRecord]:
        return [
            pod
            for _, pods in self._cluster.groups.kept.list_running(key, self._cluster.groups)
            for pod in pods
        ]

    def _is_to_go(self, key: GroupKey) -> bool:
        definition = self._cluster.groups.find_definition(key)
        if definition is None or self._is_left(key):
            return False
        entry = self._pending.find_entry(make_uid(key))
        entity = None if entry is None else entry.entity
        if isinstance(entity, Entity) and self._is_promised_enough(entity):
            return False
        if definition.grace_seconds is not None:
            return True
        if entry is None or not isinstance(entity, Entity) or entity.lacks or entity.gated:
            # Nobody makes the missing pods while the others run, or lets them in.
            return True
        pods = self._cluster.pods
        if any(pods[pod.uid].life == Life.ASSUMED for pod in entity.members):
            return False
        return entry.result is not None and self._cycle.could_start_anew(entity)

    def _is_promised_enough(self, entity: Entity) -> bool:
        """Whether pods have been sent away for the pods that a group lacks: they would have gone in vain."""
        has_room = group_promises.has_nominated(self._cluster, entity)
        has_room = has_room or group_promises.awaits_victims(self._cluster, entity)
        return has_room and require_minimum(entity).team.is_complete

    def _send_away(self, key: GroupKey, pods: list[PodRecord]) -> Plan:
        n = self._cluster.groups.shortages.below[key]
        unit = tuple(sorted(pod.uid for pod in pods))
        self._cluster.nominations.send_away(unit, "")
        said = f"{key} lacks {n} {'pod' if n == 1 else 'pods'}"
        evict = Evict("", "", (unit,), Why.BELOW_MINIMUM, said, is_asked=True)
        return Plan(make_uid(key), evicts=(evict,))
