"""Wakes groups that wait for a change.

A group is parked with one of its pods: the one that fitted nowhere. Where its pods are unlike, a change that helps
another of them may help the group as well: that one then leaves its place to the first, or is enough without it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from scheduler.cycle.asking import Answers
from scheduler.disruption import group_promises, protectors
from scheduler.schema import preempting as p
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord
from scheduler.waiting.helping import Changed
from scheduler.waiting.pending import Pending

# A group with pods of more templates is tried after its backoff whenever it might fit.
_TEMPLATES_MAX = 8
# A group for which nothing has to be found out takes next to no time: so many of them are one piece of work.
_STRIDE = 64


class Waking:
    """Finds out which parked groups a change may help."""

    def __init__(self, cluster: Cluster, cycle: Answers, pending: Pending) -> None:
        self._cluster, self._cycle, self._pending = cluster, cycle, pending
        # Parked groups of unlike pods, by uid, with a pod of each template.
        self._unlike: dict[str, tuple[Entity, list[PodRecord]]] = {}

    def note_parked(self, entity: Entity) -> None:
        """Note that a group was parked."""
        if entity.team.template is not None:
            return
        alike = {id(pod.template): pod for pod in reversed(entity.members)}
        if len(alike) > 1:
            self._unlike[entity.uid] = entity, list(alike.values())

    def forget_all(self) -> None:
        """Forget all groups: none waits for a change."""
        self._unlike.clear()

    def help_unlike(self, changed: Changed, now: float) -> Iterator[None]:
        """Try those groups again, after their backoff, of which another pod fits on the changed rows."""
        fits: dict[Hashable, bool] = {}
        for i, (uid, (entity, pods)) in enumerate(list(self._unlike.items())):
            if i % _STRIDE == 0:
                yield
            entry = self._pending.find_entry(uid)
            if entry is None or entry.entity is not entity or entry.kind is None:
                del self._unlike[uid]
                continue
            is_helped = len(pods) > _TEMPLATES_MAX
            for pod in () if is_helped else pods:
                is_ruled_out = changed.find_barriers(pod.template) is not None
                if is_ruled_out and self._cycle.asks_all(pod):
                    # Amounts alone rule it out, which takes next to no time.
                    continue
                kind = self._cycle.find_kind(pod)
                if kind == entry.kind:
                    # The usual look at kinds finds it.
                    continue
                if kind not in fits:
                    fits[kind] = self._cycle.find_barriers(pod, changed.rows) is None
                    yield
                is_helped |= fits[kind]
            if is_helped and self._pending.is_parked(uid) and not self.is_hopeless(entity, changed):
                self._help(uid, now)

    def help_to_take(self, changed: Changed, now: float) -> Iterator[None]:
        """Try those groups again, after their backoff, that could make room: more is free beside possible victims."""
        lowest = protectors.find_lowest_priority(self._cluster, changed.rows)
        groups: dict[int, list[Entity]] = {}
        if lowest == p.NO_PRIORITY:
            return
        for entry in self._pending.list_groups():
            one = entry.entity
            if isinstance(one, Entity) and protectors.outranks(one.priority, lowest):
                groups.setdefault(one.priority, []).append(one)
        for _, alike in sorted(groups.items(), reverse=True):
            for at in range(0, len(alike), _STRIDE):
                yield
                some = [one for one in alike[at : at + _STRIDE] if self._may_take(one)]
                for one in self._cycle.list_takers(some, changed.rows) if some else ():
                    self._pending.help_pod_later(one.uid, now)

    def _may_take(self, entity: Entity) -> bool:
        """Whether a group may make room: it waits for a change, and none of its pods is nominated."""
        is_parked = self._pending.is_parked(entity.uid)
        return is_parked and not group_promises.has_nominated(self._cluster, entity)

    def _help(self, uid: str, now: float) -> None:
        """Try a group again after its backoff; at once if others leave room for it meanwhile."""
        room = self._cluster.later.room
        if room is not None and room.entity == uid:
            self._pending.help_pod_at_once(uid, now)
        else:
            self._pending.help_pod(uid, now)

    def is_hopeless(self, entity: AnyEntity, changed: Changed) -> bool:
        """Whether a group need not be tried after a change: too few of its pods could fit, or could make room.

        While pods leave for a group, only a change elsewhere is of use to it. By kube-scheduler's rules none is.
        """
        if not isinstance(entity, Entity):
            return False
        if not group_promises.awaits_victims(self._cluster, entity):
            return not self._cycle.could_place_group(entity)
        entry = self._pending.find_entry(entity.uid)
        is_kube = entry is not None and entry.result is not None and bool(entry.result.leaves)
        if is_kube or changed.rows is None:
            return True
        find_node, find_row = self._cluster.nominations.find_node, self._cluster.nodes.find_row
        own = {find_row(find_node(pod.uid)) for pod in entity.members}
        return own.issuperset(changed.rows.tolist())
