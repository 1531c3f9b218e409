"""Horizontal bars as SVG, drawn by hand so that the page needs no library; colours are the page's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from scheduler.audit.table import TITLES

Json = dict[str, Any]
_WIDTH, _LINE, _BAR = 800, 24, 16
_LABEL, _VALUE = 220, 170
_LABEL_MAX = 28
# Nobody reads more bars than these; the rest is told in words.
_NODES_MAX = 40
_LEGEND = ("used", "usable", "stranded", "closed")


class _Bar(NamedTuple):
    """One bar: parts as (class, amount), and a word for its end."""

    label: str
    parts: Sequence[tuple[str, float]]
    value: str


def nodes(rows: Sequence[Json]) -> str:
    """GPUs of each node: used, usable, stranded, closed; the dearest nodes first."""
    with_gpus = [row for row in rows if row["capacity"]["gpuCompute"] > 0]
    if not with_gpus:
        return "<p>No node has GPUs.</p>"
    bars = [
        _Bar(
            row["name"],
            [
                ("used", row["used"]["gpuCompute"]),
                ("usable", row["free"]["gpuCompute"] - row["stranded"]["gpuCompute"]),
                ("stranded", row["stranded"]["gpuCompute"]),
                ("closed", row["closed"]["gpuCompute"]),
            ],
            f"{row['stranded']['gpuCompute']:.1f} stranded",
        )
        for row in with_gpus[:_NODES_MAX]
    ]
    more = len(with_gpus) - len(bars)
    rest = f'<p class="soft">{more} more nodes, with less stranded.</p>' if more else ""
    return _draw("GPUs by node", bars, legend=True) + rest


def money(by_dimension: Mapping[str, float]) -> str:
    """What is stranded, in money a month, by dimension."""
    bars = [
        _Bar(title, [("stranded", by_dimension[key])], f"${by_dimension[key]:,.0f}")
        for key, title in TITLES.items()
    ]
    return _draw("Stranded, dollars a month", bars)


def modes(now: float, replayed: Sequence[Json]) -> str:
    """What is stranded with each mode, in money a month."""
    bars = [_Bar("as it is", [("used", now)], f"${now:,.0f}")]
    for one in replayed:
        left_over = f", {len(one['unplaced'])} no place" if one["unplaced"] else ""
        bars.append(
            _Bar(one["mode"], [("stranded", one["money"])], f"${one['money']:,.0f}{left_over}")
        )
    return _draw("Stranded by mode, dollars a month", bars)


def _draw(title: str, bars: Sequence[_Bar], *, legend: bool = False) -> str:
    longest = max(sum(amount for _, amount in bar.parts) for bar in bars) or 1.0
    scale = (_WIDTH - _LABEL - _VALUE) / longest
    top = _LINE if legend else 0
    lines = [_legend()] if legend else []
    for i, bar in enumerate(bars):
        y = top + i * _LINE
        label = bar.label if len(bar.label) <= _LABEL_MAX else f"{bar.label[: _LABEL_MAX - 1]}…"
        lines.append(
            f'<text x="{_LABEL - 8}" y="{y + _BAR}" text-anchor="end">{escape(label)}'
            f"<title>{escape(bar.label)}</title></text>"
        )
        x = float(_LABEL)
        for kind, amount in bar.parts:
            width = amount * scale
            if width > 0:
                lines.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}" '
                    f'height="{_BAR}"><title>{kind} {amount:,.1f}</title></rect>'
                )
            x += width
        lines.append(f'<text x="{x + 6:.1f}" y="{y + _BAR}">{escape(bar.value)}</text>')
    height = top + len(bars) * _LINE + 4
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n{body}\n</svg>'
    )


def _legend() -> str:
    parts = []
    for i, kind in enumerate(_LEGEND):
        x = _LABEL + i * 110
        parts.append(
            f'<rect class="{kind}" x="{x}" y="4" width="12" height="12"/>'
            f'<text x="{x + 18}" y="15">{kind}</text>'
        )
    return "".join(parts)
