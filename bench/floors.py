"""Floors: what a figure of the benches should reach, and whether it did.

A part declares its floors beside the code that measures. ``make bench`` tells of each whether it was met,
on standard error and under ``floors`` in the JSON; with ``--strict`` it ends with 1 when one was not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Floor(NamedTuple):
    """A figure and the bounds it should keep.

    Attributes:
        figure: where it stands in the result of its part: keys joined by dots, ``*`` for each key of an
            object or each item of a list.
        at_least: the lower bound.
        at_most: the upper bound.
        only: a key and its value; the figures of objects on the way that say otherwise do not count.
    """

    figure: str
    at_least: float = -math.inf
    at_most: float = math.inf
    only: tuple[str, Any] | None = None

    def __str__(self) -> str:
        """The bounds, as ``>= 1.6``."""
        bounds = ((">=", self.at_least), ("<=", self.at_most))
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if math.isfinite(bound))


def judged(part: str, result: Any, floors: Sequence[Floor]) -> list[dict[str, Any]]:
    """Each floor with each figure it is about; one that is about none is not met.

    Args:
        part: the name of the part.
        result: what it measured, as it goes into the JSON.
        floors: those it declares.
    """
    return [
        {
            "figure": f"{part}.{where}",
            "floor": str(floor),
            "found": found,
            # A figure that could not be measured is None or NaN, and below any floor.
            "met": isinstance(found, (int, float)) and floor.at_least <= found <= floor.at_most,
        }
        for floor in floors
        for where, found in (
            list(_figures(result, floor.figure.split("."), floor.only)) or [(floor.figure, None)]
        )
    ]


def _figures(
    at: Any, keys: Sequence[str], only: tuple[str, Any] | None
) -> Iterator[tuple[str, Any]]:
    if isinstance(at, Mapping) and only is not None and at.get(only[0], only[1]) != only[1]:
        return
    if not keys:
        yield "", at
        return
    children = dict(enumerate(at)) if isinstance(at, list) else at
    if not isinstance(children, Mapping):
        return
    for key, child in children.items():
        if keys[0] in {"*", str(key)}:
            for where, found in _figures(child, keys[1:], only):
                yield f"{key}.{where}".rstrip("."), found
