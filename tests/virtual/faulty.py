"""An API server of which seven answers in ten go wrong, of seven kinds, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TypeVar

from scheduler.errors import ApiError

T = TypeVar("T")
_QUICK_SECONDS = 0.01


class Faults:
    """Each of seven kinds of faults befalls one request of ten."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    async def serve(self, answer: Callable[[], T], patience: float) -> T:
        """What ``answer`` gives, unless a fault befalls the request; its sender waits for so many seconds.

        Raises:
            ApiError: a fault, before or after the request took effect.
        """
        fault = self._random.randrange(10)
        await asyncio.sleep(_QUICK_SECONDS)
        if fault < 4:
            raise ApiError((429, 500, 503, 0)[fault], "Refused", "before it took effect")
        if fault == 4:
            answer()
            raise ApiError(500, "Lost", "after it took effect")
        if fault == 5:
            await asyncio.sleep(patience)
            raise ApiError(0, "Timeout", "it never took effect")
        if fault == 6:
            answer()
            await asyncio.sleep(patience)
            raise ApiError(0, "Timeout", "it took effect")
        return answer()
