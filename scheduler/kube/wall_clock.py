"""The time of day, for what the API or another process reads and for the engine. Waiting goes by the loop's time."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable


def now() -> dt.datetime:
    """Return this moment in UTC."""
    return dt.datetime.now(dt.UTC)


def make_steady_clock() -> Callable[[], float]:
    """Make a clock of seconds since 1970 for the running loop. It never goes back, even if the time of day is set back."""
    loop_time = asyncio.get_running_loop().time
    begin = now().timestamp() - loop_time()
    return lambda: begin + loop_time()
