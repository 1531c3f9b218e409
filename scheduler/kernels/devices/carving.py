"""Parts of cards: which parts can still be cut out of a card, and what its parts in use leave of it.

A card that can be cut has slots, and a part takes some of them at a fixed place. A set of slots is a number, with a bit
for each slot. Of a card that is cut by templates, further bits say which template is in force.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.schema import card_parts
from scheduler.schema import columns as c


@part
def find_part(cards: c.Cards, d: int, mib: int, cut: int) -> int:
    """Find the first part of a card with so many MiB beside the bits ``cut``, which are in use; ``NO_PART`` for none."""
    carvings = cards.carvings
    first = carvings.run[card_parts.RUN_FIRST, cards.carving[d]]
    for p in range(first, first + carvings.run[card_parts.RUN_COUNT, cards.carving[d]]):
        if (
            carvings.parts[p, card_parts.PART_MIB] >= mib
            and carvings.parts[p, card_parts.PART_CLASH] & cut == 0
        ):
            return int(p)
    return c.NO_PART


@part
def find_smallest_part(cards: c.Cards, d: int, mib: int, cut: int) -> int:
    """Find the smallest part of a card as ``find_part``, the first of equals: templates need not name it first."""
    carvings = cards.carvings
    first = carvings.run[card_parts.RUN_FIRST, cards.carving[d]]
    best = c.NO_PART
    for p in range(first, first + carvings.run[card_parts.RUN_COUNT, cards.carving[d]]):
        of_part = carvings.parts[p, card_parts.PART_MIB]
        if of_part < mib or carvings.parts[p, card_parts.PART_CLASH] & cut != 0:
            continue
        if best == c.NO_PART or of_part < carvings.parts[best, card_parts.PART_MIB]:
            best = int(p)
    return best


@part
def read_cuts(cards: c.Cards, start: int, count: int, n_picks: int, s: c.Scratch) -> None:
    """Write into ``s.cut`` the bits in use of ``count`` cards, those of the first ``n_picks`` picks of the pod included."""
    for j in range(count):
        s.cut[j] = cards.cut[start + j]
    for p in range(n_picks):
        if s.pick_part[p] != c.NO_PART:
            s.cut[s.picks[p] - start] |= cards.carvings.parts[s.pick_part[p], card_parts.PART_BITS]


@tiny
def get_room(cards: c.Cards, d: int, cut: int) -> int:
    """Return the most milli that can be cut out of a card beside the bits ``cut``; 0 of a card that cannot be cut."""
    return int(cards.carvings.room[cards.carving[d], cut])
