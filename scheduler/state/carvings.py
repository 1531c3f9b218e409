"""What cards can be cut into: one entry for all cards that are cut alike, and the slots in use of each such card."""

from __future__ import annotations

from itertools import combinations, count
from math import comb

import numpy as np

from scheduler.api.cards import NO_TEMPLATE, SLOTS_MAX, TEMPLATES_MAX, Part, Place
from scheduler.schema import card_parts
from scheduler.schema import columns as c
from scheduler.state.structures.runs import Runs

Parts = tuple[Part, ...]
# For each part the bits that it sets and those that it clashes with.
Sets = list[tuple[int, int]]
# The sets of the slots of a card.
_N_SETS = 1 << SLOTS_MAX


def _count_bits(n_templates: int) -> int:
    """Count the bits that tell so many templates apart: half of them are set for each, others for each other."""
    return next(bits for bits in count() if comb(bits, bits // 2) >= n_templates)


# The most bits that a card has, with a counter for each.
_BITS_MAX = SLOTS_MAX + _count_bits(TEMPLATES_MAX)
# The place of the part that takes all slots of a card.
_ALL = Place("", 0, SLOTS_MAX)


class CarvingTable:
    """Owns and grows ``columns.Carvings`` and ``columns.SlotCounters``.

    Attributes:
        sizes: for each carving the MiB of its profiles, ascending, each different figure once.
        fitting: for each carving [len(sizes), U] by the bits in use how many parts of at least so many MiB fit at once,
            if nothing else is cut.
        worths: for each carving [len(sizes)] the milli of a card that the smallest part of each size is worth.
        by_template: for each carving whether its parts are those of templates.
        sets: for each carving the bits of its parts.
        sizes_of_parts: for each carving [P] which of its sizes each part has.
    """

    def __init__(self) -> None:
        self.carvings = card_parts.Carvings(
            run=np.zeros((card_parts.N_RUN, 1), np.int64),
            parts=np.zeros((0, card_parts.N_PART), np.int64),
            sizes=np.full((1, card_parts.SIZES_MAX), card_parts.NO_SIZE, np.int64),
            room=np.zeros((1, _N_SETS), np.int64),
        )
        # Cards that cannot be cut have no counter; the first one is of none.
        self.slots = card_parts.SlotCounters(used=np.zeros(1, np.int64))
        self.sizes: list[tuple[int, ...]] = [()]
        self.fitting: list[c.Ints] = [np.zeros((0, _N_SETS), np.int64)]
        self.worths: list[c.Ints] = [np.zeros(0, np.int64)]
        self.by_template = [False]
        self.sets: list[Sets] = [[]]
        self.sizes_of_parts: list[c.Ints] = [np.zeros(0, np.int64)]
        self._numbers: dict[Parts, int] = {(): 0}
        self._places: list[Place] = []
        self._runs = Runs()
        self._runs.take(1)

    def number_parts(self, parts: Parts) -> int:
        """Return the number of a carving, 0 for cards that cannot be cut."""
        known = self._numbers.get(parts)
        if known is not None:
            return known
        old, first = self.carvings, len(self._places)
        most = max(part.slices for part in parts)
        sets = _make_sets(parts)
        rows = [
            (part.mib, part.cores, bits, part.slices * c.WHOLE // most, clash)
            for part, (bits, clash) in zip(parts, sets, strict=True)
        ]
        run = first, len(parts), max(part.mib for part in parts)
        # Behind the parts stands one that takes all bits, for pods of which nobody knows what part they have.
        every = int(np.bitwise_or.reduce(np.array(sets, np.int64), axis=None))
        rows.append((0, 0, every, 0, every))
        slices = np.array([part.slices for part in parts], np.int64)
        mib = np.array([part.mib for part in parts], np.int64)
        sizes = tuple(np.unique(mib).tolist())
        n_sets = max(_N_SETS, 1 << every.bit_length())
        room = fill_sets(sets, slices, n_sets) * c.WHOLE // most
        self.carvings.adopt(
            card_parts.Carvings(
                run=np.ascontiguousarray(np.column_stack((old.run, run))),
                parts=np.vstack((old.parts, np.array(rows, np.int64))),
                sizes=np.vstack((old.sizes, _pad_sizes(sizes))),
                room=_add_row(old.room, room),
            )
        )
        fitting = [fill_sets(sets, np.where(mib >= size, 1, 0), n_sets) for size in sizes]
        self.sizes.append(sizes)
        self.fitting.append(np.array(fitting))
        worths = [slices[mib == size].min() * c.WHOLE // most for size in sizes]
        self.worths.append(np.array(worths, np.int64))
        self.by_template.append(parts[0].template != NO_TEMPLATE)
        self.sets.append(sets)
        self.sizes_of_parts.append(np.searchsorted(np.array(sizes), mib))
        self._places += [
            Place(part.profile, part.start, part.size, part.template) for part in parts
        ]
        self._places.append(_ALL)
        number = self._numbers[parts] = len(self._numbers)
        return number

    def take_counters(self) -> int:
        """Take the counters of a card of which no part is in use, and return the first."""
        first = self._runs.take(_BITS_MAX)
        size = self.slots.used.size
        if self._runs.end > size:
            more = max(self._runs.end, 2 * size) - size
            self.slots.adopt(card_parts.SlotCounters(used=np.pad(self.slots.used, (0, more))))
        return first

    def give_back(self, first: int) -> None:
        """Give back the counters of a card that is gone and unused."""
        self._runs.give_back(first, _BITS_MAX)

    def find_place(self, part: int) -> Place | None:
        """Return the place of a part, None for ``NO_PART``."""
        return self._places[part] if part != c.NO_PART else None

    def list_places(self, carving: int) -> list[Place]:
        """List the places of the parts of a carving."""
        first, n, _ = self.carvings.run[:, carving].tolist()
        return self._places[first : first + n]

    def find_part(self, carving: int, place: Place | None) -> int:
        """Find the part of a carving that is at a place; ``NO_PART`` for none."""
        if place is None or not carving:
            return c.NO_PART
        first, n, _ = self.carvings.run[:, carving].tolist()
        there = (part for part in range(first, first + n) if self._places[part].is_at(place))
        return next(there, c.NO_PART)

    def find_all(self, carving: int) -> int:
        """Find the part of a carving that takes all bits; no pod is given it."""
        first, n, _ = self.carvings.run[:, carving].tolist()
        return int(first + n)


def fill_sets(sets: Sets, worth: c.Ints, n_sets: int) -> c.Ints:
    """Compute [n_sets] by the bits in use: the most that the parts are worth which fit beside each other in the rest.

    ``sets`` [P] are the bits of each part, ``worth`` [P] what it is worth. A part may be taken once at its place. O(n_sets · P · parts that fit at once).
    """
    most, before = np.zeros(n_sets, np.int64), np.full(n_sets, -1, np.int64)
    used = np.arange(n_sets)
    free = [used[used & clash == 0] for _, clash in sets]
    # Each turn knows of one part more beside the others.
    while not np.array_equal(most, before):
        before = most.copy()
        for (bits, _), rest, of_part in zip(sets, free, worth.tolist(), strict=True):
            if of_part:
                most[rest] = np.maximum(most[rest], of_part + most[rest | bits])
    return most


def _make_sets(parts: Parts) -> Sets:
    """Make for each part the bits that it sets, and those that it clashes with: its slots, and all other templates.

    The code of a template has a bit that the code of any other one lacks, so a part clashes with each other template if
    it clashes with the bits that its own code lacks.
    """
    numbers = sorted({part.template for part in parts if part.template != NO_TEMPLATE})
    n_bits = _count_bits(len(numbers)) if numbers else 0
    chosen = combinations(range(SLOTS_MAX, SLOTS_MAX + n_bits), n_bits // 2)
    codes = {
        number: sum(1 << bit for bit in bits) for number, bits in zip(numbers, chosen, strict=False)
    }
    every = ((1 << n_bits) - 1) << SLOTS_MAX
    sets = []
    for part in parts:
        slots, code = ((1 << part.size) - 1) << part.start, codes.get(part.template, 0)
        sets.append((slots | code, slots | every & ~code))
    return sets


def _add_row(table: c.Ints, row: c.Ints) -> c.Ints:
    """Add a row to a table, and columns of zeros where the row or the table has fewer."""
    n = max(table.shape[1], row.size)
    padded = np.pad(table, ((0, 0), (0, n - table.shape[1])))
    return np.vstack((padded, np.pad(row, (0, n - row.size))))


def _pad_sizes(sizes: tuple[int, ...]) -> list[int]:
    more = card_parts.SIZES_MAX - len(sizes)
    return [*sizes, *[card_parts.NO_SIZE] * more][: card_parts.SIZES_MAX]
