"""The time of day, for what the API or another process reads. Waiting goes by the loop's time."""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    """Return this moment in UTC."""
    return dt.datetime.now(dt.UTC)
