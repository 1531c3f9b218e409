"""Fair parts: what each team would have of a resource if everything could be divided at will.

A team is first given what it is owed, as far as it has work for it. What is left is divided among those that have work
for more, by their weights; a team that has enough leaves the rest to the others (weighted max-min fairness).
"""

from __future__ import annotations

import numpy as np

from scheduler.replay.experiment import Floats


def find_parts(total: Floats, wanted: Floats, owed: Floats, weights: Floats) -> Floats:
    """Find [T, S] the fair parts of T teams at S moments.

    Args:
        total: [S] what there is.
        wanted: [T, S] what each team has work for.
        owed: [T] what each team is owed. Where that is more than there is, each gets its share of it.
        weights: [T] by which the rest is divided.
    """
    first = divide(total, np.minimum(wanted, owed[:, None]), owed)
    return first + divide(total - first.sum(axis=0), wanted - first, weights)


def divide(total: Floats, wanted: Floats, weights: Floats) -> Floats:
    """Divide [S] totals among [T, S] wants by [T] weights, and give no team more than it wants; return [T, S]."""
    parts = np.zeros_like(wanted)
    # Each team with a weight takes part until it has what it wants; in each round at least one of them gets there.
    for _ in range(len(weights)):
        open_ = np.where(wanted > parts, weights[:, None], 0.0)
        sums = open_.sum(axis=0)
        left = np.maximum(0.0, total - parts.sum(axis=0))
        level = np.divide(left, sums, out=np.zeros_like(left), where=sums > 0)
        given = open_ * level
        is_full = (open_ > 0) & (given >= wanted - parts)
        full = np.where(is_full, wanted - parts, 0.0)
        # Where no team has enough, what is left is divided; else those that have enough go first.
        parts += np.where(is_full.any(axis=0), full, given)
    return parts
