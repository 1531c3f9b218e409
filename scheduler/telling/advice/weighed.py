"""The losses of pods, and why one node comes before another: as plain values and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.api import names
from scheduler.plugins import words
from scheduler.telling.advice.losses import MILLI_NODE, Loss

Json = Mapping[str, Any]
# The words for the units of losses.
UNITS = {MILLI_NODE: "thousandths of an average empty node"}
_ROUND = 3
# A smaller loss would be written as 0.
_TOLD = 0.05
_OBJECTIVES = {
    "spread": "the one that is less in use comes first (objective spread)",
    "pack": "the one that is more in use comes first (objective pack)",
    "": "the first by name comes first",
}


def make_values(loss: Loss) -> dict[str, Any]:
    """Make the values of a loss for ``-o json``."""
    return {
        "unit": loss.unit,
        "total": round(loss.total, _ROUND),
        "terms": {
            name: round(lost, _ROUND) for name, lost in loss.terms.items() if abs(lost) >= _TOLD
        },
        "places": [
            {
                "asks": one.requests,
                "text": write_amounts(one.requests),
                "lost": round(one.lost, _ROUND),
            }
            for one in loss.places
            if one.lost >= _TOLD
        ],
    }


def write_amounts(amounts: Mapping[str, int]) -> str:
    """Write amounts such as ``4 cpu, 16Gi memory``."""
    # The resource ``pods`` is left out, unless the pod requests nothing else.
    told = {name: amount for name, amount in amounts.items() if name != names.PODS} or amounts
    return ", ".join(f"{words.write_amount(name, amount)} {name}" for name, amount in told.items())


def write_terms(loss: Json) -> str:
    """Write ``246.2 = places for typical pods 208.7, what was in use 37.5``."""
    told = ", ".join(f"{name} {write_figure(lost)}" for name, lost in loss["terms"].items())
    return write_figure(loss["total"]) + (f" = {told}" if told else "")


def write_loss(loss: Json) -> str:
    """Write the same with the unit.

    ``246.2 thousandths of an average empty node: places for typical pods 208.7, what was in use 37.5``.
    """
    total, _, told = write_terms(loss).partition(" = ")
    return f"{total} {UNITS.get(loss['unit'], loss['unit'])}{f': {told}' if told else ''}"


def write_comparison(best: Sequence[Json], weights: Mapping[str, int], objective: str) -> str:
    """Write why the first of the best nodes comes before the second, by their scores."""
    first, then = best[:2]
    above = [
        name
        for name, weight in weights.items()
        if not weight and first["scores"].get(name) != then["scores"].get(name)
    ]
    if above:
        return f"{first['node']} comes before {then['node']}: {above[0]} decides before totals are compared."
    apart = {
        name: first["weighted"][name] - then["weighted"].get(name, 0.0)
        for name in first["weighted"]
    }
    apart = {name: one for name, one in apart.items() if abs(one) >= 10**-_ROUND}
    if not apart:
        equal = first["preference"] == then["preference"]
        which = _OBJECTIVES["" if equal else objective]
        return f"{first['node']} and {then['node']} score alike: {which}."
    ordered = sorted(apart.items(), key=lambda one: -one[1])
    scores = ", ".join(f"{name} {one:+.6g}" for name, one in ordered)
    return f"{first['node']} comes before {then['node']} by {sum(apart.values()):.6g} points: {scores}."


def write_figure(value: float) -> str:
    """Write a figure with one decimal, unless the decimal is 0."""
    found = f"{value:,.1f}".removesuffix(".0")
    return "0" if found == "-0" else found
