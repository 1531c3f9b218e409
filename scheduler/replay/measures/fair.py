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
    """Divide [S] totals among [T, S] wants by [T] weights, and give no team more than it wants; return [T, S].

    What each gets is its weight times a level, which is the same for all that want more. Those that want least for their
    weight have enough first: the level is found among them in their order. O(S · T · log T).
    """
    parts = np.zeros_like(wanted)
    has_weight = weights > 0
    if not has_weight.any():
        return parts
    want, weight = wanted[has_weight], weights[has_weight][:, None]
    full = want / weight
    order = np.argsort(full, axis=0, kind="stable")
    before = np.cumsum(np.take_along_axis(want, order, axis=0), axis=0)
    sums = np.cumsum(np.broadcast_to(weight, want.shape)[order, np.arange(want.shape[1])], axis=0)
    # [T, S] the level if those before each have enough: what they leave is divided by the weights of the others.
    left = total - np.concatenate([np.zeros((1, want.shape[1])), before[:-1]])
    rest = sums[-1] - np.concatenate([np.zeros((1, want.shape[1])), sums[:-1]])
    levels = left / rest
    is_found = levels < np.take_along_axis(full, order, axis=0)
    first = is_found.argmax(axis=0)[None, :]
    level = np.where(is_found.any(axis=0), np.take_along_axis(levels, first, axis=0)[0], np.inf)
    parts[has_weight] = np.minimum(want, np.maximum(0.0, level) * weight)
    return parts
