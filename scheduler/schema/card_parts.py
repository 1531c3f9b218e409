"""The arrays that say what can be cut out of cards, and how well cards are linked."""

from __future__ import annotations

from scheduler.schema.handles import Handle, Ints1, Ints2


class Carvings(Handle):
    """What can be cut out of cards, once for all cards that are cut alike.

    V = carvings, P = parts of all of them, U = sets of the slots of a card. A set of slots is a number, with a bit for
    each slot.
    """

    run: Ints2  # [N_RUN, V] see RUN_*; the first carving has no parts
    parts: Ints2  # [P, N_PART] see PART_*, those first that are to be tried first
    sizes: Ints2  # [V, SIZES_MAX] the different MiB of the parts, ascending, then ``NO_SIZE``
    room: Ints2  # [V, U] by the slots in use: the most milli of a card that can still be cut out of it


# Of a carving with more sizes of parts only the first ones are in Carvings.sizes.
SIZES_MAX = 8
NO_SIZE = 1 << 62
# Positions in Carvings.run: first row and number of rows in Carvings.parts, and the MiB of the largest part.
RUN_FIRST, RUN_COUNT, RUN_MOST_MIB, N_RUN = range(4)
# Positions in Carvings.parts: MiB and core percent of the part, the slots that it takes, and the milli of a card that it
# is worth.
PART_MIB, PART_CORES, PART_SLOTS, PART_MILLI, N_PART = range(5)


class SlotCounters(Handle):
    """How many parts in use take each slot of the cards that can be cut: a run of counters for each such card."""

    used: Ints1  # [E] E = slots of all cards


# The links of pools with more cards are not known.
LINKED_MAX = 64


class Links(Handle):
    """How well cards are linked with the others of their pool."""

    scores: Ints1  # [L] for each card of a pool a run of scores with the cards of the pool, in their order
