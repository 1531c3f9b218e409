"""How long to wait for an answer before a request is sent again.

Some API servers answer most requests at once and some requests never: long waits would lose much time. Others answer
every request late: short waits would never get an answer. So the first wait is short, a request without an answer makes
the next waits longer, and quick answers make them short again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scheduler.errors import ApiError

_DOUBLINGS_MAX = 6


class Patience:
    """Bounds requests that may be sent again before it is known what became of them.

    Args:
        first: seconds to wait for an answer at first.
    """

    def __init__(self, first: float) -> None:
        self._first = first
        # Requests without an answer in time, less two for each that was answered quickly.
        self._doublings = 0

    @asynccontextmanager
    async def limit(self, most: float) -> AsyncIterator[None]:
        """Bound the time of the block: by what earlier answers suggest, and by ``most`` seconds.

        Raises:
            ApiError: there was no answer in time; what was sent may take effect all the same.
        """
        seconds = min(most, self._first * 2.0**self._doublings)
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise ApiError(0, "Timeout", f"no answer in {seconds:g} s") from error
        finally:
            took = clock() - began
            if took >= seconds:
                self._doublings = min(_DOUBLINGS_MAX, self._doublings + 1)
            elif took < seconds / 4:
                self._doublings = max(0, self._doublings - 2)
