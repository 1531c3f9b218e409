"""Reads a team as KAI reads a group, and lists the sets of nodes that KAI tries for it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from scheduler.api import names
from scheduler.api.groups.definitions import Rule
from scheduler.placing.groups import kai
from scheduler.placing.groups.choices import Choice
from scheduler.placing.groups.domains import Level
from scheduler.placing.groups.kai import Asked, Found, NodeSet, Tasks, Wish
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Team
from scheduler.state.pods import PodRecord

# Of these KAI counts whole units, rounded up.
_UNITS = {names.CPU: 1000}
_ALWAYS = frozenset({names.CPU, names.MEMORY})


class Set(NamedTuple):
    """Nodes that KAI tries, [N]; with the label of their domain's level and the values that name it, if they are one."""

    rows: c.Flags
    label: str
    values: tuple[str, ...]


class Sets(NamedTuple):
    """The sets in the order in which they are tried, and [N] which nodes KAI likes better; [0] without a preference."""

    sets: list[Set]
    scores: c.Ints


def is_asked(team: Team) -> bool:
    """Whether a team, or one within it, has a constraint in KAI's words."""
    return any(one.where is not None and one.where.rule == Rule.KAI for one in team.list_all())


def list_sets(choice: Choice, there: Collection[int]) -> Sets:
    """List the sets of nodes that KAI tries for the waiting pods of a team.

    If KAI would try none, the one is listed that comes closest: the trial finds out which pod lacks what there.

    Args:
        choice: what there is to choose from; the waiting pods are those that must have a node at once.
        there: the domains of the required level in which pods of the team are already.
    """
    where = choice.team.where
    pods = [pod for _, pods in choice.waiting for pod in pods]
    if where is None:
        return Sets([], np.zeros(0, np.int64))
    levels = [choice.domains.get_level(where.labels[: i + 1]) for i in range(len(where.labels))]
    wish = Wish(
        where.required,
        where.preferred[0] if where.preferred else -1,
        np.array(sorted(there), np.int64),
    )
    valid = choice.cluster.nodes.columns.valid
    among = valid & choice.among if choice.among.size else valid
    tasks = _make_tasks(choice, pods)
    found = (
        kai.find_sets(levels, tasks, wish, among)
        if levels[-1].names
        else Found([], np.zeros(0, np.int64))
    )
    sets = found.sets or _pick_closest(choice, levels, pods, wish, among)
    return Sets([_name_set(choice, levels, one, among) for one in sets], found.scores)


def _make_tasks(choice: Choice, pods: list[PodRecord]) -> Tasks:
    """Count and sum up what pods ask for; pods are alike for KAI if they ask for the same kinds of resources."""
    devices = frozenset(choice.cluster.nodes.devices.families)
    kinds = {_list_kinds(pod, devices) for pod in pods}
    places = np.zeros(0, np.int64)
    if len(kinds) == 1:
        places = _count_places(choice, pods)
    return Tasks(len(pods), places, _sum_up(choice.cluster, pods))


def _list_kinds(pod: PodRecord, devices: frozenset[str]) -> frozenset[str]:
    """List the resources by which pods differ; devices of any kind are one of them, without a name."""
    asked = {name for name, _ in pod.template.requests.amounts} - _ALWAYS
    if pod.template.gpu is not None or not devices.isdisjoint(asked):
        asked = asked - devices | {""}
    return frozenset(asked)


def _count_places(choice: Choice, pods: list[PodRecord]) -> c.Ints:
    """Count [N] the pods that fit on each node, each of which asks for as much of everything as any of them."""
    kinds = {id(pod.template): pod for pod in pods}
    places = [choice.count_places(pod, None) for pod in kinds.values()]
    least: c.Ints = np.minimum.reduce(places)
    return least


def _sum_up(cluster: Cluster, pods: list[PodRecord]) -> Asked:
    totals: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.template.requests.amounts:
            totals[name] = totals.get(name, 0) + amount
    nodes = cluster.nodes.columns
    names_, rows = list(totals), [cluster.nodes.resources.find(name) for name in totals]
    free = [
        nodes.allocatable[row] - nodes.requested[row] if row >= 0 else np.zeros_like(nodes.rank)
        for row in rows
    ]
    units = [
        0 if name in cluster.nodes.devices.families else _UNITS.get(name, 1) for name in names_
    ]
    return Asked(
        np.array(list(totals.values()), np.int64),
        np.array(units, np.int64),
        np.array(free, np.int64).reshape(len(rows), cluster.nodes.capacity),
    )


def _pick_closest(choice: Choice, levels: list[Level], pods: list[PodRecord], wish: Wish, among: c.Flags) -> list[NodeSet]:  # fmt: skip
    """Pick the set with the most places for pods like the first one, at the widest level that would do."""
    if wish.required < 0:
        return [NodeSet(-1, 0)]
    level = levels[wish.required]
    could = among & (level.domain >= 0)
    if wish.there.size:
        could &= np.isin(level.domain, wish.there)
    rows = np.flatnonzero(could)
    if not rows.size:
        return []
    numbers = np.unique(level.domain[rows])
    places = np.bincount(level.domain[rows], choice.count_places(pods[0], None)[rows])[numbers]
    return [NodeSet(wish.required, int(numbers[places.argmax()]))]


def _name_set(choice: Choice, levels: list[Level], one: NodeSet, among: c.Flags) -> Set:
    inside = among & (levels[-1].domain >= 0)
    if one.level < 0 or choice.team.where is None:
        return Set(inside, "", ())
    level = levels[one.level]
    label = choice.team.where.labels[one.level]
    return Set(inside & (level.domain == one.number), label, level.names[one.number])
