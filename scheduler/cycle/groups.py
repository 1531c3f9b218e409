"""Decides for a group: it is placed whole, or room is made for all of it, or it waits."""

from __future__ import annotations

from collections.abc import Callable, Generator

import msgspec

from scheduler.api.door.decisions import Attempt, Hold, Nominate, Plan
from scheduler.cycle.calls import Nowhere
from scheduler.disruption import attempts, clearing, group_promises
from scheduler.disruption.cleared import Cleared
from scheduler.disruption.clearing import Clearing
from scheduler.disruption.group_units import make_lone_entity, preempts
from scheduler.disruption.horizon import Horizon
from scheduler.disruption.pieces import Pieces, Unfinished
from scheduler.placing.groups import kubernetes
from scheduler.placing.groups.choices import PlacePods
from scheduler.placing.groups.placer import Placer
from scheduler.plugins import barriers
from scheduler.plugins.claims.grouping import list_freed_of_group
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, require_minimum
from scheduler.state.later import LaterRoom, Place
from scheduler.state.pods import PodRecord

# What kube-scheduler's plugins say of a group that is not placed: of its claims, if preemption did not help, and of
# preemption.
_CLAIMS = "deallocation and deletion of ResourceClaims completed"
_HEAD = "pod group preemption: "
_ONGOING = "ongoing preemption on nominated nodes"
# Whether the profile of a pod lets it take the place of others.
MayPreempt = Callable[[PodRecord], bool]


