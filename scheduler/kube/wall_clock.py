"""The time of day, where the API or another process reads it; for waiting there is the loop's time."""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    """This moment in UTC."""
    return dt.datetime.now(dt.UTC)
