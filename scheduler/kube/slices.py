"""How much the engine may do in one turn of the loop: a slice of time, counted in pieces of work."""

from __future__ import annotations

import time
from collections.abc import Callable

from scheduler.engine.allowance import Work

# Streams and binds get their turn at least this often.
SECONDS = 0.01
# The least time for looks at waiting pods, and for decisions.
_OWN_SECONDS = 0.003
# A step takes about so long. None is begun that would not come to its end within the slice.
_STEP_SECONDS = 0.003


class Slice:
    """Allows pieces of work until their time is over; half of the slice is for work beside the decisions.

    One expensive piece may take longer than the slice. The kinds of work after it still get a part of their own: else
    a pod that now fits would never be looked at while others create expensive pods without end. Work that takes longer than
    the slice has steps: it pauses when there is no time for one more.

    Attributes:
        pods: the most pods to decide for.
        spent: how many pieces of each kind of work were allowed.
        decided_from: when the first batch was begun, by ``time.perf_counter``; 0 if none was. A decision takes
            less than a tick of uvloop's clock, which is a millisecond.
    """

    def __init__(self, clock: Callable[[], float], pods: int) -> None:
        now = clock()
        self._clock = clock
        self._until = [
            now + SECONDS / 2,
            now + SECONDS / 2,
            now + SECONDS,
            now + SECONDS / 2,
            now + SECONDS - _STEP_SECONDS,
        ]
        self._begun = [True, False, False, False, False]
        self.pods = pods
        self.spent = [0] * len(Work)
        self.decided_from = 0.0

    def allows(self, work: Work) -> bool:
        """Whether there is time for one more piece."""
        now = self._clock()
        if not self._begun[work]:
            self._begun[work] = True
            self._until[work] = max(self._until[work], now + _OWN_SECONDS)
        if work == Work.BATCH and not self.decided_from:
            self.decided_from = time.perf_counter()
        is_allowed = now < self._until[work]
        self.spent[work] += is_allowed
        return is_allowed
