"""Something that cannot be read: since when, and what the API server said."""

from __future__ import annotations

import time
from typing import NamedTuple

from scheduler.kube import answers


class Trouble(NamedTuple):
    """A row of failures of one thing.

    Attributes:
        since: monotonic time of the first.
        message: the last.
        is_refused: the API server knows the caller and says no, or does not know the caller.
    """

    since: float
    message: str
    is_refused: bool


def add_failure(before: Trouble | None, error: Exception) -> Trouble:
    """The trouble after one more failure."""
    since = time.monotonic() if before is None else before.since
    return Trouble(since, str(error) or repr(error), answers.is_refused(error))
