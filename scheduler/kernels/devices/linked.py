"""The cards of a container by the links between them: several that are linked best, or one that is linked worst.

Source: HAMi v2.10 (Apache-2.0) ``pkg/device/nvidia``, the policy ``topology-aware``. HAMi lists all sets of cards; here sets
that cannot be better than the best so far are not looked at.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import columns as c

# The sets of 16 cards are fewer; with more cards, the best of so many steps is taken.
_STEPS_MAX = 1 << 17


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
