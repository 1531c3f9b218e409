"""The room that is promised to a group while its victims leave."""

from __future__ import annotations

from scheduler.api.door.decisions import Evict, Nominate, Why
from scheduler.disruption import protectors
from scheduler.disruption.clearing import Cleared
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity


def awaits_victims(cluster: Cluster, entity: Entity) -> bool:
    """Whether a pod is still leaving that was sent away for a group."""
    nominations = cluster.nominations
    if not nominations:
        return False
    uids = {pod.uid for pod in entity.members}
    if any(room in uids and uid in cluster.pods for uid, room in nominations.going.items()):
        return True
    nodes = {nominations.find_node(uid) for uid in uids}
    return any(
        pod.deleting and protectors.outranks(entity.priority, pod.priority)
        for node in nodes
        for pod in cluster.pods_on.get(node, {}).values()
    )


def promise_room(
    cluster: Cluster, entity: Entity, cleared: Cleared, uid: str
) -> tuple[tuple[Evict, ...], tuple[Nominate, ...]]:
    """Send the victims away for the pod that stands for a group, and promise the group the room that they leave."""
    nominations = cluster.nominations
    node_of = {bind.uid: bind.node for bind in cleared.binds}
    units = tuple(tuple(pod.uid for pod in unit) for unit in cleared.units)
    nominates = end_nominations(cluster, [pod.uid for pod in entity.members])
    for victim in (victim for unit in units for victim in unit):
        nominations.send_away(victim, uid)
    for node in dict.fromkeys(node_of.values()):
        there = nominations.list_on(node).items()
        later = [
            other for other, priority in there if protectors.outranks(entity.priority, priority)
        ]
        nominates += end_nominations(cluster, later)
    for bind in cleared.binds:
        nominations.put(bind.uid, bind.node, entity.priority, bind.slots)
        nominates.append(Nominate(bind.uid, bind.node))
    node = node_of.get(uid, cleared.binds[0].node)
    evicts = (Evict(uid, node, units, Why.PREEMPTED),) if units else ()
    return evicts, tuple(nominates)


def end_nominations(cluster: Cluster, uids: list[str]) -> list[Nominate]:
    """End the nominations of pods; return what has to be written."""
    nominations = cluster.nominations
    ended = [uid for uid in uids if nominations.find_node(uid)]
    for uid in ended:
        nominations.drop(uid)
    return [Nominate(uid, "") for uid in ended]
