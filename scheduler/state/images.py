"""Container images on nodes, found by name; the cost of a lookup grows only with its answer."""

from __future__ import annotations

from array import array
from collections import Counter

import numpy as np

from scheduler.schema import columns as c

# Name and bytes.
Image = tuple[str, int]


class _Nodes:
    """The rows that have an image, and the bytes of the image on each."""

    __slots__ = ("_rows", "_sizes")

    def __init__(self) -> None:
        self._rows, self._sizes = array("q"), array("q")

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, size: int) -> None:
        self._rows.append(row)
        self._sizes.append(size)

    def drop(self, row: int) -> None:
        at = int(np.flatnonzero(np.frombuffer(self._rows, np.int64) == row)[0])
        last_row, last_size = self._rows.pop(), self._sizes.pop()
        if at < len(self._rows):
            self._rows[at], self._sizes[at] = last_row, last_size

    def make_columns(self) -> tuple[c.Ints, c.Ints]:
        return np.array(self._rows, np.int64), np.array(self._sizes, np.int64)


_NONE = _Nodes()


class ImageTable:
    """Which node rows have which images.

    Attributes:
        version: rises with every change.
    """

    def __init__(self) -> None:
        self._on: dict[str, _Nodes] = {}
        # Most nodes have the same images; without sharing, the list of each node would take 25 kB.
        self._shared: dict[Image, Image] = {}
        self._sharers: Counter[Image] = Counter()
        self.version = 0

    def __len__(self) -> int:
        return len(self._on)

    def change_images(
        self, row: int, before: tuple[Image, ...], after: tuple[Image, ...]
    ) -> tuple[Image, ...]:
        """Replace the images of a row; return the new ones in a form that takes little room. No name comes twice."""
        if before == after:
            return before
        self.version += 1
        gone, come = set(before).difference(after), set(after).difference(before)
        for image in gone:
            self._drop(row, image)
        for image in come:
            self._shared.setdefault(image, image)
            self._sharers[image] += 1
            self._on.setdefault(image[0], _Nodes()).add(row, image[1])
        return tuple(map(self._shared.__getitem__, after))

    def find_nodes(self, name: str) -> tuple[c.Ints, c.Ints]:
        """Find [n] the rows that have an image, and [n] its bytes on each."""
        return self._on.get(name, _NONE).make_columns()

    def _drop(self, row: int, image: Image) -> None:
        self._sharers[image] -= 1
        if not self._sharers[image]:
            del self._sharers[image], self._shared[image]
        there = self._on[image[0]]
        there.drop(row)
        if not there:
            del self._on[image[0]]
