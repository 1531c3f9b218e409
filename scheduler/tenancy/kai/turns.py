"""What of a pod or group is tried in one turn of its queue: its minimum at once, then the others one by one.

Source: KAI-Scheduler (2026-03), ``api/podgroup_info/allocation_info.go`` and ``plugins/elastic``.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity, Team, make_entity
from scheduler.state.pods import Life, PodRecord

# A group below its minimum comes before one that has just its minimum, and that one before all others.
BELOW, JUST, ABOVE = 0, 1, 2


def list_next(cluster: Cluster, entity: AnyEntity) -> list[PodRecord]:
    """List the pods that are tried in the next turn."""
    if not isinstance(entity, Entity):
        return [entity]
    missing: list[PodRecord] = []
    others: list[PodRecord] = []
    for leaf in entity.team.list_leaves():
        waiting = [pod for pod in leaf.pods if _waits(cluster, pod)]
        n = max(0, leaf.n_missing - (len(leaf.pods) - len(waiting)))
        missing += waiting[:n]
        others += waiting[n:]
    return missing or others[:1]


def cut_turn(cluster: Cluster, entity: AnyEntity) -> AnyEntity:
    """Cut what is not tried in the next turn off a group."""
    if not isinstance(entity, Entity):
        return entity
    tried = {pod.uid for pod in list_next(cluster, entity)}
    tried.update(pod.uid for pod in entity.members if not _waits(cluster, pod))
    if len(tried) == len(entity.members):
        return entity
    team = _cut(entity.team, tried)
    return make_entity(
        entity.key,
        team,
        definition=entity.definition,
        lacks=entity.lacks,
        problem=entity.problem,
        n_short=entity.n_short,
    )


def _cut(team: Team, kept: Container[str]) -> Team:
    if team.teams:
        return replace(team, teams=tuple(_cut(one, kept) for one in team.teams))
    places = [i for i, pod in enumerate(team.pods) if pod.uid in kept]
    ranks = tuple(team.ranks[i] for i in places) if team.ranks else ()
    return replace(team, pods=tuple(team.pods[i] for i in places), ranks=ranks)


def find_fill(cluster: Cluster, entity: AnyEntity) -> int:
    """Find whether a group is below its minimum, has just that, or more; a pod by itself is below it."""
    if not isinstance(entity, Entity):
        return BELOW
    found = JUST
    for leaf in entity.team.list_leaves():
        n_there = len(leaf.there) + sum(not _waits(cluster, pod) for pod in leaf.pods)
        if n_there < leaf.minimum:
            return BELOW
        if n_there > leaf.minimum:
            found = ABOVE
    return found


def _waits(cluster: Cluster, pod: PodRecord) -> bool:
    known = cluster.pods.get(pod.uid)
    return known is not None and known.life == Life.PENDING
