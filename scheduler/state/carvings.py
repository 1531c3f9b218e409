"""What cards can be cut into: one entry for all cards that are cut alike, and the counters of each such card."""

from __future__ import annotations

import numpy as np

from scheduler.api.cards import SLOTS_MAX, Part, Place
from scheduler.schema import columns as c
from scheduler.state.structures.runs import Runs

Parts = tuple[Part, ...]


class CarvingTable:
    """Owns and grows ``columns.Carvings`` and ``columns.Counters``.

    The counters of a card are its slots: each part takes one of each slot that it covers, and a slot is there once.
    """

    def __init__(self) -> None:
        self.carvings = c.Carvings(
            run=np.zeros((2, 1), np.int64),
            parts=np.zeros((0, c.N_PART), np.int64),
            uses=np.zeros((0, 2), np.int64),
        )
        # The counter of cards that are not cut is none of any card.
        self.counters = c.Counters(total=np.zeros(1, np.int64), used=np.zeros(1, np.int64))
        self._numbers: dict[Parts, int] = {(): 0}
        self._places: list[Place] = []
        self._runs = Runs()
        self._runs.take(1)

    def number_parts(self, parts: Parts) -> int:
        """Return the number of a carving, 0 for cards that are not cut."""
        known = self._numbers.get(parts)
        if known is not None:
            return known
        old, first = self.carvings, len(self._places)
        rows, uses = [], old.uses.tolist()
        for part in parts:
            rows.append((part.mib, part.cores, len(uses), part.size))
            uses += [(slot, 1) for slot in range(part.start, part.start + part.size)]
            self._places.append(Place(part.profile, part.start, part.size))
        self.carvings.adopt(
            c.Carvings(
                run=np.ascontiguousarray(np.column_stack((old.run, (first, len(parts))))),
                parts=np.vstack((old.parts, np.array(rows, np.int64))),
                uses=np.array(uses, np.int64).reshape(-1, 2),
            )
        )
        number = self._numbers[parts] = len(self._numbers)
        return number

    def take_counters(self) -> int:
        """Take the counters of a card, of which nothing is in use, and return the first."""
        first = self._runs.take(SLOTS_MAX)
        size = self.counters.used.size
        if self._runs.end > size:
            more = max(self._runs.end, 2 * size) - size
            total, used = self.counters.total, self.counters.used
            self.counters.adopt(c.Counters(np.pad(total, (0, more)), np.pad(used, (0, more))))
        self.counters.total[first : first + SLOTS_MAX] = 1
        return first

    def give_back(self, first: int) -> None:
        """Give back the counters of a card that is gone and unused."""
        self._runs.give_back(first, SLOTS_MAX)

    def find_place(self, part: int) -> Place | None:
        """Return the place of a part, None for none."""
        return self._places[part] if part >= 0 else None

    def list_places(self, carving: int) -> list[Place]:
        """List the places of the parts of a carving."""
        first, n = self.carvings.run[:, carving].tolist()
        return self._places[first : first + n]

    def find_part(self, carving: int, place: Place | None) -> int:
        """Find the part of a carving that is at a place; ``NO_PART`` for none."""
        if place is None or not carving:
            return c.NO_PART
        first, n = self.carvings.run[:, carving].tolist()
        there = (part for part in range(first, first + n) if self._places[part] == place)
        return next(there, c.NO_PART)

    def find_largest(self, carving: int) -> int:
        """Find the part of a carving that takes the most slots."""
        first, n = self.carvings.run[:, carving].tolist()
        sizes = self.carvings.parts[first : first + n, c.PART_USES]
        return int(first + np.argmax(sizes))
