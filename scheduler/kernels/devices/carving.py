"""Parts of cards: which part of a card a container gets, and whether it can still be cut out of the card."""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import columns as c


@part
def find_part(cards: c.Cards, d: int, mib: int, n_picks: int, s: c.Scratch) -> int:
    """Find the first part of a card with so many MiB that can be cut out beside those in use; ``NO_PART`` for none.

    The first ``n_picks`` picks of ``s`` are in use as well.
    """
    carvings = cards.carvings
    first = carvings.run[0, cards.carving[d]]
    for p in range(first, first + carvings.run[1, cards.carving[d]]):
        if carvings.parts[p, c.PART_MIB] >= mib and _is_free(cards, d, p, n_picks, s):
            return int(p)
    return c.NO_PART


@part
def _is_free(cards: c.Cards, d: int, p: int, n_picks: int, s: c.Scratch) -> bool:
    """Whether no counter of the card is exceeded with the part."""
    carvings, counters = cards.carvings, cards.counters
    first = carvings.parts[p, c.PART_FIRST]
    for use in range(first, first + carvings.parts[p, c.PART_USES]):
        at = carvings.uses[use, 0]
        counted = counters.used[cards.counter[d] + at] + carvings.uses[use, 1]
        for pick in range(n_picks):
            if s.picks[pick] == d and s.pick_part[pick] != c.NO_PART:
                counted += _find_amount(carvings, s.pick_part[pick], at)
        if counted > counters.total[cards.counter[d] + at]:
            return False
    return True


@tiny
def _find_amount(carvings: c.Carvings, p: int, at: int) -> int:
    """Return how much of a counter a part takes."""
    first, amount = carvings.parts[p, c.PART_FIRST], 0
    for use in range(first, first + carvings.parts[p, c.PART_USES]):
        if carvings.uses[use, 0] == at:
            amount += carvings.uses[use, 1]
    return amount


@tiny
def count_part(cards: c.Cards, d: int, p: int, sign: int) -> None:
    """Add ``sign`` times what a part takes to the counters of its card."""
    carvings = cards.carvings
    first = carvings.parts[p, c.PART_FIRST]
    for use in range(first, first + carvings.parts[p, c.PART_USES]):
        cards.counters.used[cards.counter[d] + carvings.uses[use, 0]] += (
            sign * carvings.uses[use, 1]
        )
