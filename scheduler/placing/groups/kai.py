"""The domains that KAI tries for pods, in its order, and which nodes within them it likes better: to the letter.

Source: kai-scheduler/KAI-Scheduler, pkg/scheduler/plugins/topology/job_filtering.go and node_scoring.go at 72de64fc. From the
preferred level up to the required one, each domain that has room is tried. Of a parent's domains the one comes first that the
pods fill most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.placing.groups.domains import Level
from scheduler.schema import columns as c

# How full a domain would be that has nothing of what is asked: KAI's figure.
_NOTHING_FREE = 1000.0
_SCORE_MAX = 10


class Asked(NamedTuple):
    """What pods ask for together, of some resources.

    Attributes:
        amounts: [R] how much of each.
        units: [R] what is free counts in whole units of so much, rounded up; 0: it counts exactly, as devices do.
        free: [R, N] what is free of each on each node; may be below 0.
    """

    amounts: c.Ints
    units: c.Ints
    free: c.Ints


class Tasks(NamedTuple):
    """The pods that must have a node at once.

    Attributes:
        n: how many there are.
        places: [N] how many of them fit on each node; [0] if they are unlike, and sums of amounts decide.
        asked: what they ask for.
    """

    n: int
    places: c.Ints
    asked: Asked


class Wish(NamedTuple):
    """The levels that are asked for, by their places in the topology; -1 for none.

    Attributes:
        there: [domains] the domains of the required level in which pods of the group run already; [0] for none.
    """

    required: int
    preferred: int
    there: c.Ints


class NodeSet(NamedTuple):
    """Nodes to try: those of a domain, or at level -1 all of the topology."""

    level: int
    number: int


class Found(NamedTuple):
    """The sets in the order in which they are tried, and [N] how KAI scores nodes; scores are [0] without a preference."""

    sets: list[NodeSet]
    scores: c.Ints


def find_sets(levels: Sequence[Level], tasks: Tasks, wish: Wish, among: c.Flags) -> Found:
    """Find the sets of nodes to try.

    Args:
        levels: the levels of the topology, the widest first. A node that lacks a label belongs to none of them.
        tasks: the pods.
        wish: which levels are asked for.
        among: [N] the only nodes that count.
    """
    inside = among & (levels[-1].domain >= 0)
    finest = max(wish.required, wish.preferred)
    ranked = [_rank_level(levels[0], tasks, inside, np.zeros(1, np.int64))]
    for level in levels[1 : finest + 1]:
        ranked.append(_rank_level(level, tasks, inside, ranked[-1].order))
    sets: list[NodeSet] = []
    for at in range(finest, max(wish.required, 0) - 1, -1):
        could = ranked[at].fits.copy()
        if wish.required >= 0 and wish.there.size:
            could &= np.isin(_find_ancestors(levels, at, wish.required), wish.there)
        sets += [NodeSet(at, number) for number in ranked[at].order.tolist() if could[number]]
    if wish.required < 0:
        whole = Level(np.where(inside, 0, -1), ((),), np.zeros(1, np.int64))
        if _rank_level(whole, tasks, inside, np.zeros(1, np.int64)).fits[0]:
            sets.append(NodeSet(-1, 0))
    scores = np.zeros(0, np.int64)
    if wish.preferred >= 0:
        scores = _score_nodes(levels[wish.preferred], ranked[wish.preferred].order, inside)
    return Found(sets, scores)


class _Ranked(NamedTuple):
    """The domains of a level that have nodes, in order, and [domains] whether the pods fit in each."""

    order: c.Ints
    fits: c.Flags


def _rank_level(level: Level, tasks: Tasks, inside: c.Flags, above: c.Ints) -> _Ranked:
    """Rank the domains of a level: by the place of the domain above them, then those first that the pods fill most."""
    n = len(level.names)
    rows = np.flatnonzero(inside & (level.domain >= 0))
    domain = level.domain[rows]
    numbers = np.unique(domain)
    place = np.zeros(max(1, level.parent.max(initial=0) + 1), np.int64)
    place[above] = np.arange(above.size)
    ratios = _find_ratios(tasks.asked, rows, domain, n)
    order = numbers[np.lexsort((numbers, -ratios[numbers], place[level.parent[numbers]]))]
    if tasks.places.size:
        # Sums of whole numbers below 2**53 are exact.
        fits = np.bincount(domain, tasks.places[rows], n) >= tasks.n
    else:
        fits = ratios <= 1.0
    return _Ranked(order, fits)


def _find_ratios(asked: Asked, rows: c.Ints, domain: c.Ints, n: int) -> c.Floats:
    """Find [domains] how much of what is free in each the pods ask for, of the resource of which they ask most of it."""
    ratios = np.zeros(n)
    for amount, unit, free in zip(asked.amounts.tolist(), asked.units.tolist(), asked.free, strict=True):  # fmt: skip
        total = np.bincount(domain, free[rows], n)
        wanted, none = float(amount), np.inf
        if unit:
            wanted, total, none = float(-(-amount // unit)), np.ceil(total / unit), _NOTHING_FREE
        with np.errstate(divide="ignore"):
            np.maximum(ratios, np.where(total == 0, none, wanted / total), out=ratios)
    return ratios


def _find_ancestors(levels: Sequence[Level], below: int, above: int) -> c.Ints:
    """Find [domains] for each domain of a level the domain of a wider level within which it lies."""
    found = np.arange(len(levels[below].names))
    for level in range(below, above, -1):
        found = levels[level].parent[found]
    return found


def _score_nodes(level: Level, order: c.Ints, inside: c.Flags) -> c.Ints:
    """Score [N] nodes by the place of their domain: the last one, which has the most room, gets the most."""
    scores = np.zeros(len(level.names), np.int64)
    # KAI divides first, too: the result is rounded down.
    scores[order] = np.floor((np.arange(order.size) + 1) / max(1, order.size) * _SCORE_MAX)
    return np.where(inside, scores[np.maximum(level.domain, 0)] if order.size else 0, 0)
