"""Writes what a pod would lose on the best nodes, and why one comes before the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.explain.layout import Line, make_heading
from scheduler.telling.advice import weighed

Json = Mapping[str, Any]


def write_lines(pod: Json) -> Iterator[Line]:
    """Write the lines; none for a pod whose mode does not score losses."""
    best = [one for one in pod["best"] if one["loss"]]
    if not best:
        return
    unit = best[0]["loss"]["unit"]
    yield from make_heading(
        f"What placing the pod there would lose, in {weighed.UNITS.get(unit, unit)}"
    )
    for one in best:
        loss = one["loss"]
        other = (
            "" if loss["unit"] == unit else f" (in {weighed.UNITS.get(loss['unit'], loss['unit'])})"
        )
        yield Line(f"{one['node']}: {weighed.write_terms(loss)}{other}", 2, 2)
        for place in loss["places"]:
            yield Line(
                f"{weighed.write_figure(place['lost'])} for pods like {place['text']}", 6, 2, "dim"
            )
    if any(_is_below_zero(one["loss"]) for one in best):
        yield Line(
            "A figure below 0 means that less is lost with the pod there than without it.", 2, 2
        )
    if len(pod["best"]) > 1:
        yield Line(weighed.write_comparison(pod["best"], pod["weights"], pod["objective"]), 2, 2)


def _is_below_zero(loss: Json) -> bool:
    return any(
        weighed.write_figure(one).startswith("-")
        for one in (loss["total"], *loss["terms"].values())
    )
