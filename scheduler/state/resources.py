"""Rows of the resource matrix: a resource has a row while some node offers it."""

from __future__ import annotations


class Resources:
    """Resource names by row.

    Attributes:
        values: the name of each row; empty for a free row.
        generation: begins with 1 and rises whenever a resource gets or loses its row.
    """

    def __init__(self, *always: str) -> None:
        """``always``: the names of the first rows, which stay."""
        self.values = list(always)
        self.generation = 1
        self._rows = {name: row for row, name in enumerate(always) if name}
        self._free: list[int] = []

    def find(self, name: str) -> int:
        """Return the row of a resource; -1 when it has none."""
        return self._rows.get(name, -1)

    def take(self, name: str) -> int:
        """Take a row for a resource that has none, and return the row."""
        row = self._free.pop() if self._free else len(self.values)
        self.values[row : row + 1] = [name]
        self._rows[name] = row
        self.generation += 1
        return row

    def give_back(self, name: str) -> None:
        """Give back the row of a resource that no node offers any more; all figures of the row are zero."""
        row = self._rows.pop(name)
        self.values[row] = ""
        self._free.append(row)
        self.generation += 1
