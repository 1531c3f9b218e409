"""Pauses of a long piece of work, at the places in it that call ``take``.

The work runs on a stack of its own (a greenlet), so it may pause at any depth, and in the midst of a trial. Nothing
else may read or change the state until the work has gone on to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import greenlet

# Whether the work may go on without a pause.
GoesOn = Callable[[], bool]
T = TypeVar("T")
# So many items of a long list come between two places where work may pause.
_ITEMS_A_STEP = 64


class Pauses:
    """Runs one piece of work at a time, which may pause."""

    def __init__(self) -> None:
        self._work: greenlet.greenlet | None = None
        # Who runs the work at this moment; None if nobody does.
        self._caller: greenlet.greenlet | None = None
        self._goes_on: GoesOn | None = None

    @property
    def are_open(self) -> bool:
        """Whether a piece of work has begun, and has not come to its end."""
        return self._work is not None

    def begin(self, work: Callable[[], None], goes_on: GoesOn) -> None:
        """Run a piece of work until it ends, or pauses; none may be open."""
        self._work = greenlet.greenlet(work)
        self.resume(goes_on)

    def resume(self, goes_on: GoesOn) -> None:
        """Let the open work go on until it ends, or pauses."""
        work = self._work
        if work is None:
            return
        self._caller = work.parent = greenlet.getcurrent()
        self._goes_on = goes_on
        try:
            work.switch()
        finally:
            self._caller = None
            if work.dead:
                self._work = None

    def go_through(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items, with a place to pause now and then."""
        for i, item in enumerate(items):
            if not i % _ITEMS_A_STEP:
                self.take()
            yield item

    def take(self) -> None:
        """Pause, unless the work may go on. Does nothing outside of it."""
        if self._caller and self._goes_on and not self._goes_on():
            self._caller.switch()
