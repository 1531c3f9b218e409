"""What cards can be cut into: one entry for all cards that are cut alike, and the slots in use of each such card."""

from __future__ import annotations

import numpy as np

from scheduler.api.cards import SLOTS_MAX, Part, Place
from scheduler.schema import card_parts
from scheduler.schema import columns as c
from scheduler.state.structures.runs import Runs

Parts = tuple[Part, ...]
# The sets of the slots of a card.
N_SETS = 1 << SLOTS_MAX
# The place of the part that takes all slots of a card.
_ALL = Place("", 0, SLOTS_MAX)


class CarvingTable:
    """Owns and grows ``columns.Carvings`` and ``columns.SlotCounters``.

    Attributes:
        sizes: for each carving the MiB of its profiles, ascending, each different figure once.
        fitting: for each carving [len(sizes), N_SETS] by the slots in use how many parts of at least so many MiB fit at
            once, if nothing else is cut.
        worths: for each carving [len(sizes)] the milli of a card that the smallest part of each size is worth.
    """

    def __init__(self) -> None:
        self.carvings = card_parts.Carvings(
            run=np.zeros((card_parts.N_RUN, 1), np.int64),
            parts=np.zeros((0, card_parts.N_PART), np.int64),
            sizes=np.full((1, card_parts.SIZES_MAX), card_parts.NO_SIZE, np.int64),
            room=np.zeros((1, N_SETS), np.int64),
        )
        # Cards that cannot be cut have no counter; the first one is of none.
        self.slots = card_parts.SlotCounters(used=np.zeros(1, np.int64))
        self.sizes: list[tuple[int, ...]] = [()]
        self.fitting: list[c.Ints] = [np.zeros((0, N_SETS), np.int64)]
        self.worths: list[c.Ints] = [np.zeros(0, np.int64)]
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
        rows = [
            (part.mib, part.cores, _make_set(part), part.slices * c.WHOLE // most) for part in parts
        ]
        run = first, len(parts), max(part.mib for part in parts)
        # Behind the parts stands one that takes all slots, for pods of which nobody knows what part they have.
        rows.append((0, 0, (1 << max(part.start + part.size for part in parts)) - 1, 0))
        slots = np.array([_make_set(part) for part in parts], np.int64)
        slices = np.array([part.slices for part in parts], np.int64)
        mib = np.array([part.mib for part in parts], np.int64)
        sizes = tuple(np.unique(mib).tolist())
        self.carvings.adopt(
            card_parts.Carvings(
                run=np.ascontiguousarray(np.column_stack((old.run, run))),
                parts=np.vstack((old.parts, np.array(rows, np.int64))),
                sizes=np.vstack((old.sizes, _pad_sizes(sizes))),
                room=np.vstack((old.room, fill_sets(slots, slices) * c.WHOLE // most)),
            )
        )
        ones = np.ones(len(parts), np.int64)
        fitting = [fill_sets(slots[mib >= size], ones[mib >= size]) for size in sizes]
        self.sizes.append(sizes)
        self.fitting.append(np.array(fitting))
        worths = [slices[mib == size].min() * c.WHOLE // most for size in sizes]
        self.worths.append(np.array(worths, np.int64))
        self._places += [Place(part.profile, part.start, part.size) for part in parts]
        self._places.append(_ALL)
        number = self._numbers[parts] = len(self._numbers)
        return number

    def take_counters(self) -> int:
        """Take the counters of a card of which no slot is in use, and return the first."""
        first = self._runs.take(SLOTS_MAX)
        size = self.slots.used.size
        if self._runs.end > size:
            more = max(self._runs.end, 2 * size) - size
            self.slots.adopt(card_parts.SlotCounters(used=np.pad(self.slots.used, (0, more))))
        return first

    def give_back(self, first: int) -> None:
        """Give back the counters of a card that is gone and unused."""
        self._runs.give_back(first, SLOTS_MAX)

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
        there = (part for part in range(first, first + n) if self._places[part] == place)
        return next(there, c.NO_PART)

    def find_all(self, carving: int) -> int:
        """Find the part of a carving that takes all slots; no pod is given it."""
        first, n, _ = self.carvings.run[:, carving].tolist()
        return int(first + n)


def fill_sets(slots: c.Ints, worth: c.Ints) -> c.Ints:
    """Compute [N_SETS] by the slots in use: the most that the parts are worth which fit beside each other in the rest.

    ``slots`` [P] are the slots of each part, ``worth`` [P] what it is worth. A part may be taken once at its place.
    O(N_SETS · P).
    """
    most = np.zeros(N_SETS, np.int64)
    # A part leads from one set to a larger number, so the larger numbers are known first.
    for used in range(N_SETS - 2, -1, -1):
        is_free = (slots & used) == 0
        if is_free.any():
            most[used] = (worth[is_free] + most[slots[is_free] | used]).max()
    return most


def _pad_sizes(sizes: tuple[int, ...]) -> list[int]:
    more = card_parts.SIZES_MAX - len(sizes)
    return [*sizes, *[card_parts.NO_SIZE] * more][: card_parts.SIZES_MAX]


def _make_set(part: Part) -> int:
    return ((1 << part.size) - 1) << part.start
