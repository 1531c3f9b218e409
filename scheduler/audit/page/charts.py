"""Draws bars: GPUs by node, money by resource, what the nodes hold by mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.audit.page import parts
from scheduler.audit.page.parts import Bar
from scheduler.audit.words import (
    FIGURES,
    HELD,
    TITLES,
    list_modes,
    write_dollars,
    write_short,
    write_whole_range,
)

Json = dict[str, Any]
# The most bars; other nodes are described in words, and each node is in the fleet.
NODES_MAX = 40
_OF_NODES = (
    ("used", "used"),
    ("usable", "usable, unused"),
    ("stranded", "stranded"),
    ("closed", FIGURES["closed"]),
)
_GPU = "gpuCompute"


def draw_nodes(rows: Sequence[Json]) -> str:
    """Draw the GPUs of nodes: used, usable, stranded, out of service; only the nodes that strand the most, in order."""
    with_gpus = [row for row in rows if row["capacity"][_GPU] > 0]
    if not with_gpus:
        return "<p>No node has GPUs.</p>"
    ordered = sorted(with_gpus, key=lambda row: (-row["stranded"][_GPU], row["name"]))
    shown, others = ordered[:NODES_MAX], ordered[NODES_MAX:]
    drawn = [
        Bar(
            row["name"],
            [(kind, row[kind][_GPU]) for kind, _ in _OF_NODES],
            f"{write_short(row['stranded'][_GPU])} of {write_short(row['capacity'][_GPU])}",
        )
        for row in shown
    ]
    chart = parts.draw_bars("GPUs by node, with how many are stranded", drawn, _OF_NODES)
    if not others:
        return chart
    rest = sum(row["stranded"][_GPU] for row in others)
    told = (
        f"The chart shows {len(shown)} of {len(ordered):,} nodes with GPUs, those with the most stranded; "
        f"the other {len(others):,} strand {write_short(rest)} GPUs in all."
    )
    return chart + parts.write_soft(told)


def draw_money(total: Json) -> str:
    """Draw what is usable and what is stranded, in money a month, by resource."""
    drawn = [
        Bar(
            title,
            [
                ("usable", total["usableByDimension"][key]),
                ("stranded", total["moneyByDimension"][key]),
            ],
            write_dollars(total["usableByDimension"][key] + total["moneyByDimension"][key]),
        )
        for key, title in TITLES.items()
    ]
    legend = (("usable", "usable, unused"), ("stranded", "stranded"))
    return parts.draw_bars("Dollars a month", drawn, legend)


def draw_modes(replay: Json) -> str:
    """Draw the GPUs, or else the cores, that the nodes hold with each mode: now, then in every order, then in some."""
    key = _GPU if replay["held"][_GPU] else "cpu"
    unit, now = HELD[key], replay["held"][key]
    drawn = [Bar("as it is now", [("used", now)], f"{write_whole_range([now])} {unit}")]
    for name, one in list_modes(replay):
        values = one["held"][key]
        certain = min(values)
        drawn.append(
            Bar(
                name,
                [("used", now), ("usable", certain - now), ("s1", max(values) - certain)],
                f"{write_whole_range(values)} {unit}",
            )
        )
    legend = (
        ("used", "as it is now"),
        ("usable", "more in every order"),
        ("s1", "more in some orders"),
    )
    return parts.draw_bars(f"{unit} held if each mode fills up the nodes", drawn, legend)
