"""What can still be cut out of a set of counters, found by trying every set of devices: the twin of ``state/claims/layouts.py``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

Draw = tuple[int, ...]


def list_choices(left: Draw, draws: Sequence[Draw]) -> list[tuple[int, ...]]:
    """List all sets of draws that fit together in what is left of the counters; each draw may be taken again and again."""

    @cache
    def extend(left: Draw, first: int) -> tuple[tuple[int, ...], ...]:
        found: list[tuple[int, ...]] = [()]
        for i in range(first, len(draws)):
            after = tuple(a - b for a, b in zip(left, draws[i], strict=True))
            if min(after) >= 0:
                found += [(i, *more) for more in extend(after, i)]
        return tuple(found)

    return list(extend(left, 0))


def measure_room(totals: Draw, left: Draw, draws: Sequence[Draw], of: Sequence[Draw] = ()) -> float:
    """The most that can still be cut of some draws, each counted by its part; ``of`` are all that there are."""
    parts = [find_part(totals, draw, of or draws) for draw in draws]
    return max(sum(parts[i] for i in choice) for choice in list_choices(left, draws))


def measure_fitting(totals: Draw, left: Draw, draws: Sequence[Draw]) -> float:
    """How much of each size fits alone, as a mean over the sizes."""
    sizes = sorted({tuple(sorted(draw)) for draw in draws})
    found = [
        measure_room(totals, left, [draw for draw in draws if tuple(sorted(draw)) == size], draws)
        for size in sizes
    ]
    return sum(found) / len(sizes) if sizes else 0.0


def find_part(totals: Draw, drawn: Draw, draws: Sequence[Draw]) -> float:
    """The largest part of a counter that is drawn, of those that any draw takes in part; for want of these the mean of all."""
    parts = [
        (a / b, any(draw[j] not in {0, b} for draw in draws))
        for j, (a, b) in enumerate(zip(drawn, totals, strict=True))
    ]
    split = [part for part, is_split in parts if is_split]
    return max(split) if split else sum(part for part, _ in parts) / len(parts)


def list_reached(totals: Draw, draws: Sequence[Draw]) -> set[Draw]:
    """What can be drawn of the counters by any choice."""
    found = set()
    for choice in list_choices(totals, draws):
        drawn = tuple(sum(draws[i][j] for i in choice) for j in range(len(totals)))
        found.add(drawn)
    return found
