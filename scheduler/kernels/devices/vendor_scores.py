"""What HAMi adds to the score of a node by the cards that a pod would get there, vendor by vendor.

Source: HAMi v2.10 (Apache-2.0) ``ScoreNode`` of ``pkg/device`` and ``OverrideScore`` of ``pkg/scheduler/policy``. The highest sum
wins under ``binpack``, the lowest under ``spread``.
"""

from __future__ import annotations

import numpy as np

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import pools
from scheduler.schema import choice_scores, marks
from scheduler.schema import columns as c

_F0 = np.float32(0.0)
_NETWORK_WEIGHT = np.float32(10.0)
# Of Kunlun: cards of an island, and what HAMi adds by how many more islands are broken afterwards.
_ISLAND, _LESS, _SAME, _MORE = 4, 3000, 2000, 1000
# Of Metax: what two cards of one zone score, and how much more those count that the pod gets.
_LINK, _GOT = 10, 10
# Likewise, what an online pod loses by each pod on its card: beside offline ones alone, beside online ones, and beside both.
_BESIDE_OFFLINE, _BESIDE_ONLINE, _BESIDE_BOTH = 100, 20, 2


@part
def score_choice(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    row: int,
    n_picks: int,
    is_spread: bool,
    s: c.Scratch,
) -> float:
    """Return what HAMi adds for the picks of ``s.picks`` on a node, as they were before; never further from 0 than ``MOST``.

    Reads what ``choose.choose_devices`` has written. O(cards²) for links, else O(picks²).
    """
    scorer, pool = ask.prefers.mode.scorer, pools.find_pool(nodes, ask, row)
    start, count = nodes.pools.start[pool], nodes.pools.count[pool]
    if scorer == choice_scores.BY_NUMBER:
        at = min(n_picks, count) - 1
        return float(cards.by_number[1 if is_spread else 0, start + at])
    if scorer == choice_scores.BY_GROUPS:
        return float(min(_find_shares(cards, n_picks, s), np.float32(choice_scores.MOST[scorer])))
    if scorer == choice_scores.BY_NETWORKS:
        shares = _find_shares(cards, n_picks, s) * _NETWORK_WEIGHT
        return float(min(shares, np.float32(choice_scores.MOST[scorer])))
    if scorer == choice_scores.BY_ISLANDS:
        return float(_score_islands(nodes, cards, row, (start, count), n_picks, s))
    if scorer == choice_scores.BY_SHARERS:
        found = _score_sharers(cards, n_picks, s)
    else:
        found = _score_zones(cards, start, count, n_picks, s)
    most = choice_scores.NEUTRAL_MOST
    weight = choice_scores.NEUTRAL_WEIGHT
    return float(max(-most, min(most, found)) * (-weight if is_spread else weight))


@part
def _find_shares(cards: c.Cards, n_picks: int, s: c.Scratch) -> np.float32:
    """Sum over the containers which share of their cards is of the same group; 0 if a card is of none."""
    total, first = _F0, 0
    while first < n_picks:
        end, most = first, 0
        while end < n_picks and s.pick_slot[end] == s.pick_slot[first]:
            end += 1
        for p in range(first, end):
            group, n = cards.group[s.picks[p]], 0
            if group < 0:
                return _F0
            for q in range(first, end):
                n += 1 if cards.group[s.picks[q]] == group else 0
            most = max(most, n)
        total += np.float32(most) / np.float32(end - first)
        first = end
    return total


@part
def _score_islands(
    nodes: c.Nodes, cards: c.Cards, row: int, run: tuple[int, int], n_picks: int, s: c.Scratch
) -> int:
    """Compare the islands that are broken by what is in use with those that the pod's cards alone would break."""
    start, count = run
    for i in range(nodes.n_pools[row]):
        pool = nodes.first_pool[row] + i
        if nodes.pools.count[pool] > 0 and nodes.pools.start[pool] != start:
            # HAMi scores no node that has cards of another vendor as well.
            return 0
    before, after = (0, 0), (0, 0)
    for d in range(start, start + count):
        if cards.used[c.SLOTS, d] > 0:
            before = _count_card(before, cards.position[d])
        for p in range(n_picks):
            if s.picks[p] == d:
                after = _count_card(after, cards.position[d])
                break
    more = _count_broken(after) - _count_broken(before)
    return _LESS if more == -1 else _SAME if more == 0 else 0 if more == 2 else _MORE


@tiny
def _count_card(n: tuple[int, int], position: int) -> tuple[int, int]:
    return (n[0] + 1, n[1]) if position < _ISLAND else (n[0], n[1] + 1)


@tiny
def _count_broken(n: tuple[int, int]) -> int:
    return 1 if n[0] + n[1] == 0 else _weigh_island(n[0]) + _weigh_island(n[1])


@tiny
def _weigh_island(n: int) -> int:
    """Return how broken an island is by so many cards: by none as much as by two, as HAMi counts."""
    return 0 if n == _ISLAND else 2 if n == 1 else 1


@part
def _score_zones(cards: c.Cards, start: int, count: int, n_picks: int, s: c.Scratch) -> int:
    """Weigh the links between whole cards that the pod gets against those that the idle cards lose."""
    idle, got, rest = 0, 0, 0
    for d in range(start, start + count):
        for e in range(d + 1, start + count):
            if cards.group[d] < 0 or cards.group[d] != cards.group[e]:
                continue
            both = cards.used[c.SLOTS, d] == 0 and cards.used[c.SLOTS, e] == 0
            idle += _LINK if both else 0
            if both and not (_is_got(d, n_picks, s) or _is_got(e, n_picks, s)):
                rest += _LINK
    for p in range(n_picks):
        for q in range(p + 1, n_picks):
            one, other = s.picks[p], s.picks[q]
            if not (_is_whole(p, s) and _is_whole(q, s)) or one == other:
                continue
            if cards.group[one] >= 0 and cards.group[one] == cards.group[other]:
                got += _LINK
    return _GOT * got - (idle - got - rest) if _gets_whole(n_picks, s) else 0


@tiny
def count_classes(cards: c.Cards, d: int) -> tuple[int, int]:
    """Count the online and the offline pods on a card of Metax: the first two kinds of its marks."""
    return cards.marks[d] & marks.MOST, cards.marks[d] >> marks.BITS & marks.MOST


@part
def _score_sharers(cards: c.Cards, n_picks: int, s: c.Scratch) -> int:
    """Sum what an online pod loses by the pods on its cards, each card once."""
    found = 0
    for p in range(n_picks):
        is_known = False
        for q in range(p):
            is_known |= s.picks[q] == s.picks[p]
        online, offline = count_classes(cards, s.picks[p])
        if not is_known and online == 0:
            found -= _BESIDE_OFFLINE * offline
        elif not is_known:
            found -= _BESIDE_ONLINE * online + _BESIDE_BOTH * offline
    return found


@tiny
def _is_whole(p: int, s: c.Scratch) -> bool:
    return bool(s.pick_cores[p] == pools.WHOLE_CORES)


@tiny
def _gets_whole(n_picks: int, s: c.Scratch) -> bool:
    """Whether any pick is a whole card."""
    for p in range(n_picks):
        if _is_whole(p, s):
            return True
    return False


@tiny
def _is_got(d: int, n_picks: int, s: c.Scratch) -> bool:
    """Whether the pod gets a card as a whole."""
    for p in range(n_picks):
        if s.picks[p] == d and _is_whole(p, s):
            return True
    return False
