"""Runs of neighbouring rows, which are given out, given back, and given out again by size."""

from __future__ import annotations


def round_up(n: int) -> int:
    """Round ``n`` up to a power of two: with few sizes, a run that was given back is soon used again."""
    return 1 << (n - 1).bit_length() if n else 0


class Runs:
    """Knows which rows of a table are in use, if rows that belong together are neighbours.

    Attributes:
        end: the number of rows given out so far, with those that were given back.
    """

    def __init__(self) -> None:
        self.end = 0
        self._free: dict[int, list[int]] = {}

    def take(self, n: int) -> int:
        """Take ``n`` rows, and return the first of them; 0 if ``n`` is 0."""
        if not n:
            return 0
        free = self._free.get(n)
        if free:
            return free.pop()
        self.end += n
        return self.end - n

    def give_back(self, first: int, n: int) -> None:
        """Give rows back; they are used for another run of the same size."""
        if n:
            self._free.setdefault(n, []).append(first)

    def list_free(self) -> set[int]:
        """List the rows that were given back."""
        return {row for n, firsts in self._free.items() for a in firsts for row in range(a, a + n)}
