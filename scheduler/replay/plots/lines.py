"""Draws the allocated share, the share in fragments and the nodes in use, as lines over load or time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.replay import demand
from scheduler.replay.experiment import Floats
from scheduler.replay.fan_out import Finished
from scheduler.replay.plots import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

_N_POINTS = 200
# Units of time, and their seconds.
_UNITS = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0))
_FROM = 3


def draw_lines(part: SubFigure, finished: Sequence[Finished]) -> None:
    """Draw the runs of one variant, with a line per mode."""
    job = finished[0].job
    is_recorded = job.experiment == "recorded"
    panels = {
        f"Allocated, % of all {_name_load(finished[0])}": [one.curve.allocated for one in finished]
    }
    if is_recorded:
        panels["Nodes in use, % of all"] = [one.curve.occupied for one in finished]
    if any(not np.isnan(one.curve.frag).all() for one in finished):
        panels["Fragments, % of all GPUs"] = [one.curve.frag for one in finished]
    axes = part.subplots(1, len(panels), squeeze=False)[0]
    word, seconds = choose_unit(finished) if is_recorded else ("", 1.0)
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        by_mode: dict[str, list[tuple[Floats, Floats]]] = {}
        for one, value in zip(finished, values, strict=True):
            by_mode.setdefault(one.job.label, []).append((one.curve.x / seconds, value))
        for i, (mode, found) in enumerate(by_mode.items()):
            _draw_band(ax, found, mode, look.make_look(i))
        ax.set_title(f"{title}: {job.experiment} of {job.variant}")
        ax.set_xlabel(_make_x_label(finished[0], word))
        ax.grid(color=look.FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.margins(x=0)
        ax.set_ylim(bottom=0)
    n_seeds = len({one.job.options.seed for one in finished})
    title = f"mean of {n_seeds} seeds, band: all of them" if n_seeds > 1 else ""
    n_modes = len({one.job.label for one in finished})
    axes[0].legend(title=title, loc="lower right", ncols=1 + n_modes // 7, handlelength=3)
    if not is_recorded:
        _look_closer(axes, finished, is_fill=job.experiment == "fill")


def _name_load(one: Finished) -> str:
    """Name the resource of the load, for a title."""
    name = str(one.record["load_of"])
    return {demand.GPU: "GPUs", demand.CPU: "CPU"}.get(name, name)


def _make_x_label(one: Finished, unit: str) -> str:
    if one.job.experiment == "fill":
        return f"arrived, % of all {_name_load(one)}"
    return f"time, {unit} from the first arrival" if unit else "time, mean lifetimes"


def choose_unit(finished: Sequence[Finished]) -> tuple[str, float]:
    """Choose the unit of recorded times, and return its seconds, too."""
    span = max(float(one.curve.x[-1]) for one in finished)
    found = [(word, seconds) for word, seconds in _UNITS if span >= _FROM * seconds]
    return found[0] if found else ("seconds", 1.0)


def _look_closer(axes: Sequence[Axes], finished: Sequence[Finished], *, is_fill: bool) -> None:
    """Cut away the part where all lines are equal: the diagonal of a fill-up, the first hours of a stream."""
    settled = [one.curve.allocated[-1 if is_fill else len(one.curve.x) // 2 :] for one in finished]
    low, high = min(map(np.min, settled)), max(map(np.max, settled))
    bottom = max(0.0, low - 12.0)
    axes[0].set_ylim(bottom, high + 1.0)
    if is_fill:
        # Until the first pod is lost, everything that has arrived is allocated.
        axes[0].set_xlim(left=min(bottom, axes[0].get_xlim()[1] - 1.0))
    elif len(axes) > 1:
        frags = [one.curve.frag[len(one.curve.x) // 2 :] for one in finished]
        axes[1].set_ylim(0.0, max(1.0, 1.3 * max(map(np.max, frags))))


def _draw_band(
    ax: Axes, lines: Sequence[tuple[Floats, Floats]], label: str, look: dict[str, Any]
) -> None:
    """Draw the mean of lines with different x, and the range that they span."""
    end = min(float(x[-1]) for x, _ in lines)
    start = max(float(x[0]) for x, _ in lines)
    grid = np.linspace(start, end, _N_POINTS)
    values = np.array([np.interp(grid, x, y) for x, y in lines])
    ax.plot(grid, values.mean(axis=0), label=label, linewidth=1.8, **look)
    if len(lines) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        ax.fill_between(grid, low, high, color=look["color"], alpha=0.18, linewidth=0)
