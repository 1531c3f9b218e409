"""Reads a team as Kueue reads a pod set, and says which of its pods go to which nodes by Kueue's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scheduler.placing.groups import kueue
from scheduler.placing.groups.domains import Domains
from scheduler.placing.groups.kueue import Ask, Assignment, Counts, Mode
from scheduler.schema import columns as c
from scheduler.state.entities import Team, Where
from scheduler.state.pods import PodRecord


class Part(NamedTuple):
    """Pods that go to some nodes; ``rows`` [N] are the nodes."""

    team: Team
    pods: list[PodRecord]
    rows: c.Flags


# Counts [N] how many pods like one fit on each node at most, if there is given, beside another pod.
CountBeside = Callable[[PodRecord, PodRecord | None], c.Ints]


def assign_team(
    domains: Domains,
    team: Team,
    waiting: list[tuple[Team, list[PodRecord]]],
    count: CountBeside,
    among: c.Flags,
) -> list[Part] | None:
    """Assign the pods of a team to nodes; None if Kueue finds no place for all, or the team is no pod set of Kueue.

    Args:
        domains: the domains of the cluster.
        team: the team, which has a constraint.
        waiting: the leaves of the team with their waiting pods, in order: one leaf, or a leader and its workers.
        count: counts the places for a pod.
        among: [N] the only nodes that count; [0] for all nodes.
    """
    where = team.where
    leader, workers = _find_leader(waiting)
    if where is None or workers is None:
        return None
    places = count(workers[1][0], None)
    if leader is not None:
        has_leader = count(leader[1][0], None) > 0
        counts = Counts(places, has_leader, count(workers[1][0], leader[1][0]))
    else:
        counts = Counts(places, np.zeros(places.size, np.bool_), np.zeros(places.size, np.int64))
    if among.size:
        counts = Counts(
            np.where(among, counts.places, 0),
            counts.has_leader & among,
            np.where(among, counts.places_with_leader, 0),
        )
    levels = [domains.get_level(where.labels[: i + 1]) for i in range(len(where.labels))]
    ask = _make_ask(where, len(workers[1]), has_leader=leader is not None)
    found = kueue.assign(levels, counts, ask)
    if not isinstance(found, Assignment):
        return None
    return _make_parts(found, levels[-1].domain, leader, workers)


def _find_leader(
    waiting: list[tuple[Team, list[PodRecord]]],
) -> tuple[tuple[Team, list[PodRecord]] | None, tuple[Team, list[PodRecord]] | None]:
    """Find the leaf of one pod, the leader, and the leaf of the others; no workers for any other team."""
    there = [(leaf, pods) for leaf, pods in waiting if pods]
    if len(there) == 1:
        return None, there[0]
    if len(there) != 2:
        return None, None
    first, second = sorted(there, key=lambda one: len(one[1]))
    return (first, second) if len(first[1]) == 1 else (None, None)


def _make_ask(where: Where, count: int, *, has_leader: bool) -> Ask:
    mode, level = Mode.UNCONSTRAINED, 0
    if where.required >= 0:
        mode, level = Mode.REQUIRED, where.required
    elif where.preferred:
        mode, level = Mode.PREFERRED, where.preferred[0]
    return Ask(count, mode, level, where.slices, has_leader)


def _make_parts(
    found: Assignment,
    domain: c.Ints,
    leader: tuple[Team, list[PodRecord]] | None,
    workers: tuple[Team, list[PodRecord]],
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
            parts.append(Part(leader[0], leader[1], rows))
        if share.pods:
            parts.append(Part(workers[0], workers[1][at : at + share.pods], rows))
            at += share.pods
    return parts if at == len(workers[1]) else []
