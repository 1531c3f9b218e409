"""The arrays that say what can be cut out of cards, and how well cards are linked."""

from __future__ import annotations

from scheduler.schema.handles import Handle, Ints1, Ints2


class Carvings(Handle):
    """What can be cut out of cards, once for all cards that are cut alike.

    V = carvings, P = parts of all of them, U = sets of the bits of a card. A set is a number. It has a bit for each slot
    and, where cards are cut by templates, further bits: those that are set say which template is in force.
    """

    run: Ints2  # [N_RUN, V] see RUN_*; the first carving has no parts
    parts: Ints2  # [P, N_PART] see PART_*, those first that are to be tried first
    sizes: Ints2  # [V, SIZES_MAX] the different MiB of the parts, ascending, then ``NO_SIZE``
    room: (
        Ints2  # [V, U] by the bits in use: the most milli of a card that can still be cut out of it
    )


# Of a carving with more sizes of parts only the first ones are in Carvings.sizes.
SIZES_MAX = 8
NO_SIZE = 1 << 62
# Positions in Carvings.run: first row and number of rows in Carvings.parts, and the MiB of the largest part.
RUN_FIRST, RUN_COUNT, RUN_MOST_MIB, N_RUN = range(4)
# Positions in Carvings.parts: MiB and core percent of the part, the bits that it sets, the milli of a card that it is
# worth, and the bits none of which may be in use when it is cut. Without templates these are the bits that it sets.
PART_MIB, PART_CORES, PART_BITS, PART_MILLI, PART_CLASH, N_PART = range(6)


class SlotCounters(Handle):
    """How many parts in use set each bit of the cards that can be cut: a run of counters for each such card."""

    used: Ints1  # [E] E = bits of all cards


# The links of pools with more cards are not known.
LINKED_MAX = 64


class Links(Handle):
    """How well cards are linked with the others of their pool."""

    scores: Ints1  # [L] for each card of a pool a run of scores with the cards of the pool, in their order
