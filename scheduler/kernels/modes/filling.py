"""The best filling: the most that pods of some sizes are worth that share an amount of one resource."""

from __future__ import annotations

from scheduler.kernels._jit import kernel
from scheduler.schema.handles import Floats1, Ints1


@kernel
def find_fillings(sizes: Ints1, worth: Floats1, out: Floats1) -> None:
    """Fill ``out`` [C + 1] with the best value by free cells: an unbounded knapsack. O(C · m).

    Args:
        sizes: [m] cells of a pod, at least 1.
        worth: [m] units of it.
        out: written.
    """
    out[0] = 0.0
    for x in range(1, out.size):
        best = out[x - 1]
        for k in range(sizes.size):
            if sizes[k] <= x:
                best = max(best, out[x - sizes[k]] + worth[k])
        out[x] = best
