"""Bars: GPUs by node, money by resource, what the nodes hold by mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.audit.page import parts
from scheduler.audit.page.parts import Bar
from scheduler.audit.words import FIGURES, HELD, TITLES, dollars, rows_of_modes, short, whole

Json = dict[str, Any]
# Nobody reads more bars than these; the rest is told in words, and each node is in the fleet.
NODES_MAX = 40
_OF_NODES = (
    ("used", "used"),
    ("usable", "usable, unused"),
    ("stranded", "stranded"),
    ("closed", FIGURES["closed"]),
)
_GPU = "gpuCompute"


def nodes(rows: Sequence[Json]) -> str:
    """GPUs of each node: used, usable, stranded, out of service; those with the most stranded, the most first."""
    with_gpus = [row for row in rows if row["capacity"][_GPU] > 0]
    if not with_gpus:
        return "<p>No node has GPUs.</p>"
    ordered = sorted(with_gpus, key=lambda row: (-row["stranded"][_GPU], row["name"]))
    shown, others = ordered[:NODES_MAX], ordered[NODES_MAX:]
    drawn = [
        Bar(
            row["name"],
            [(kind, row[kind][_GPU]) for kind, _ in _OF_NODES],
            f"{short(row['stranded'][_GPU])} of {short(row['capacity'][_GPU])}",
        )
        for row in shown
    ]
    chart = parts.bars("GPUs by node, with how many are stranded", drawn, _OF_NODES)
    if not others:
        return chart
    rest = sum(row["stranded"][_GPU] for row in others)
    told = (
        f"The chart shows {len(shown)} of {len(ordered):,} nodes with GPUs, those with the most stranded; "
        f"the other {len(others):,} strand {short(rest)} GPUs in all."
    )
    return chart + parts.soft(told)


def money(total: Json) -> str:
    """What is usable and what is stranded, in money a month, by resource."""
    drawn = [
        Bar(
            title,
            [
                ("usable", total["usableByDimension"][key]),
                ("stranded", total["moneyByDimension"][key]),
            ],
            dollars(total["usableByDimension"][key] + total["moneyByDimension"][key]),
        )
        for key, title in TITLES.items()
    ]
    legend = (("usable", "usable, unused"), ("stranded", "stranded"))
    return parts.bars("Dollars a month", drawn, legend)


def modes(replay: Json) -> str:
    """What the nodes hold with each mode, of GPUs or else of cores: now, then in every order, then in some."""
    key = _GPU if replay["held"][_GPU] else "cpu"
    unit, now = HELD[key], replay["held"][key]
    drawn = [Bar("as it is now", [("used", now)], f"{whole([now])} {unit}")]
    for name, one in rows_of_modes(replay):
        values = one["held"][key]
        certain = min(values)
        drawn.append(
            Bar(
                name,
                [("used", now), ("usable", certain - now), ("s1", max(values) - certain)],
                f"{whole(values)} {unit}",
            )
        )
    legend = (
        ("used", "as it is now"),
        ("usable", "more in every order"),
        ("s1", "more in some orders"),
    )
    return parts.bars(f"{unit} held if each mode fills up the nodes", drawn, legend)
