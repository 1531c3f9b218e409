"""What parts of cards are worth to the demand: dual prices of the program 'fewest cards that hold all parts seen'.

Minimise Σ x_p over the patterns p of parts that fit in one card beside each other, subject to Σ a_sp · x_p ≥ n_s for every
size s that pods requested n_s times. As in ``kernels/modes/cutting.py`` patterns are made as they are needed: Gilmore and
Gomory, "A linear programming approach to the cutting-stock problem", Operations Research 9 (1961). Here the parts have
places, so the pattern of greatest price is found by the sets of bits that are in use.
"""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c
from scheduler.state.carvings import Sets, fill_sets

# Prices are whole numbers in parts of this number while patterns are compared.
_SCALE = 1 << 20
_TOLERANCE = 1e-4
# Each size needs a few patterns; what is known after so many rounds is good enough.
_ROUNDS_MAX = 100


def compute_prices(sets: Sets, sizes: c.Ints, counts: c.Floats, n_sets: int) -> c.Floats:
    """Compute [S] what a part of each size is worth, as a part of a whole card; 0 for sizes that no pod requests.

    Args:
        sets: [P] for each part the bits that it sets and those that it clashes with.
        sizes: [P] the number of the size of each part.
        counts: [S] how many pods request each size, one of them at least.
        n_sets: the number of sets of bits.

    O(rounds · n_sets · P · parts that fit at once).
    """
    requested = np.flatnonzero(counts > 0)
    # Start: cards that are cut into parts of one size each.
    patterns = np.column_stack(
        [
            _find_pattern(sets, sizes, np.arange(counts.size) == size, n_sets)[1]
            for size in requested
        ]
    )[requested]
    # Demands a little apart: a tie in the ratio test could go in circles.
    demands = counts[requested] * (1 + 1e-9 * np.arange(1, requested.size + 1))
    prices = np.zeros(counts.size)
    for _ in range(_ROUNDS_MAX):
        inverse = np.linalg.inv(patterns)
        prices[requested] = inverse.sum(axis=0)
        best, pattern = _find_pattern(sets, sizes, prices, n_sets)
        if best <= 1 + _TOLERANCE:
            break
        column = inverse @ pattern[requested]
        ratios = np.full(column.size, np.inf)
        np.divide(inverse @ demands, column, out=ratios, where=column > 1e-9)
        patterns[:, ratios.argmin()] = pattern[requested]
    return prices


def compute_room(sets: Sets, sizes: c.Ints, prices: c.Floats, n_sets: int) -> c.Floats:
    """Compute [n_sets] by the bits in use the most that can still be cut, in milli-GPU at these prices."""
    most = fill_sets(sets, _round_prices(sizes, prices), n_sets)
    return most.astype(np.float64) * (c.WHOLE / _SCALE)


def _round_prices(sizes: c.Ints, prices: c.Floats) -> c.Ints:
    """Return [P] the price of each part in whole numbers; rounding errors below 0 are 0."""
    rounded: c.Ints = np.rint(np.maximum(prices, 0.0)[sizes] * _SCALE).astype(np.int64)
    return rounded


def _find_pattern(
    sets: Sets, sizes: c.Ints, prices: c.Floats, n_sets: int
) -> tuple[float, c.Floats]:
    """Find the parts of one card that are worth most together: their worth, and how many [S] of each size they are."""
    worth = _round_prices(sizes, prices)
    most = fill_sets(sets, worth, n_sets).tolist()
    pattern, used = np.zeros(prices.size), 0
    while most[used]:
        size, used = next(
            (size, used | bits)
            for (bits, clash), size, one in zip(sets, sizes.tolist(), worth.tolist(), strict=True)
            if one and not used & clash and one + most[used | bits] == most[used]
        )
        pattern[size] += 1
    return most[0] / _SCALE, pattern
