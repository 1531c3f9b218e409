"""What shares are worth: dual prices of the cutting-stock program 'fewest cards that hold all shares seen'.

Minimise Σ x_p over the patterns p of sizes that fit in one card, subject to Σ a_up · x_p ≥ n_u for every
size u seen n_u times. Patterns are made as they are needed: Gilmore and Gomory, "A linear programming
approach to the cutting-stock problem", Operations Research 9 (1961): revised simplex, whose entering
column is the knapsack of greatest dual price.
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c
from scheduler.schema.handles import Floats1, Floats2, Ints1

_TOLERANCE = 1e-9
# Each size needs a few patterns; what is known after so many rounds is good enough.
_ROUNDS_MAX = 1000


@kernel
def find_values(
    sizes: Ints1, counts: Floats1, out: Floats1, inverse: Floats2, work: Floats2, last: Ints1
) -> int:
    """Fill ``out`` [WHOLE + 1]: the most, in milli-GPU, that a free remainder of x milli can hold.

    Args:
        sizes: [m] milli of a card, distinct, 1..999.
        counts: [m] how often each was seen, above 0.
        out: written.
        inverse: [m, m] working space, the inverse of the basis.
        work: [3, m] working space: how often each pattern of the basis is cut, duals, the entering column.
        last: [WHOLE + 1] working space of the knapsack.

    Returns:
        Rounds taken, or -1 when it did not end; then ``out`` is what the patterns so far say.

    O(rounds · (WHOLE · m + m²)).
    """
    m = sizes.size
    amount, duals, column = work[0], work[1], work[2]
    for i in range(m):
        for j in range(m):
            inverse[i, j] = 0.0
        # Start: cards cut into one size each.
        inverse[i, i] = 1.0 / (c.WHOLE // sizes[i])
        # Demands a little apart: a tie in the ratio test could go in circles.
        amount[i] = counts[i] * (1 + _TOLERANCE * (i + 1)) * inverse[i, i]
    for rounds in range(_ROUNDS_MAX):
        for u in range(m):
            duals[u] = 0.0
            for i in range(m):
                duals[u] += inverse[i, u]
        _solve_knapsack(sizes, duals, out, last)
        if out[c.WHOLE] <= 1 + _TOLERANCE:
            _round_to_milli(out)
            return rounds
        leaving = _find_entering(sizes, inverse, amount, column, last)
        if leaving < 0:
            break
        _pivot(inverse, amount, column, leaving)
    _round_to_milli(out)
    return -1


@part
def _round_to_milli(out: c.Floats) -> None:
    for x in range(out.size):
        out[x] *= c.WHOLE


@part
def _solve_knapsack(sizes: c.Ints, duals: c.Floats, out: c.Floats, last: c.Ints) -> None:
    """Find the best value of every remainder and, in ``last``, the size that was put in last, -1 for none."""
    out[0] = 0.0
    last[0] = -1
    for x in range(1, c.WHOLE + 1):
        best, which = out[x - 1], -1
        for u in range(sizes.size):
            if sizes[u] <= x:
                found = out[x - sizes[u]] + duals[u]
                if found > best + 1e-12:
                    best, which = found, u
        out[x] = best
        last[x] = which


@part
def _find_entering(
    sizes: c.Ints, inverse: c.Floats, amount: c.Floats, column: c.Floats, last: c.Ints
) -> int:
    """Find the column of the best pattern in terms of the basis; return the row that leaves, -1 for none."""
    m = sizes.size
    for i in range(m):
        column[i] = 0.0
    x = c.WHOLE
    while x > 0:
        u = last[x]
        if u < 0:
            x -= 1
            continue
        for i in range(m):
            column[i] += inverse[i, u]
        x -= sizes[u]
    leaving, least = -1, 0.0
    for i in range(m):
        if column[i] > _TOLERANCE:
            ratio = amount[i] / column[i]
            if leaving < 0 or ratio < least:
                leaving, least = i, ratio
    return leaving


@part
def _pivot(inverse: c.Floats, amount: c.Floats, column: c.Floats, leaving: int) -> None:
    m = column.size
    pivot = column[leaving]
    for j in range(m):
        inverse[leaving, j] /= pivot
    amount[leaving] /= pivot
    for i in range(m):
        if i != leaving and column[i] != 0:
            for j in range(m):
                inverse[i, j] -= column[i] * inverse[leaving, j]
            amount[i] -= column[i] * amount[leaving]
