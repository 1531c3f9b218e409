"""Numbers of decisions that are drawn by lot."""

from __future__ import annotations


class Lots:
    """Counts decisions by lot, beginning with a seed; no two decisions of a seed have the same number.

    Attributes:
        drawn: the number of the last decision.
    """

    def __init__(self) -> None:
        self.drawn = 0

    def begin(self, seed: int) -> None:
        """Begin with the numbers of a seed."""
        self.drawn = seed << 32

    def draw(self) -> int:
        """Draw the number of the next decision."""
        self.drawn += 1
        return self.drawn
