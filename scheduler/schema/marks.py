"""Marks that pods leave on their cards: how many pods of each kind share a card, in one number.

A driver whose pods do not share cards with every other pod numbers the kinds, and says which kinds close a card to a pod.
"""

from __future__ import annotations

# Of more pods of a kind the next kind's figure is wrong as long as they are there; no node runs so many.
BITS = 12
KINDS_MAX = 5
MOST = (1 << BITS) - 1


def make_mark(kind: int) -> int:
    """Make the mark of one pod of a kind, 0..4; the marks of the pods on a card add up."""
    return 1 << BITS * kind


def make_mask(*kinds: int) -> int:
    """Make the mask of some kinds: marks have bits in common with it if a pod of any of them is on the card."""
    return sum(MOST << BITS * kind for kind in kinds)
