"""By when a group fits as pods end, or why no room is promised to it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from scheduler.api import times
from scheduler.disruption.group_promises import has_nominated
from scheduler.disruption.horizon import LONGEST_SECONDS
from scheduler.plugins import words
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.later import LaterRoom, Place
from scheduler.telling.explained.scene import Scene

Json = dict[str, Any]
_SETTING = "`groups.promisedPercent`"


class Cause(StrEnum):
    """Why a group is promised no room for later."""

    KUBE = "kube-scheduler"
    LEAVING = "leaving"
    NODES = "nodes"
    TOO_LATE = "too late"
    UNKNOWN = "unknown"
    NEVER = "never"


def describe_later(scene: Scene, entity: Entity, *, is_exact: bool) -> Json:
    """Describe when and where a group fits by what pods say of their end, or why no room is promised for then.

    ``is_exact``: it is placed as kube-scheduler does.
    """
    place = scene.pending.order.find_place(entity)
    room = _find_room(scene, entity, place, is_bounded=True)
    if room is None:
        cause, text = _explain_no_room(scene, entity, is_exact=is_exact)
        return {"later": None, "noLater": {"cause": str(cause), "text": text}}
    order, waiting = scene.pending.order, scene.pending.list_groups()
    before = [one.entity for one in waiting if order.find_place(one.entity) < place]
    before.sort(key=order.find_place)
    label, values = room.domain
    later = {
        "at": times.write_time(room.until),
        "domain": {"label": label, "values": list(values)} if label else None,
        "nodes": sorted(room.on),
        "ahead": [str(one.key) for one in before if isinstance(one, Entity)],
    }
    return {"later": later, "noLater": None}


def _find_room(scene: Scene, entity: Entity, place: Place, *, is_bounded: bool) -> LaterRoom | None:
    """Find when and where a group fits; ``is_bounded``: only room that may be promised."""
    search = scene.cycle.find_later_room(entity, place, is_bounded=is_bounded)
    while True:
        try:
            next(search)
        except StopIteration as end:
            room: LaterRoom | None = end.value
            return room


def _explain_no_room(scene: Scene, entity: Entity, *, is_exact: bool) -> tuple[Cause, str]:
    """Explain why a group is promised no room; each cause is tried."""
    cluster = scene.asking.cluster
    if is_exact:
        return (
            Cause.KUBE,
            "Its profile places it as kube-scheduler does, which promises no room for later.",
        )
    if has_nominated(cluster, entity):
        return Cause.LEAVING, "Pods are leaving to make room for it."
    place = scene.pending.order.find_place(entity)
    room = _find_room(scene, entity, place, is_bounded=False)
    if room is not None:
        return _explain_limit(cluster, room)
    if _fits_without_pods(scene, entity):
        return Cause.UNKNOWN, "It is unknown when it fits: too few pods say how long they run."
    return Cause.NEVER, "It would not fit even if all pods on the nodes had ended."


def _explain_limit(cluster: Cluster, room: LaterRoom) -> tuple[Cause, str]:
    """Explain which limit the room exceeds where a group fits first."""
    on = words.count_nouns(len(room.on), "node")
    fits = f"By what pods say it fits by {times.write_time(room.until)}, on {on}"
    if room.until > cluster.now + LONGEST_SECONDS:
        return (
            Cause.TOO_LATE,
            f"{fits}. That is later than in a day, and no room is promised for so late a time.",
        )
    n = len(cluster.nodes.rows)
    return Cause.NODES, f"{fits} of {n}. No group is promised so many nodes ({_SETTING})."


def _fits_without_pods(scene: Scene, entity: Entity) -> bool:
    """Whether a group fits once all pods on nodes have ended."""
    cluster = scene.asking.cluster
    with cluster.later.set_aside(), cluster.trial() as trial:
        trial.take_away(
            *(uid for name in cluster.nodes.rows for uid in cluster.pods_on.get(name, ()))
        )
        return bool(scene.cycle.place_group(entity).binds)
