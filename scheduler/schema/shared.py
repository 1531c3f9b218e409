"""Small arrays that many pods have in common: each is made once, and nobody writes to it.

The arrays are writable all the same, because numba gives read-only arrays another type.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from scheduler.schema.columns import Flags, Ints
from scheduler.schema.handles import share_array


@lru_cache(maxsize=1024)
def make_ints(*values: int) -> Ints:
    """Make an array of these values."""
    return share_array(np.array(values, np.int64))


@lru_cache(maxsize=1024)
def make_columns(*rows: tuple[int, ...]) -> Ints:
    """Make an array [figures, rows] of rows of figures."""
    return share_array(np.array(rows, np.int64).T.copy())


@lru_cache(maxsize=64)
def make_curve(points: tuple[tuple[int, int], ...]) -> Ints:
    """Make [2, points] utilization in percent and score 0..100, of points whose score is 0..10."""
    return share_array(np.ascontiguousarray((np.array(points, np.int64) * (1, 10)).T))


@lru_cache(maxsize=64)
def make_all_set(size: int) -> Flags:
    """Make an array of so many flags, all of them set."""
    return share_array(np.ones(size, np.bool_))
