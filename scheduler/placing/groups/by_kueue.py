"""Reads a team as Kueue reads a pod set, and says which of its pods go to which nodes by Kueue's rules."""

from __future__ import annotations

import numpy as np

from scheduler.placing.groups import kueue
from scheduler.placing.groups.choices import Choice, Part
from scheduler.placing.groups.domains import Domains
from scheduler.placing.groups.kueue import Ask, Assignment, Counts, Mode
from scheduler.schema import columns as c
from scheduler.state.entities import Team, Where
from scheduler.state.pods import PodRecord


def assign_team(choice: Choice) -> list[Part] | None:
    """Assign the pods of a team to nodes; None if Kueue finds no place for all, or the team is no pod set of Kueue."""
    where, count, among = choice.team.where, choice.count_places, choice.among
    leader, workers = _find_leader(choice.waiting)
    if where is None or workers is None:
        return None
    places = count(workers[0], None)
    if leader is not None:
        has_leader = count(leader[0], None) > 0
        counts = Counts(places, has_leader, count(workers[0], leader[0]))
    else:
        counts = Counts(places, np.zeros(places.size, np.bool_), np.zeros(places.size, np.int64))
    if among.size:
        counts = Counts(
            np.where(among, counts.places, 0),
            counts.has_leader & among,
            np.where(among, counts.places_with_leader, 0),
        )
    levels = [choice.domains.get_level(where.labels[: i + 1]) for i in range(len(where.labels))]
    found = kueue.assign(
        levels, counts, _make_ask(where, len(workers), has_leader=leader is not None)
    )
    if not isinstance(found, Assignment):
        return None
    return _make_parts(found, levels[-1].domain, leader, workers)


def say_no_slices(domains: Domains, where: Where) -> str:
    """Say why a team that is cut in slices has no place: nodes lack labels, or no domain takes enough slices."""
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


def _make_ask(where: Where, count: int, *, has_leader: bool) -> Ask:
    mode, level = Mode.UNCONSTRAINED, 0
    if where.required >= 0:
        mode, level = Mode.REQUIRED, where.required
    elif where.preferred:
        mode, level = Mode.PREFERRED, where.preferred[0]
    return Ask(count, mode, level, where.slices, has_leader)


def _make_parts(
    found: Assignment, domain: c.Ints, leader: list[PodRecord] | None, workers: list[PodRecord]
) -> list[Part]:
    parts: list[Part] = []
    at = 0
    for share in found.shares:
        if found.is_by_row:
            rows = np.zeros(domain.size, np.bool_)
            rows[share.number] = True
        else:
            rows = domain == share.number
        if share.leaders and leader is not None:
            parts.append(Part(leader, rows))
        if share.pods:
            parts.append(Part(workers[at : at + share.pods], rows))
            at += share.pods
    return parts if at == len(workers) else []
