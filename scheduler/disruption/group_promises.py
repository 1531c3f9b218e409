"""The room that is promised to a group while its victims leave, or until a bind that failed is tried again."""

from __future__ import annotations

from scheduler.api.door.decisions import Evict, Nominate, Why
from scheduler.disruption import protectors
from scheduler.disruption.cleared import Cleared
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord


def awaits_victims(cluster: Cluster, entity: AnyEntity) -> bool:
    """Whether a pod is still leaving that was sent away for a pod or group."""
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


def has_nominated(cluster: Cluster, entity: Entity) -> bool:
    """Whether a pod of a group is nominated."""
    find_node = cluster.nominations.find_node
    return bool(cluster.nominations) and any(find_node(pod.uid) for pod in entity.members)


def promise_room(
    cluster: Cluster, entity: Entity, cleared: Cleared, uid: str, *, is_exact: bool
) -> tuple[tuple[Evict, ...], tuple[Nominate, ...]]:
    """Send the victims away for the pod that stands for a group, and promise the group the room that they leave.

    ``is_exact``: as kube-scheduler does.
    """
    nominations = cluster.nominations
    node_of = {bind.uid: bind.node for bind in cleared.binds}
    go_through = cluster.pauses.go_through
    units = tuple(tuple(pod.uid for pod in unit.pods) for unit in go_through(cleared.units))
    # Who is being evicted for another pod leaves in any case. By kube-scheduler's rules it is deleted once more.
    going = nominations.going
    asked = [
        tuple(uid for uid in unit if is_exact or uid not in going) for unit in go_through(units)
    ]
    asked = [unit for unit in asked if unit]
    # Who only gets another node is not written to have none: until the next write nothing would be promised.
    rest = [pod.uid for pod in entity.members if pod.uid not in node_of]
    nominates = end_nominations(cluster, rest)
    nominations.send_away((victim for unit in units for victim in unit), uid)
    for node in go_through(dict.fromkeys(node_of.values())):
        there = nominations.list_on(node).items()
        later = [
            other for other, priority in there if protectors.outranks(entity.priority, priority)
        ]
        nominates += end_nominations(cluster, later)
    for bind in go_through(cleared.binds):
        nominations.drop(bind.uid)
        nominations.put(bind.uid, bind.node, entity.priority, bind.devices)
        nominates.append(Nominate(bind.uid, bind.node))
    node = node_of.get(uid, cleared.binds[0].node)
    definition = entity.definition
    group = ""
    if definition is not None:
        group = definition.uid or entity.key.name
    # Who goes although a budget forbids it has to be deleted, as kube-scheduler does.
    asks = not is_exact and not cleared.cost.budgets
    evicts = (Evict(uid, node, tuple(asked), Why.PREEMPTED, group, asks),) if asked else ()
    return evicts, tuple(nominates)


def keep_room(cluster: Cluster, pod: PodRecord) -> None:
    """Promise a pod of a group the room that it had until its bind failed, while others of its group have nodes.

    Without this pod they may be too few. The promise ends when the group is tried again.

    Args:
        cluster: the cluster, which has forgotten the bind.
        pod: the pod with what it had.
    """
    key = cluster.groups.find_group(pod.uid)
    if key is None:
        return
    members = cluster.groups.list_pods(cluster.groups.find_root(key))
    if any(one.node and not one.deleting for one in members):
        cluster.nominations.put(pod.uid, pod.node, pod.priority, pod.claim)
    else:
        end_nominations(cluster, [one.uid for one in members])


def list_nominated(cluster: Cluster, entity: Entity) -> list[str]:
    """List the pods of a group that are nominated, or of which this is written: it stays so if a bind fails."""
    pods, nominations = cluster.pods, cluster.nominations
    uids = [pod.uid for pod in entity.members]
    return [uid for uid in uids if nominations.find_node(uid) or pods[uid].nominated]


def end_nominations(cluster: Cluster, uids: list[str]) -> list[Nominate]:
    """End the nominations of pods; return what has to be written."""
    nominations = cluster.nominations
    ended = [uid for uid in uids if nominations.find_node(uid)]
    for uid in ended:
        nominations.drop(uid)
    return [Nominate(uid, "") for uid in ended]
