"""The time in a world: its steps, and the rounds in them."""

from __future__ import annotations

from datetime import UTC, datetime

# The first second of a world. A step takes so many: its workloads come first, then its rounds are a second each.
EPOCH = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
STEP_SECONDS, ROUNDS_AFTER = 1_000, 500


def time_of(step: int, second: int) -> int:
    """Seconds since 1970 of a second of a step, both from 0; a step's rounds begin at ``ROUNDS_AFTER``."""
    return EPOCH + step * STEP_SECONDS + second


def write_time(seconds: int) -> str:
    """The time as the API writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
