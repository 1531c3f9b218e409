"""Small arrays that many pods have in common: each is made once, and nobody writes to it.

They are writable all the same: to numba, an array that is not has another type.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from scheduler.schema.columns import Flags, Ints
from scheduler.schema.handles import share


@lru_cache(maxsize=1024)
def ints(*values: int) -> Ints:
    """An array of these values."""
    return share(np.array(values, np.int64))


@lru_cache(maxsize=64)
def curve(points: tuple[tuple[int, int], ...]) -> Ints:
    """[2, points] utilization percent and score 0..100, of points whose score is 0..10."""
    return share(np.ascontiguousarray((np.array(points, np.int64) * (1, 10)).T))


@lru_cache(maxsize=64)
def every(size: int) -> Flags:
    """An array of so many flags, all of them set."""
    return share(np.ones(size, np.bool_))
