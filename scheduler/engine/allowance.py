"""How much an engine may do in one call of ``decide``.

A shell with a clock says no when its time is over, and counts how often it said yes. These counts, and not
the clock, decide: a allowance that says yes just as often gives the same decisions again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol


class Work(IntEnum):
    """What is done in pieces: compiling expensive pods, a look at pods that wait, deciding for a batch."""

    COMPILE = 0
    CHORE = 1
    BATCH = 2


class Allowance(Protocol):
    """Asked before every piece of work."""

    @property
    def pods(self) -> int:
        """The most pods to decide for; with 0, what is expensive is compiled and nothing else done."""

    def allows(self, work: Work) -> bool:
        """Whether one more piece may be done."""


class Unlimited:
    """Everything that there is to do, for shells in virtual time; for at most so many pods."""

    __slots__ = ("pods",)

    def __init__(self, pods: int = 2**62) -> None:
        self.pods = pods

    def allows(self, work: Work) -> bool:
        """Always true."""
        del work
        return True


class SpentAllowance:
    """So many pieces of each kind of work as another allowance has spent.

    Attributes:
        pods: the most pods to decide for.
    """

    def __init__(self, pods: int, spent: tuple[int, ...]) -> None:
        self.pods = pods
        self._left = list(spent)

    def allows(self, work: Work) -> bool:
        """True as long as some work of the kind is left."""
        self._left[work] -= 1
        return self._left[work] >= 0
