"""Takes over what no object says: what an earlier leader knew, and what another engine knew that this engine replaces."""

from __future__ import annotations

from scheduler.api.door import events
from scheduler.api.groups.definitions import Membership
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
    | events.PodRefused
    | events.PromisedLater
    | events.MemberSucceeded
)
KINDS: tuple[type[Knowledge], ...] = (
    events.DemandRecalled,
    events.DemandKnown,
    events.PodAssumed,
    events.PodNominated,
    events.PodGoing,
    events.PodRefused,
    events.PromisedLater,
    events.MemberSucceeded,
)


def restore(cluster: Cluster, pending: Pending, event: Knowledge, now: float) -> None:
    """Take over what an event says. Pods that are gone or have a node meanwhile are left as they are."""
    match event:
        case events.DemandRecalled():
            cluster.demand.recall(event)
        case events.DemandKnown(demand):
            cluster.demand.restore(demand)
        case events.PodAssumed() | events.PodNominated():
            _restore_decision(cluster, pending, event, now)
        case events.PodGoing(uid, makes_room_for):
            if uid in cluster.pods:
                cluster.nominations.send_away([uid], makes_room_for)
        case events.PodRefused(uid, until):
            if uid in cluster.pods:
                cluster.nominations.note_refused(uid, until)
        case events.PromisedLater():
            _promise(cluster, pending, event)
        case events.MemberSucceeded(uid, name, group, part, index, scheduler, is_deleted):
            says = Membership(group, part, index, scheduler=scheduler)
            cluster.groups.note_success(uid, name, says, is_deleted=is_deleted)


def _restore_decision(
    cluster: Cluster, pending: Pending, event: events.PodAssumed | events.PodNominated, now: float
) -> None:
    """Take over what was decided for a pod, if it still waits."""
    uid = event.uid
    pod = cluster.pods.get(uid)
    if pod is None or pod.life != Life.PENDING:
        return
    if isinstance(event, events.PodNominated):
        cluster.nominations.put(uid, event.node, pod.priority, event.cards)
    else:
        cluster.assume(uid, event.node, event.devices, event.given)
        cluster.groups.note_assumed([uid])
        pending.take_pod(uid, now)


def _promise(cluster: Cluster, pending: Pending, event: events.PromisedLater) -> None:
    """Promise a group the room again that it was promised for later, if it still waits."""
    entry = pending.find_entry(event.entity)
    if entry is not None:
        place = pending.order.find_place(entry.entity)
        doubted = frozenset(event.doubted)
        room = LaterRoom(
            event.entity, place, event.until, event.on, doubted, event.domain, event.ends_by
        )
        cluster.later.put(room)
