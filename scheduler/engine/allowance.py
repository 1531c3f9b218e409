"""How much an engine may do in one call of ``decide``.

The allowance of a shell with a clock says no when the time is over, and counts how often it said yes. The decisions
depend on these counts and not on the clock: an allowance that says yes as often gives the same decisions again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol


class Work(IntEnum):
    """The kinds of work that are done in pieces.

    These are: compile an expensive pod, look at waiting pods, decide for a batch, deal with the first one of each queue of a tree.

    A piece that takes long has steps. Where a step is not allowed, the work pauses in the midst of the piece.
    """

    COMPILE = 0
    CHORE = 1
    BATCH = 2
    ROUND = 3
    STEP = 4


class Allowance(Protocol):
    """Says before every piece of work whether there is time for it."""

    @property
    def pods(self) -> int:
        """The most pods to decide for; with 0 the engine compiles expensive pods and does nothing else."""

    def allows(self, work: Work) -> bool:
        """Whether one more piece of this kind of work may be done."""


class Unlimited:
    """Allows all work, for shells in virtual time; decisions for at most ``pods`` pods."""

    __slots__ = ("pods",)

    def __init__(self, pods: int = 2**62) -> None:
        self.pods = pods

    def allows(self, work: Work) -> bool:
        """Always true."""
        del work
        return True


class SpentAllowance:
    """Allows as many pieces of each kind of work as another allowance has allowed.

    Attributes:
        pods: the most pods to decide for.
    """

    def __init__(self, pods: int, spent: tuple[int, ...]) -> None:
        """``spent``: how many pieces, by kind of work; the kinds that it leaves out have no bound."""
        self.pods = pods
        self._left = list(spent)

    def allows(self, work: Work) -> bool:
        """True as long as some work of the kind is left."""
        if work >= len(self._left):
            return True
        self._left[work] -= 1
        return self._left[work] >= 0
