"""Who is first in each row, how far ``keel`` is from the best other mode, and how often it is first or level.

Level is within two standard errors of the paired difference, seed by seed; with one seed there is no error, and
level is equal.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.everywhere.cases import Figure

OURS = "keel"
LEVEL_ERRORS = 2.0
# Of these a mean over rows makes sense, as points of what could be lost.
_PERCENTS = {"lost %", "GPU %"}

# What each mode gave, seed by seed, in the order of the seeds.
Found = Mapping[str, Sequence[float]]


def row(figure: Figure, group: str, found: Found) -> dict[str, Any]:
    """A row: means and standard errors, the first mode, and how far behind the best other mode ours is.

    ``behind`` is negative where ours is ahead.
    """
    sign = -1.0 if figure.is_higher_better else 1.0
    cost = {mode: sign * statistics.fmean(values) for mode, values in found.items()}
    told: dict[str, Any] = {
        "group": group,
        "unit": figure.unit,
        "higher_is_better": figure.is_higher_better,
        "seeds": len(next(iter(found.values()))),
        "modes": {
            mode: {"mean": round(sign * cost[mode], 3), "error": round(error(values), 3)}
            for mode, values in found.items()
        },
        "first": min(cost, key=cost.__getitem__),
    }
    others = [mode for mode in cost if mode != OURS]
    if OURS not in found or not others:
        return told
    best = min(others, key=cost.__getitem__)
    gaps = [sign * (ours - its) for ours, its in zip(found[OURS], found[best], strict=True)]
    behind, of_gap = statistics.fmean(gaps), error(gaps)
    return told | {
        "best_other": best,
        "behind": round(behind, 3),
        "behind_error": round(of_gap, 3),
        "is_first_or_level": is_level(behind, of_gap),
    }


def is_level(behind: float, of_gap: float) -> bool:
    """Whether a gap is none, or one in favour of ours, as far as can be told."""
    return behind <= LEVEL_ERRORS * of_gap


def error(values: Sequence[float]) -> float:
    """Standard error of the mean; 0 of a single value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def summary(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """How many rows ours is first or level in, and of each group how it does in the mean over its rows."""
    judged = [one for one in rows.values() if "is_first_or_level" in one]
    good = sum(one["is_first_or_level"] for one in judged)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in judged:
        if one["unit"] in _PERCENTS:
            groups.setdefault(one["group"], []).append(one)
    return {
        "rows": len(judged),
        "first": sum(one["first"] == OURS for one in judged),
        "first_or_level": good,
        "share_first_or_level": round(good / len(judged), 3) if judged else None,
        "groups": {name: _group(members) for name, members in groups.items()},
    }


def _group(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean over the rows of what each mode loses, and how far behind the best other one ours is."""
    modes = [mode for mode in rows[0]["modes"] if all(mode in one["modes"] for one in rows)]
    lost = {mode: statistics.fmean(_lost(one, mode) for one in rows) for mode in modes}
    best = min((mode for mode in modes if mode != OURS), key=lost.__getitem__)
    return {
        "rows": len(rows),
        "lost": {mode: round(amount, 3) for mode, amount in lost.items()},
        "best_other": best,
        "behind": round(lost[OURS] - lost[best], 3),
    }


def _lost(one: Mapping[str, Any], mode: str) -> float:
    mean = float(one["modes"][mode]["mean"])
    return 100.0 - mean if one["higher_is_better"] else mean


def table(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The rows as text, every mode a column, the first of each row starred."""
    modes = list(dict.fromkeys(mode for one in rows.values() for mode in one["modes"]))
    heads = "".join(f"{mode[:11]:>12}" for mode in modes)
    lines = [f"{'':48}{heads}{'behind':>10}  ± error"]
    for name, one in rows.items():
        cells = "".join(_cell(one, mode) for mode in modes)
        gap = ""
        if "behind" in one:
            word = "" if one["is_first_or_level"] else f"  behind {one['best_other']}"
            gap = f"{one['behind']:+10.2f}  ±{one['behind_error']:6.2f}{word}"
        lines.append(f"{name[:39]:40}{one['unit']:>8}{cells}{gap}")
    return lines


def _cell(one: Mapping[str, Any], mode: str) -> str:
    if mode not in one["modes"]:
        return f"{'–':>12}"
    star = "*" if one["first"] == mode else " "
    return f"{one['modes'][mode]['mean']:11.2f}{star}"


def told(whole: Mapping[str, Any]) -> list[str]:
    """The summary as text."""
    first, level, of = (whole[key] for key in ("first", "first_or_level", "rows"))
    lines = [f"{OURS} is first or level in {level} of {of} rows, and first in {first}"]
    for name, group in whole["groups"].items():
        best, lost = group["best_other"], group["lost"]
        over = f"{name}: lost in the mean of {group['rows']} rows"
        lines.append(f"{over} {lost[OURS]:.2f}, {best} {lost[best]:.2f}")
    return lines
