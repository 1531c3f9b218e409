"""How many pods of each class are on each node row, as columns."""

from __future__ import annotations

import numpy as np

from scheduler.schema.columns import Ints
from scheduler.state.structures.growing import Growing

# If there are more than so many places for each class that is counted, only the places of these classes are read.
_PLACES_A_CLASS = 100


class Places:
    """A place is a class and a row that has pods of it."""

    def __init__(self) -> None:
        self._class, self._row, self._n = Growing(), Growing(), Growing()
        self._free: list[int] = []
        # By class: the place of each of its rows.
        self._of_class: dict[int, dict[int, int]] = {}

    def change(self, number: int, row: int, by: int) -> bool:
        """Add to the pods of a class on a row; return whether the class has any pods."""
        rows = self._of_class.setdefault(number, {})
        place = rows.get(row)
        if place is None:
            place = rows[row] = self._open(number, row)
        self._n.all[place] += by
        if not self._n.all[place]:
            del rows[row]
            self._free.append(place)
            if not rows:
                del self._of_class[number]
                if not self._of_class:
                    self._class, self._row, self._n = Growing(), Growing(), Growing()
                    self._free = []
                return False
        return True

    def get_rows(self, number: int) -> dict[int, int]:
        """Return how many pods of a class are on each row that has any."""
        there = self._of_class.get(number, {})
        return {row: int(self._n.all[place]) for row, place in there.items()}

    def sum_by_row(self, numbers: Ints, weights: Ints) -> Ints:
        """Sum up [rows] the weights of the pods of these classes on every row, up to the last row that has any.

        Args:
            numbers: [k] classes, none twice.
            weights: [k] the weight of a pod of each class.
        """
        if numbers.size * _PLACES_A_CLASS < self._n.n:
            found = [
                (self._row.all[place], weight * self._n.all[place])
                for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True)
                for place in self._of_class.get(number, {}).values()
            ]
            rows, amounts = np.array(found, np.int64).reshape(-1, 2).T
        else:
            weight_of = np.zeros(
                1 + max(numbers.max(initial=0), self._class.used.max(initial=0)), np.int64
            )
            weight_of[numbers] = weights
            amounts = weight_of[self._class.used] * self._n.used
            places = np.flatnonzero(amounts)
            rows, amounts = self._row.all[places], amounts[places]
        # Sums of whole numbers below 2**53 are exact.
        return np.bincount(rows, amounts).astype(np.int64)

    def _open(self, number: int, row: int) -> int:
        if self._free:
            place = self._free.pop()
            self._class.all[place], self._row.all[place] = number, row
            return place
        self._class.put(number)
        self._row.put(row)
        self._n.put(0)
        return self._n.n - 1
