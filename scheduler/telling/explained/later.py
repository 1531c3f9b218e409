"""By when a group fits as pods end, or why no room is promised to it."""

from __future__ import annotations

from bisect import bisect_left
from enum import StrEnum
from math import isfinite
from typing import Any, NamedTuple

from scheduler.api import times
from scheduler.api.door.decisions import Plan
from scheduler.disruption.horizon import LONGEST_SECONDS, list_least
from scheduler.plugins import words
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.later import LaterRoom
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


class _End(NamedTuple):
    """When a pod will have ended."""

    at: float
    uid: str


def describe_later(scene: Scene, entity: Entity, *, is_exact: bool) -> Json:
    """Describe when and where a group fits by what pods say of their end, or why no room is promised for then.

    ``is_exact``: it is placed as kube-scheduler does.
    """
    place = scene.pending.order.find_place(entity)
    search = scene.cycle.find_later_room(entity, place)
    while True:
        try:
            next(search)
        except StopIteration as end:
            room: LaterRoom | None = end.value
            break
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


def _explain_no_room(scene: Scene, entity: Entity, *, is_exact: bool) -> tuple[Cause, str]:
    """Explain why a group is promised no room; each cause is tried."""
    cluster = scene.asking.cluster
    if is_exact:
        return (
            Cause.KUBE,
            "Its profile places it as kube-scheduler does, which promises no room for later.",
        )
    if any(cluster.nominations.find_node(pod.uid) for pod in entity.members):
        return Cause.LEAVING, "Pods are leaving to make room for it."
    ends = _list_ends(cluster)
    said = [one for one in ends if isfinite(one.at)]
    if _place_without(scene, entity, said).binds:
        n = bisect_left(
            range(len(said)),
            True,
            key=lambda n: bool(_place_without(scene, entity, said[:n]).binds),
        )
        return _explain_limit(cluster, said[:n], _place_without(scene, entity, said[:n]), entity)
    if _place_without(scene, entity, ends).binds:
        return Cause.UNKNOWN, "It is unknown when it fits: too few pods say how long they run."
    return Cause.NEVER, "It would not fit even if all pods on the nodes had ended."


def _explain_limit(
    cluster: Cluster, ended: list[_End], plan: Plan, entity: Entity
) -> tuple[Cause, str]:
    """Explain which limit a group exceeds that fits once some pods have ended."""
    at = ended[-1].at if ended else cluster.now
    nodes = {bind.node for bind in list_least(entity, plan)}
    on = words.count_nouns(len(nodes), "node")
    fits = f"By what pods say it fits by {times.write_time(at)}, on {on}"
    if at > cluster.now + LONGEST_SECONDS:
        return (
            Cause.TOO_LATE,
            f"{fits}. That is later than in a day, and no room is promised for so late a time.",
        )
    n = len(cluster.nodes.rows)
    return Cause.NODES, f"{fits} of {n}. No group is promised so many nodes ({_SETTING})."


def _list_ends(cluster: Cluster) -> list[_End]:
    """List the ends of all pods on nodes, the earliest first."""
    going = cluster.nominations.going
    pods = [
        pod for name in sorted(cluster.nodes.rows) for pod in cluster.pods_on.get(name, {}).values()
    ]
    return sorted(
        _End(cluster.ends.find_end(pod, cluster.now, is_leaving=pod.uid in going), pod.uid)
        for pod in pods
    )


def _place_without(scene: Scene, entity: Entity, ended: list[_End]) -> Plan:
    """Place a group in a trial once some pods have ended."""
    cluster = scene.asking.cluster
    with cluster.later.set_aside(), cluster.trial() as trial:
        trial.take_away(*(one.uid for one in ended))
        return scene.cycle.place_group(entity)
