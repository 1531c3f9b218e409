"""Takes over what no object says: what an earlier leader knew, and what another engine knew that this engine replaces."""

from __future__ import annotations

from scheduler.api.door import events
from scheduler.state.cluster import Cluster
from scheduler.state.later import LaterRoom
from scheduler.state.pods import Life
from scheduler.waiting.pending import Pending

Knowledge = (
    events.DemandRecalled
    | events.DemandKnown
    | events.PodAssumed
    | events.PodNominated
    | events.PodGoing
    | events.PromisedLater
)
KINDS: tuple[type[Knowledge], ...] = (
    events.DemandRecalled,
    events.DemandKnown,
    events.PodAssumed,
    events.PodNominated,
    events.PodGoing,
    events.PromisedLater,
)


def restore(cluster: Cluster, pending: Pending, event: Knowledge, now: float) -> None:
    """Take over what an event says. Pods that are gone or have a node meanwhile are left as they are."""
    match event:
        case events.DemandRecalled():
            cluster.demand.recall(event)
        case events.DemandKnown(demand):
            cluster.demand.restore(demand)
        case events.PodAssumed(uid, node, slots, given):
            if _is_pending(cluster, uid):
                cluster.assume(uid, node, slots, given)
                pending.take_pod(uid, now)
        case events.PodNominated(uid, node, cards):
            if _is_pending(cluster, uid):
                cluster.nominations.put(uid, node, cluster.pods[uid].priority, cards)
        case events.PodGoing(uid, makes_room_for):
            if uid in cluster.pods:
                cluster.nominations.send_away(uid, makes_room_for)
        case events.PromisedLater():
            _promise(cluster, pending, event)


def _promise(cluster: Cluster, pending: Pending, event: events.PromisedLater) -> None:
    """Promise a group the room again that it was promised for later, if it still waits."""
    entry = pending.find_entry(event.entity)
    if entry is not None:
        place = pending.order.find_place(entry.entity)
        doubted = frozenset(event.doubted)
        room = LaterRoom(event.entity, place, event.until, event.on, doubted, event.domain)
        cluster.later.put(room)


def _is_pending(cluster: Cluster, uid: str) -> bool:
    pod = cluster.pods.get(uid)
    return pod is not None and pod.life == Life.PENDING
