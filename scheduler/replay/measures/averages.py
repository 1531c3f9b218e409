"""Means of figures of arrivals, without unknown values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler.replay.experiment import Floats

Value = str | int | float | bool | None
Record = dict[str, Value]
Flags = NDArray[np.bool_]
Steps = NDArray[np.int_]


def find_mean(values: Floats, weights: Floats | None = None) -> float | None:
    """Find the mean without nan; None when nothing is left."""
    weights = np.ones(len(values)) if weights is None else weights
    is_known = ~np.isnan(values)
    total = float(weights[is_known].sum())
    return float((values * weights)[is_known].sum()) / total if total > 0 else None


def find_percentile(values: Floats, percent: int) -> float | None:
    """Find the percentile; None when there are no values."""
    return float(np.percentile(values, percent)) if len(values) else None


def average_by_step(step: Steps, values: Floats) -> tuple[Floats, Floats]:
    """Return the steps, and the mean of ``values`` in each without nan; nan when all values are."""
    is_known = ~np.isnan(values)
    n = np.bincount(step, weights=is_known)
    total = np.bincount(step, weights=np.where(is_known, values, 0.0))
    means = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    steps = np.unique(step)
    return steps.astype(np.float64), means[steps]


def find_at_step(steps: Steps, values: Floats, step: int) -> float | None:
    """Find the mean of the values at one of ascending steps; if it has no value, the last value before it.

    None before the first step and beyond the last.
    """
    if not steps[0] <= step <= steps[-1]:
        return None
    is_there = steps == step
    last = int(np.searchsorted(steps, step, side="right")) - 1
    return find_mean(values[is_there] if is_there.any() else values[last : last + 1])
