"""Times as the API server writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def read_time(text: str) -> int | None:
    """Read a time of the API server, in seconds since 1970; None for a text that is none."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    # The API server writes times in UTC; a time without a zone would mean another time on every machine.
    return int(at.timestamp()) if at.tzinfo else None


def write_time(at: float) -> str:
    """Write a time in seconds since 1970 as the API server does, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
