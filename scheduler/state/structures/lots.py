"""Lots: the numbers of decisions that are drawn by lot."""

from __future__ import annotations


class Lots:
    """Counts decisions by lot from a seed on; each has a number that no other of the seed has.

    Attributes:
        drawn: the number of the last one.
    """

    def __init__(self) -> None:
        self.drawn = 0

    def begin(self, seed: int) -> None:
        """Begin with the numbers of a seed."""
        self.drawn = seed << 32

    def draw(self) -> int:
        """The number of the next decision."""
        self.drawn += 1
        return self.drawn
