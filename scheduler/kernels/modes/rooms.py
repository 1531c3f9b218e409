"""What empty nodes hold: which pods fit on any, and how many of the typical ones there is room for."""

from __future__ import annotations

import math

from scheduler.kernels._jit import kernel
from scheduler.schema.handles import Flags1, Floats1, Floats2
from scheduler.schema.places import ANY


@kernel
def find_fitting(there: Floats2, most: Floats1, amounts: Floats2, out: Flags1) -> None:
    """Write to ``out`` [m] which pods fit on any node. O(m · n · B) at worst, where pods fit nowhere.

    Args:
        there: [n, B] what nodes have.
        most: [B] the most that any has.
        amounts: [m, B] what pods ask.
        out: written.
    """
    n, n_resources = there.shape
    for i in range(out.size):
        out[i] = False
        is_small = True
        for b in range(n_resources):
            is_small = is_small and amounts[i, b] <= most[b]
        if not is_small:
            continue
        for j in range(n):
            holds = True
            for b in range(n_resources):
                if amounts[i, b] > there[j, b]:
                    holds = False
                    break
            if holds:
                out[i] = True
                break


@kernel
def count_rooms(there: Floats2, per: Floats2, beyond: Floats2, out: Floats1) -> None:
    """Add to ``out`` [K] how many whole typical pods all nodes hold. O(n · B · K).

    Args:
        there: [B, n] what nodes have.
        per: [B, K] as in ``Places``.
        beyond: [B, K] as in ``Places``.
        out: added to.
    """
    n_resources, n = there.shape
    for k in range(out.size):
        for j in range(n):
            fits = ANY
            for b in range(n_resources):
                fits = min(fits, there[b, j] * per[b, k] + beyond[b, k])
            out[k] += math.floor(fits)
