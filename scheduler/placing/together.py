"""Places the members of an entity in one trial, which is kept or undone as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from scheduler.api.door.decisions import Outcome, Plan
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import Life, PodRecord


def split_entities(batch: Iterable[AnyEntity]) -> Iterator[list[PodRecord] | Entity]:
    """Yield single pods that follow each other as one list, and each entity of several pods by itself."""
    pods: list[PodRecord] = []
    for one in batch:
        if not isinstance(one, Entity):
            pods.append(one)
            continue
        if pods:
            yield pods
            pods = []
        yield one
    if pods:
        yield pods


# Decides for each of these pods by itself, among some rows.
PlacePods = Callable[[list[PodRecord], c.Flags], Outcome]


def place_together(cluster: Cluster, entity: Entity, place_pods: PlacePods) -> Plan:
    """Place all members that fit, or none if fewer members would have a node than must have one at once.

    A member whose bind is under way has a node. The plan's hold is that of the first member that does not fit.
    """
    members = [cluster.pods[pod.uid] for pod in entity.members]
    waiting = [pod for pod in members if pod.life == Life.PENDING]
    among = cluster.nodes.flag_rows(*entity.domain) if entity.domain else ANYWHERE
    with cluster.trial() as trial:
        tried = place_pods(waiting, among)
        binds, holds = tried.binds, tried.holds
        if len(members) - len(waiting) + len(binds) >= entity.minimum:
            trial.commit()
        else:
            binds = []
    return Plan(entity.uid, tuple(binds), hold=holds[0] if holds else None)
