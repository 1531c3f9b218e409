"""The cards of a container by the links between them: several that are linked best, or one that is linked worst.

What the best set of a node is worth counts when nodes are compared, too. HAMi compares nodes without it.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/nvidia``, the policy ``topology-aware``. HAMi lists all sets of cards; here sets
that cannot be better than the best so far are not looked at.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import choice_scores as of_choice
from scheduler.schema import columns as c

# The sets of 16 cards are fewer; with more cards, the best of so many steps is taken.
_STEPS_MAX = 1 << 17
# Two cards on one board score 60, and less the further apart they are; each NVLink between them adds 100, up to 18.
_BOARD, _NVLINKS = 60, 1_800
# Milli-points for a score of 1 of a mean pair without NVLinks, for all NVLinks, and the most: less than a point of 100,000.
_MILLI, _NVLINKS_MILLI, _MOST_MILLI = 1_000, 40_000, 99_999


@part
def choose_set(cards: c.Cards, start: int, passing: int, wanted: int, s: c.Scratch) -> None:
    """Write the chosen cards into ``s.chosen``, as places in ``s.passing``, which has the cards in the order of the walk.

    Several: the set with the highest sum of scores, each pair once, by the scores of the card that comes first. One: the
    card with the lowest sum of scores with all others, so that those that are linked stay together. The first of equals.
    """
    if wanted == 1:
        _choose_one(cards, start, passing, s)
        return
    most = _read_pairs(cards, start, passing, s)
    best, steps, depth, last = -1, 0, 0, wanted - 1
    for place in range(passing):
        s.gains[0, place] = 0
    s.trial[0], s.sums[0] = -1, 0
    while depth >= 0 and (best < 0 or steps < _STEPS_MAX):
        s.trial[depth] += 1
        place = s.trial[depth]
        if place > passing - wanted + depth:
            # There are not enough cards behind it.
            depth -= 1
            continue
        steps += 1
        if depth == last:
            best = _choose_last(passing, wanted, best, s)
            depth -= 1
            continue
        total = s.sums[depth] + s.gains[depth, place]
        # The pairs of those that are still to be chosen, with each other and with those chosen.
        left = last * wanted // 2 - depth * (depth + 1) // 2
        if best >= 0 and total + left * most <= best:
            continue
        depth += 1
        s.trial[depth], s.sums[depth] = place, total
        for other in range(place + 1, passing):
            s.gains[depth, other] = s.gains[depth - 1, other] + s.pairs[place, other]


@tiny
def clear_pairs(s: c.Scratch) -> None:
    """Forget the pairs of what was chosen before."""
    s.choice.pairs[of_choice.PAIRS_SUM] = s.choice.pairs[of_choice.PAIRS_NUMBER] = 0


@part
def count_pairs(wanted: int, s: c.Scratch) -> None:
    """Add up the pairs of a set that ``choose_set`` has chosen."""
    for i in range(wanted):
        for other in range(i + 1, wanted):
            s.choice.pairs[of_choice.PAIRS_SUM] += s.pairs[s.chosen[i], s.chosen[other]]
            s.choice.pairs[of_choice.PAIRS_NUMBER] += 1


@part
def score_pairs(s: c.Scratch) -> int:
    """Return the milli-points of the pairs that were counted: 60 points are cards on one board, 100 all NVLinks between all."""
    total, n = s.choice.pairs[of_choice.PAIRS_SUM], s.choice.pairs[of_choice.PAIRS_NUMBER]
    if n == 0:
        return 0
    if total <= _BOARD * n:
        return int(total * _MILLI // n)
    nvlinks = (total - _BOARD * n) * _NVLINKS_MILLI // (_NVLINKS * n)
    return int(min(_MOST_MILLI, _BOARD * _MILLI + nvlinks))


@part
def _choose_last(passing: int, wanted: int, best: int, s: c.Scratch) -> int:
    """Try every card that is left as the last one of the set; return the highest sum so far."""
    last, found = wanted - 1, -1
    for place in range(s.trial[last], passing):
        if s.sums[last] + s.gains[last, place] > best:
            best, found = s.sums[last] + s.gains[last, place], place
    if found >= 0:
        for i in range(last):
            s.chosen[i] = s.trial[i]
        s.chosen[last] = found
    return int(best)


@part
def _read_pairs(cards: c.Cards, start: int, passing: int, s: c.Scratch) -> int:
    """Write the scores of all pairs in the order of the walk into ``s.pairs``; return the highest one."""
    most = 0
    for i in range(passing):
        for other in range(i + 1, passing):
            score = _get_score(cards, start, s.passing[i], s.passing[other])
            s.pairs[i, other] = score
            most = max(most, score)
    return int(most)


@part
def _choose_one(cards: c.Cards, start: int, passing: int, s: c.Scratch) -> None:
    least = -1
    for i in range(passing):
        total = 0
        for other in range(passing):
            if other != i:
                total += _get_score(cards, start, s.passing[i], s.passing[other])
        if least < 0 or total < least:
            least, s.chosen[0] = total, i


@tiny
def _get_score(cards: c.Cards, start: int, j: int, other: int) -> int:
    """Return how well a card of a pool is linked with another one, by what the first says."""
    return int(cards.links.scores[cards.link[start + j] + other])
