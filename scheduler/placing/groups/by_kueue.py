"""Reads a team as Kueue reads a pod set, and says which of its pods go to which nodes by Kueue's rules."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from scheduler.api.groups.definitions import Rule
from scheduler.placing.groups import kueue, slices
from scheduler.placing.groups.choices import Choice, Part, Step
from scheduler.placing.groups.domains import Domains
from scheduler.placing.groups.kueue import Ask, Assignment, Counts, Mode, Share
from scheduler.placing.groups.slices import Gap, PodSet
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.state.entities import Team, Where
from scheduler.state.pods import PodRecord


def is_cut(team: Team) -> bool:
    """Whether the pods of a team are cut in slices, which pods join that come later."""
    where = team.where
    return where is not None and where.rule == Rule.KUEUE and bool(where.slices) and not team.teams


def list_steps(choice: Choice, *, balances: bool) -> Iterator[Step]:
    """Yield the steps in which the pods of a team go to nodes; none if Kueue finds no place, or the team is no pod set."""
    where = choice.team.where
    if where is None:
        return
    levels = [choice.domains.get_level(where.labels[: i + 1]) for i in range(len(where.labels))]
    pod_set = PodSet(choice, where, levels, balances)
    if is_cut(choice.team) and levels[-1].names and _is_in_part(choice):
        row = slices.line_up(pod_set)
        if not row.waiting:
            yield Step([], [])
        for gap in slices.find_gaps(pod_set, row):
            yield from _fill(pod_set, gap, {at: row.waiting[at] for at in gap.places})
    elif parts := _assign_anew(pod_set):
        yield Step(parts, [])


def _is_in_part(choice: Choice) -> bool:
    """Whether only a part of the pods of a team is to be placed: others have a node, or have succeeded."""
    team, pods = choice.team, choice.cluster.pods
    return bool(team.there) or team.n_done > 0 or any(pods[one.uid].node for one in team.pods)


def _fill(pod_set: PodSet, gap: Gap, pods: dict[int, PodRecord]) -> Iterator[Step]:
    """Yield the steps in which pods, by their places in the row, go to nodes: as many slices as there is room for."""
    said = gap.say_where(pod_set)
    if not gap.layers and not gap.is_stuck:
        parts = [Part(list(pods.values()), gap.find_rows(pod_set))]
        yield Step(parts, [], said)
        return
    while pods and not gap.is_stuck:
        # All slices at once if they fit, else one by one.
        first = min(pods) // gap.layers[0][1]
        one = {at: pod for at, pod in pods.items() if at // gap.layers[0][1] == first}
        taken, parts = pods, _assign_slices(pod_set, gap, pods)
        if not parts and len(one) < len(pods):
            taken, parts = one, _assign_slices(pod_set, gap, one)
        if not parts:
            break
        yield Step(parts, [])
        pods = {at: pod for at, pod in pods.items() if at not in taken}
    if pods:
        yield Step([], list(pods.values()), said)


def _assign_slices(pod_set: PodSet, gap: Gap, pods: dict[int, PodRecord]) -> list[Part]:
    """Assign whole slices to nodes, with room for those of their pods that are still to come; none if there is no room."""
    size = gap.layers[0][1]
    numbers = {number: i for i, number in enumerate(sorted({at // size for at in pods}))}
    counts = _count(pod_set.choice, next(iter(pods.values())), None)
    left = slices.spare_places(pod_set, counts.places)
    ask = _make_ask(pod_set, len(numbers) * size, has_leader=False)
    if gap.level >= 0:
        ask = replace(ask, mode=Mode.REQUIRED, level=gap.level, slices=tuple(gap.layers))
    rows = gap.find_rows(pod_set)
    found = kueue.assign(pod_set.levels, counts._replace(places=left).keep(rows), ask)
    if not isinstance(found, Assignment):
        return []
    ends = np.cumsum([share.pods for share in found.shares])
    handed: dict[int, list[PodRecord]] = {}
    for at, pod in sorted(pods.items()):
        place = numbers[at // size] * size + at % size
        handed.setdefault(int(np.searchsorted(ends, place, "right")), []).append(pod)
    return [
        _make_part(found, found.shares[i], pod_set.levels[-1].domain, mine)
        for i, mine in handed.items()
    ]


def _assign_anew(pod_set: PodSet) -> list[Part] | None:
    """Assign all pods of a team to nodes; None if Kueue finds no place for all, or the team is no pod set of Kueue."""
    choice, where, levels, _ = pod_set
    leader, workers = _find_leader(choice.waiting)
    if workers is None:
        return None
    counts = _count(choice, workers[0], leader[0] if leader else None).keep(choice.among)
    ask = _make_ask(pod_set, len(workers), has_leader=leader is not None)
    if where.slices and len(workers) % where.slices[0][1]:
        return None
    found = kueue.assign(levels, counts, ask)
    if not isinstance(found, Assignment):
        return None
    return _make_parts(found, levels[-1].domain, leader, workers)


def _count(choice: Choice, worker: PodRecord, leader: PodRecord | None) -> Counts:
    """Count what fits on each node."""
    places = choice.count_places(worker, None)
    if leader is None:
        return Counts(places, np.zeros(places.size, np.bool_), np.zeros_like(places))
    has_leader = choice.count_places(leader, None) > 0
    return Counts(places, has_leader, choice.count_places(worker, leader))


def say_no_slices(domains: Domains, team: Team, where: Where) -> str:
    """Say why a team that is cut in slices has no place: it cannot be cut, nodes lack labels, or no domain takes it."""
    size = where.slices[0][1]
    if is_cut(team) and len(team.pods) % size:
        return f"Its {len(team.pods)} pods cannot be cut in slices of {size}: their number is no multiple of it."
    for n in range(1, len(where.labels) + 1):
        if not domains.get_level(where.labels[:n]).names:
            return f"No node has the label{'s' * (n > 1)} {' and '.join(where.labels[:n])}."
    slices = [f"{size} that share a {where.labels[level]}" for level, size in where.slices]
    among = (
        f"No {where.labels[where.required]} has" if where.required >= 0 else "The nodes do not have"
    )
    return f"{among} places for all its pods in slices of {', each in slices of '.join(slices)}."


def _find_leader(
    waiting: list[tuple[Team, list[PodRecord]]],
) -> tuple[list[PodRecord] | None, list[PodRecord] | None]:
    """Find the leaf of one pod, the leader, and the leaf of the others; no workers for any other team."""
    there = [pods for _, pods in waiting if pods]
    if len(there) == 1:
        return None, there[0]
    if len(there) != 2:
        return None, None
    first, second = sorted(there, key=len)
    return (first, second) if len(first) == 1 else (None, None)


def _make_ask(pod_set: PodSet, count: int, *, has_leader: bool) -> Ask:
    where = pod_set.where
    mode, level = Mode.UNCONSTRAINED, 0
    if where.required >= 0:
        mode, level = Mode.REQUIRED, where.required
    elif where.preferred:
        mode, level = Mode.PREFERRED, where.preferred[0]
    return Ask(count, mode, level, where.slices, has_leader, pod_set.balances)


def _make_parts(
    found: Assignment, domain: c.Ints, leader: list[PodRecord] | None, workers: list[PodRecord]
) -> list[Part]:
    parts: list[Part] = []
    at = 0
    for share in found.shares:
        if share.leaders and leader is not None:
            parts.append(_make_part(found, share, domain, leader))
        if share.pods:
            parts.append(_make_part(found, share, domain, workers[at : at + share.pods]))
            at += share.pods
    return parts if at == len(workers) else []


def _make_part(found: Assignment, share: Share, domain: c.Ints, pods: list[PodRecord]) -> Part:
    if found.is_by_row:
        return Part(pods, ANYWHERE, share.number)
    return Part(pods, domain == share.number)
