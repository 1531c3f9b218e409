"""Means of what happened to arrivals, leaving out what is not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduler.replay.experiment import Floats

Value = str | int | float | bool | None
Record = dict[str, Value]
Flags = NDArray[np.bool_]
Steps = NDArray[np.int_]


def mean(values: Floats, weights: Floats | None = None) -> float | None:
    """The mean, leaving out nan; None when nothing is left."""
    weights = np.ones(len(values)) if weights is None else weights
    is_known = ~np.isnan(values)
    total = float(weights[is_known].sum())
    return float((values * weights)[is_known].sum()) / total if total > 0 else None


def percentile(values: Floats, percent: int) -> float | None:
    """The percentile; None of nothing."""
    return float(np.percentile(values, percent)) if len(values) else None


def by_step(step: Steps, values: Floats) -> tuple[Floats, Floats]:
    """The steps, and the mean of ``values`` in each, leaving out nan; nan when all are."""
    is_known = ~np.isnan(values)
    n = np.bincount(step, weights=is_known)
    total = np.bincount(step, weights=np.where(is_known, values, 0.0))
    means = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    steps = np.unique(step)
    return steps.astype(np.float64), means[steps]


def at_step(steps: Steps, values: Floats, step: int) -> float | None:
    """The mean of the values at a step of ascending ones; else what the one before has left.

    None before the first and beyond the last.
    """
    if not steps[0] <= step <= steps[-1]:
        return None
    is_there = steps == step
    last = int(np.searchsorted(steps, step, side="right")) - 1
    return mean(values[is_there] if is_there.any() else values[last : last + 1])
