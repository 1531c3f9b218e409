"""Sentences about devices of claims, which the table and the page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.audit.words import count_nouns, write_dollars

Json = dict[str, Any]
HEADINGS = ("devices of claims", "devices", "used", "free", "stranded", "tainted", "$ each")
_WORST = 10


def list_models(devices: Json) -> list[tuple[str, ...]]:
    """List a row for each driver and model."""
    return [
        (
            f"{one['driver']}{' ' + one['model'] if one['model'] else ''}",
            *(f"{one[key]:,.4g}" for key in ("devices", "used", "free", "stranded", "tainted")),
            "" if one["price"] is None else f"{one['price']:,.0f}",
        )
        for one in devices["models"]
    ]


def describe(devices: Json) -> list[str]:
    """Describe which devices are stranded and why, and which claims nobody has reserved."""
    lines = [f"{one}: devices of claims are left out." for one in devices["unlisted"]]
    if not devices["models"]:
        return lines
    lines.append(_describe_usual(devices["usual"]))
    whys: dict[str, list[Json]] = {}
    for one in devices["stranded"]:
        whys.setdefault(one["why"], []).append(one)
    for why, found in sorted(whys.items(), key=lambda item: -len(item[1])):
        names = _name_some([f"{one['pool']}/{one['device']}" for one in found])
        free = sum(one["free"] for one in found)
        lines.append(f"{free:,.4g} stranded{_write_money(found)}: {why}: {names}.")
    if devices["unreserved"]:
        left = devices["unreserved"]
        names = _name_some([one["claim"] for one in left])
        has = "has" if len(left) == 1 else "have"
        lines.append(
            f"{count_nouns(len(left), 'claim')} that nobody has reserved {has} devices"
            f"{_write_money(left)}: {names}."
        )
    return lines


def _describe_usual(usual: Sequence[Json]) -> str:
    if not usual:
        return "No pod has claims, so it is not known which devices are of use: none count as stranded."
    n = sum(one["pods"] for one in usual)
    return (
        f"Stranded are devices that no pod like the {count_nouns(n, 'pod')} with claims could get; a GPU in parts "
        "counts once, and its use is that of its scarcest counter."
    )


def _write_money(found: Sequence[Json]) -> str:
    known = [one["money"] for one in found if one["money"] is not None]
    return f" ({write_dollars(sum(known))} a month)" if known else ""


def _name_some(names: Sequence[str]) -> str:
    more = len(names) - _WORST
    return ", ".join(names[:_WORST]) + (f" and {more} more" if more > 0 else "")
