"""Trouble with something that cannot be read: since when, and what the API server said."""

from __future__ import annotations

import time
from typing import NamedTuple

from scheduler.kube import answers


class Trouble(NamedTuple):
    """Failures of one thing, one after another.

    Attributes:
        since: the monotonic time of the first failure.
        message: the message of the last failure.
        is_refused: whether the API server does not allow the call, or does not know the caller.
    """

    since: float
    message: str
    is_refused: bool


def add_failure(before: Trouble | None, error: Exception) -> Trouble:
    """Return the trouble after one more failure."""
    since = time.monotonic() if before is None else before.since
    return Trouble(since, str(error) or repr(error), answers.is_refused(error))
