"""What is kept of all nodes for pods of kinds that were not seen before; ``kernels/cold`` reads and writes it.

N is the capacity in node rows, D in cards, H a power of two of at least N, S = static scores.
"""

from __future__ import annotations

import numpy as np

from scheduler.schema.card_parts import SIZES_MAX
from scheduler.schema.handles import Flags1, Floats1, Floats2, Handle, Ints1, Ints2, Shorts2
from scheduler.schema.places import RESOURCES_MAX


class Classes(Handle):
    """Rows of nodes that are alike to every score. A class has a number below N."""

    of: Ints1  # [N] class of a row, -1 for none
    near: Ints2  # [2, N] the rows BEFORE and AFTER a row in its class, -1 at the ends
    head: Ints1  # [N] by class: its first row, -1 where there is no such class
    digest: Ints1  # [N] by class: of the state of its nodes
    chain: Ints1  # [N] by class: the next one in the same bucket, -1 for none
    bucket: Ints1  # [H] first class of each bucket, -1 for none
    spare: Ints1  # [N] numbers that no class has, taken from the end
    counts: Ints1  # [2] how many of those there are; all classes have numbers below the other


BEFORE, AFTER = 0, 1
N_SPARE, N_CLASSES = 0, 1


class Known(Handle):
    """What a node is before any pod is put there, by its row; of fragments as ``keel`` measures them.

    Cards that are open and differ are listed, the first of those that are alike; the list begins at the row
    of the node's first card. Rates are milli-GPU that fragments shrink by at most for a milli-GPU that is
    taken, see ``kernels/cold/known.py``.
    """

    fresh: Flags1  # [N] the figures of the row hold
    node: Ints2  # [N, N_NODE] see NODE_*
    node_rates: Floats2  # [N, N_NODE_RATES]
    card: Ints2  # [D, N_CARD] the list, see CARD_*
    rooms: Shorts2  # [D, 2] milli of cores and of memory that are free on each card of the list, within 0..1000
    card_rates: Floats2  # [D, N_CARD_RATES]
    rounded: Floats1  # [1] milli-GPU that fragments can differ by for being whole numbers
    whole: Floats2  # [N, N_WHOLE] of nodes without devices, see WHOLE_*
    parts: Floats2  # [N or 0, N_PARTS] of nodes with cards that are cut, see PARTS_*


# Idle milli-GPU; milli-CPU that have to stay free so that no typical pod stops to fit for want of CPU; cards in
# the list; most cores and MiB free on one of them; whether all count cores and MiB alike; of which kind they all
# are, -1 where they do not count alike or are of several, or one closes with the next sharer; most milli-GPU that
# one of them can give.
(
    NODE_IDLE,
    NODE_MARK,
    NODE_OPEN,
    NODE_CORES,
    NODE_MIB,
    NODE_EVEN,
    NODE_KIND,
    NODE_ROOM,
    N_NODE,
) = range(9)
# Milli-GPU that fragments can shrink by at once where pods fit no more; rate by pods that do not fit already;
# the highest of CARD_FIRM and CARD_ONE; milli of the first card that a percent of cores and a MiB is; then, by
# class of how many cards are asked, rate by pods that may fit no more.
RATE_DROP, RATE_BASE, RATE_FIRM, RATE_ONE, RATE_CORES, RATE_MIB, RATE_HALF = range(7)
# Classes of how many cards are asked: one, two, up to four, more.
N_WANTED = 4
N_NODE_RATES = RATE_HALF + N_WANTED
# The card's place on the node; how many are like it; milli-GPU that it can give; cores and MiB that are free.
CARD_AT, CARD_ALIKE, CARD_ROOM, CARD_CORES, CARD_MIB, N_CARD = range(6)
# Rate by pods that do not fit already or cannot use the card; with those that may fit no more, for pods of one card.
CARD_FIRM, CARD_ONE, N_CARD_RATES = range(3)
# What typical pods and the best filling come to; the mean share in use; how full the node is; then, for each resource
# that binds, the three figures that ``places.read`` writes.
WHOLE_HELD, WHOLE_USED, WHOLE_FULL, WHOLE_AT = range(4)
N_WHOLE = WHOLE_AT + 3 * RESOURCES_MAX


# The carving of all cards that can be cut, -1 where they are cut in several ways or others are shared as a whole; the most
# milli-GPU that a part takes; then, for each size of parts, the least that is lost by one of it.
PARTS_CARVING, PARTS_TAKEN, PARTS_LOSS = range(3)
N_PARTS = PARTS_LOSS + SIZES_MAX


# More than anything that is lost.
NOWHERE = 1e300


class Cold(Handle):
    """All that one decision needs."""

    classes: Classes
    known: Known
    best: Ints1  # [N_BEST] the best node found so far, see BEST_*
    refused: Ints1  # [N] refusal bits of static rules
    scores: Ints2  # [S, N] points of static rules that need not be normalised
    weights: Ints1  # [S]
    moved: Ints1  # [k] rows that are to be looked at again


# Key, rank and row (-1: none yet) of the best node; the most that static scores can add to a key.
BEST_KEY, BEST_RANK, BEST_ROW, BEST_STATIC, N_BEST = range(5)


def make_classes(capacity: int) -> Classes:
    """Make the classes of so many rows of which none is in any class yet."""
    buckets = 1 << max(1, capacity - 1).bit_length()
    return Classes(
        of=np.full(capacity, -1, np.int64),
        near=np.full((2, capacity), -1, np.int64),
        head=np.full(capacity, -1, np.int64),
        digest=np.zeros(capacity, np.int64),
        chain=np.full(capacity, -1, np.int64),
        bucket=np.full(buckets, -1, np.int64),
        spare=np.arange(capacity)[::-1].copy(),
        counts=np.array([capacity, 0], np.int64),
    )


def make_empty(capacity: int, cards: int, *, has_parts: bool = False) -> Cold:
    """Make the figures of so many rows and cards of which nothing is known yet; ``has_parts``: any card can be cut."""
    return Cold(
        make_classes(capacity),
        Known(
            fresh=np.zeros(capacity, np.bool_),
            node=np.zeros((capacity, N_NODE), np.int64),
            node_rates=np.zeros((capacity, N_NODE_RATES)),
            card=np.zeros((cards, N_CARD), np.int64),
            rooms=np.zeros((cards, 2), np.int16),
            card_rates=np.zeros((cards, N_CARD_RATES)),
            rounded=np.zeros(1),
            whole=np.zeros((capacity, N_WHOLE)),
            parts=np.zeros((capacity if has_parts else 0, N_PARTS)),
        ),
        best=np.zeros(N_BEST, np.int64),
        refused=np.zeros(capacity, np.int64),
        scores=np.zeros((0, capacity), np.int64),
        weights=np.zeros(0, np.int64),
        moved=np.zeros(0, np.int64),
    )
