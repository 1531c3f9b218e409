"""Fair parts, slowly and obviously: water rises in all glasses at once, each as wide as its weight, and stops at a brim."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def find_parts(
    total: int, wanted: Sequence[int], owed: Sequence[int], weights: Sequence[int]
) -> list[Fraction]:
    """What each gets of a total: first of what it is owed, then of the rest by weight, and never more than it wants."""
    first = pour(total, [min(one) for one in zip(wanted, owed, strict=True)], owed)
    more = [Fraction(want) - part for want, part in zip(wanted, first, strict=True)]
    second = pour(total - sum(first), more, weights)
    return [a + b for a, b in zip(first, second, strict=True)]


def pour(
    total: int | Fraction, brims: Sequence[int | Fraction], widths: Sequence[int]
) -> list[Fraction]:
    """Pour water into glasses until it is used up or every glass with a width is full."""
    level, left = Fraction(0), Fraction(total)
    # The level at which each glass is full.
    full = sorted(
        {Fraction(brim) / width for brim, width in zip(brims, widths, strict=True) if width}
    )
    for at in full:
        rising = [
            w for brim, w in zip(brims, widths, strict=True) if w and Fraction(brim) / w > level
        ]
        needed = (at - level) * sum(rising)
        if needed >= left:
            level += left / sum(rising) if rising else 0
            break
        level, left = at, left - needed
    return [min(Fraction(brim), level * width) for brim, width in zip(brims, widths, strict=True)]
