"""Small arrays that many pods have in common: made once, and written by nobody."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from scheduler.schema.columns import Flags, Ints


@lru_cache(maxsize=1024)
def ints(*values: int) -> Ints:
    """These, in an array."""
    return np.array(values, np.int64)


@lru_cache(maxsize=64)
def every(size: int) -> Flags:
    """So many, all of them set."""
    return np.ones(size, np.bool_)
