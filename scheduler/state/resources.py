"""Rows of the resource matrix: a resource has one while some node offers it."""

from __future__ import annotations


class Resources:
    """Resource names by row.

    Attributes:
        values: the name of each row; empty where none is.
        generation: rises whenever a resource gets or loses its row, beginning with 1.
    """

    def __init__(self, *always: str) -> None:
        """``always``: the names of the first rows, which stay."""
        self.values = list(always)
        self.generation = 1
        self._rows = {name: row for row, name in enumerate(always) if name}
        self._free: list[int] = []

    def find(self, name: str) -> int:
        """The row of a resource, -1 when it has none."""
        return self._rows.get(name, -1)

    def take(self, name: str) -> int:
        """A row for a resource that has none."""
        row = self._free.pop() if self._free else len(self.values)
        self.values[row : row + 1] = [name]
        self._rows[name] = row
        self.generation += 1
        return row

    def give_back(self, name: str) -> None:
        """No node offers the resource any more; all figures of its row are zero."""
        row = self._rows.pop(name)
        self.values[row] = ""
        self._free.append(row)
        self.generation += 1
