"""Runs of neighbouring rows: given out, given back, and given out again by size."""

from __future__ import annotations


def round_up(n: int) -> int:
    """``n`` rounded up to a power of two: a run of few sizes is found again, whatever is asked for."""
    return 1 << (n - 1).bit_length() if n else 0


class Runs:
    """Which rows of a table are in use, where what belongs together lies side by side.

    Attributes:
        end: rows given out so far, those that were given back included.
    """

    def __init__(self) -> None:
        self.end = 0
        self._free: dict[int, list[int]] = {}

    def take(self, n: int) -> int:
        """The first of ``n`` rows; of none it is 0."""
        if not n:
            return 0
        free = self._free.get(n)
        if free:
            return free.pop()
        self.end += n
        return self.end - n

    def give_back(self, first: int, n: int) -> None:
        """Rows that another run of as many may have."""
        if n:
            self._free.setdefault(n, []).append(first)

    def list_free(self) -> set[int]:
        """The rows that were given back."""
        return {row for n, firsts in self._free.items() for a in firsts for row in range(a, a + n)}
