"""What explanations are read from."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.cycle.schedule import Cycle
from scheduler.telling.advice.asking import Asking
from scheduler.waiting.pending import Pending


class Scene(NamedTuple):
    """The state and what waits; an explanation leaves them as they are.

    Attributes:
        asking: the questions.
        cycle: places pods, in trials.
    """

    asking: Asking
    cycle: Cycle
    pending: Pending