class GroupCycle:
    """Places groups, and makes room for them."""

    def __init__(
        self,
        cluster: Cluster,
        placer: Placer,
        clearing: Clearing,
        horizon: Horizon,
        may_preempt: MayPreempt,
    ) -> None:
        self._cluster, self._placer, self._clearing = cluster, placer, clearing
        self._pieces = Pieces(cluster, clearing)
        self._may_preempt = may_preempt
        self._horizon = horizon

    def decide(self, entity: Entity, place_pods: PlacePods, try_pods: PlacePods) -> Plan | None:
        """Decide for a group; None if the search for room goes on when the group is decided about again.

        Args:
            entity: the group.
            place_pods: decides for pods one by one, and makes no room.
            try_pods: the same in a search for room, where nobody reads why a pod fits nowhere.
        """
        pods, nominations = self._cluster.pods, self._cluster.nominations
        waiting = self._pieces.begin_piece(entity)
        before = group_promises.list_nominated(self._cluster, entity)
        self._cluster.pauses.take()
        plan = self._decide(entity, place_pods, try_pods, waiting)
        if plan is None:
            return None
        plan = self._free_claims(entity, plan)
        if not before:
            return plan
        told = {*(one.uid for one in plan.binds), *(one.uid for one in plan.nominates)}
        ended = [
            Nominate(uid, "")
            for uid in before
            if not nominations.find_node(uid) and not pods[uid].node and uid not in told
        ]
        return msgspec.structs.replace(plan, nominates=(*plan.nominates, *ended))

    def _free_claims(self, entity: Entity, plan: Plan) -> Plan:
        """Let a claim lose its devices that keeps a group from all nodes which would take it."""
        hold = plan.hold
        if plan.binds or hold is None or not hold.barriers.reasons & barriers.ELSEWHERE.reasons:
            return plan
        return msgspec.structs.replace(
            plan, frees=list_freed_of_group(entity.members, self._cluster)
        )

    def _decide(
        self, entity: Entity, place_pods: PlacePods, try_pods: PlacePods, waiting: Plan | None
    ) -> Plan | None:
        """Decide for a group; ``waiting`` says why it fits nowhere, if that is known."""
        plan = waiting or self._place(entity, place_pods)
        if plan.group is not None and plan.group.leaves:
            return self._decide_as_kube(entity, place_pods, plan)
        if plan.binds or plan.hold is None:
            return plan
        if group_promises.awaits_victims(self._cluster, entity):
            return plan
        cleared = None
        self._cluster.pauses.take()
        needed = self._find_needed(entity)
        if needed is not None:
            places = self._placer.list_places(entity)
            found = self._pieces.go_on(
                entity, plan, places, lambda rows: self._placer.place(needed, try_pods, rows)
            )
            if isinstance(found, Unfinished):
                return None
            cleared = found
        return self._promise(entity, plan, cleared)

    def find_later_room(
        self, entity: Entity, place: Place, place_pods: PlacePods, *, is_bounded: bool
    ) -> Generator[None, None, LaterRoom | None]:
        """Find when and where a group fits, piece by piece; None if nothing that is said lets it fit.

        ``is_bounded``: only room that may be promised. A group that is placed as kube-scheduler does is told nothing, nor is
        one that pods leave for already.
        """
        is_nominated = group_promises.has_nominated(self._cluster, entity)
        if self._placer.is_exact(entity) or is_nominated:
            return None
        return (
            yield from self._horizon.find_room(
                entity,
                place,
                lambda one: self._placer.place(one, place_pods),
                is_bounded=is_bounded,
            )
        )

    def has_lost_pods(self, entity: Entity) -> bool:
        """Whether a pod that a group counts as there is sent away by now; the group has to be formed anew."""
        going = self._cluster.nominations.going
        return bool(going) and any(
            pod.uid in going for leaf in entity.team.list_leaves() for pod in leaf.there
        )

    def list_evictable(self, entity: Entity) -> list[PodRecord]:
        """List the pods on nodes that may go for a group; none if it takes nobody's place."""
        return self._clearing.list_evictable(entity) if self._find_needed(entity) else []

    def _place(self, entity: Entity, place_pods: PlacePods) -> Plan:
        plan = self._placer.place(entity, place_pods)
        group_promises.end_nominations(self._cluster, [bind.uid for bind in plan.binds])
        return plan

    def _decide_as_kube(self, entity: Entity, place_pods: PlacePods, plan: Plan) -> Plan:
        """Decide as kube-scheduler does: members that are left over are tried again at once, and room is made for them."""
        before = None
        while plan.binds and plan.hold is not None:
            before = plan if before is None else kubernetes.add_attempt(before, plan)
            plan = self._place(entity, place_pods)
        if not plan.binds:
            plan = self._make_room_as_kube(entity, place_pods, plan)
        return plan if before is None else kubernetes.add_attempt(before, plan)

    def _make_room_as_kube(self, entity: Entity, place_pods: PlacePods, plan: Plan) -> Plan:
        """Decide whether room is made for a group that is not placed, and say so in kube-scheduler's words."""
        group = plan.group
        if group is None or any(leaf.is_error for leaf in group.leaves):
            return self._promise(entity, plan, None)
        if not all(map(self._may_preempt, entity.members)):
            return self._promise(entity, plan, None)
        if self._preempts(entity) and group_promises.awaits_victims(self._cluster, entity):
            group = kubernetes.add_preemption(group, f"{_HEAD}{_ONGOING}", is_promised=True)
            return msgspec.structs.replace(plan, group=group)
        found: Cleared | str = attempts.NEVER
        if self._preempts(entity):
            found = self._clearing.find_room_as_kube(
                entity, lambda rows: self._placer.place(entity, place_pods, rows)
            )
        if isinstance(found, str):
            is_plain = entity.team.where is None and not entity.team.teams
            head = f"{_CLAIMS}, {_HEAD}" if is_plain and found != clearing.NOBODY else _HEAD
            group = kubernetes.add_preemption(group, f"{head}{found}", is_promised=False)
            return self._promise(entity, msgspec.structs.replace(plan, group=group), None)
        n = sum(len(unit.pods) for unit in found.units)
        words = f"{_HEAD}found a placement for podgroup, preempting {n} victims"
        group = kubernetes.add_preemption(group, words, is_promised=True)
        return self._promise(entity, msgspec.structs.replace(plan, group=group), found)

    def _promise(self, entity: Entity, plan: Plan, cleared: Cleared | None) -> Plan:
        """Promise a group the room that was found for it; without any it loses what was promised before."""
        if cleared is None or plan.hold is None:
            members = [pod.uid for pod in entity.members]
            nominates = tuple(group_promises.end_nominations(self._cluster, members))
            return msgspec.structs.replace(plan, nominates=nominates)
        evicts, nominates = group_promises.promise_room(
            self._cluster,
            entity,
            cleared,
            plan.hold.uid,
            is_exact=plan.group is not None and bool(plan.group.leaves),
        )
        return msgspec.structs.replace(plan, evicts=evicts, nominates=nominates)

    def make_room_for_pod(
        self, pod: PodRecord, nodes: list[c.Flags], place_pods: PlacePods, found: Nowhere
    ) -> Plan | None:
        """Find room for a pod by itself where whole groups have to go; None if there is none.

        The usual search for victims takes no pod that its group needs. ``nodes`` are those that are tried, each [N].
        """
        entity = make_lone_entity(pod)

        def place(rows: c.Flags) -> Plan:
            return Plan(pod.uid, tuple(place_pods([pod], rows).binds))

        cleared = self._clearing.find_room_for_pod(entity, nodes, place)
        if cleared is None:
            return None
        evicts, nominates = group_promises.promise_room(
            self._cluster, entity, cleared, pod.uid, is_exact=True
        )
        n_victims = sum(len(unit.pods) for unit in cleared.units)
        attempt = Attempt(cleared.binds[0].node, n_victims)
        hold = Hold(pod.uid, found.why, attempt=attempt, barriers=found.barriers)
        return Plan(pod.uid, (), evicts, nominates, hold)

    def _find_needed(self, entity: Entity) -> Entity | None:
        """Find what room is made for, with what has to have a node at once; None if the group takes nobody's place.

        Less than what it lacks is of no use to a group that goes as a whole if it stays below its minimum.
        """
        if not self._preempts(entity):
            return None
        if not self._cluster.groups.shortages.goes_when_short(entity.key, entity.definition):
            return entity
        needed = require_minimum(entity)
        return needed if needed.team.is_complete else None

    def _preempts(self, entity: Entity) -> bool:
        """Whether a group may take the place of others."""
        return preempts(entity, self._may_preempt)
