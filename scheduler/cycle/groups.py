"""Decides for a group: it is placed whole, or room is made for all of it, or it waits."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from scheduler.api.door.decisions import Attempt, GroupResult, Hold, Plan
from scheduler.api.groups.definitions import GroupKey
from scheduler.cycle.calls import Nowhere
from scheduler.disruption import group_promises, group_units
from scheduler.disruption.clearing import Cleared, Clearing
from scheduler.placing.groups import kubernetes
from scheduler.placing.groups.attempts import PlacePods
from scheduler.placing.groups.placer import Placer
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, make_entity
from scheduler.state.pods import PodRecord

_NOBODY = "No preemption victims found for incoming preemptor"
# Whether the profile of a pod lets it take the place of others.
MayPreempt = Callable[[PodRecord], bool]


class GroupCycle:
    """Places groups, and makes room for them."""

    def __init__(
        self, cluster: Cluster, placer: Placer, clearing: Clearing, may_preempt: MayPreempt
    ) -> None:
        self._cluster, self._placer, self._clearing = cluster, placer, clearing
        self._may_preempt = may_preempt

    def decide(self, entity: Entity, place_pods: PlacePods) -> Plan:
        """Decide for a group; ``place_pods`` decides for pods one by one, and makes no room."""
        plan = self._placer.place(entity, place_pods)
        if plan.binds:
            group_promises.end_nominations(self._cluster, [bind.uid for bind in plan.binds])
            return plan
        if plan.hold is None or group_promises.awaits_victims(self._cluster, entity):
            return plan
        cleared = None
        if self._preempts(entity):
            places = self._placer.list_places(entity)
            cleared = self._clearing.find_room(
                entity, places, lambda rows: self._placer.place(entity, place_pods, rows)
            )
        uid, group = plan.hold.uid, plan.group
        if group is not None and group.status:
            plan = msgspec.structs.replace(plan, group=_add_words(group, cleared))
        if cleared is None:
            members = [pod.uid for pod in entity.members]
            nominates = tuple(group_promises.end_nominations(self._cluster, members))
            return msgspec.structs.replace(plan, nominates=nominates)
        evicts, nominates = group_promises.promise_room(
            self._cluster, entity, cleared, uid, is_exact=bool(group and group.status)
        )
        return msgspec.structs.replace(plan, evicts=evicts, nominates=nominates)

    def make_room_for_pod(
        self, pod: PodRecord, place_pods: PlacePods, found: Nowhere
    ) -> Plan | None:
        """Find room for a pod by itself where whole groups have to go; None if there is none.

        The usual search for victims takes no pod that its group needs.
        """
        places = group_units.list_nodes_of_groups(self._cluster, pod.priority)
        if not places:
            return None
        key = GroupKey("Pod", pod.namespace, pod.name)
        entity = make_entity(key, Team("", 1, (pod,), template=pod.template))

        def place(rows: c.Flags) -> Plan:
            return Plan(pod.uid, tuple(place_pods([pod], rows).binds))

        cleared = self._clearing.find_room(entity, places, place)
        if cleared is None:
            return None
        evicts, nominates = group_promises.promise_room(
            self._cluster, entity, cleared, pod.uid, is_exact=True
        )
        n_victims = sum(len(unit.pods) for unit in cleared.units)
        attempt = Attempt(cleared.binds[0].node, n_victims)
        hold = Hold(pod.uid, found.why, attempt=attempt, barriers=found.barriers)
        return Plan(pod.uid, (), evicts, nominates, hold)

    def _preempts(self, entity: Entity) -> bool:
        """Whether a group may take the place of others."""
        if entity.definition is not None and entity.definition.preempts is False:
            return False
        return all(pod.preempts and self._may_preempt(pod) for pod in entity.members)


def _add_words(result: GroupResult, cleared: Cleared | None) -> GroupResult:
    """Add to kube-scheduler's words what preemption came to."""
    if cleared is None:
        return kubernetes.add_preemption(result, _NOBODY, is_promised=False)
    n = sum(len(unit.pods) for unit in cleared.units)
    words = f"found a placement for podgroup, preempting {n} victims"
    return kubernetes.add_preemption(result, words, is_promised=True)
