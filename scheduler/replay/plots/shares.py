"""Draws what teams use over time beside their fair parts, and what is missing to these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.replay.experiment import Floats
from scheduler.replay.measures.teams import TeamCurves
from scheduler.replay.plots import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

# Teams that have lines of their own: as many as there are colours.
_MOST = len(look.COLOURS)
# Points of each line: more than that cannot be seen.
_N_POINTS = 200


def draw_shares(part: SubFigure, label: str, curves: TeamCurves, unit: tuple[str, float]) -> None:
    """Draw one run; ``unit`` is a unit of time with its seconds. Teams with the largest fair parts have lines."""
    use, missing = part.subplots(1, 2)
    x = _thin(curves.x) / unit[1]
    order = np.argsort(-curves.fair.mean(axis=1), kind="stable")[:_MOST]
    for i, k in enumerate(sorted(order.tolist())):
        colour = look.COLOURS[i % len(look.COLOURS)]
        use.plot(x, _thin(curves.used[k]), color=colour, linewidth=1.6, label=curves.teams[k])
        use.plot(x, _thin(curves.fair[k]), color=colour, linewidth=1.2, linestyle=":")
        lack = np.maximum(0.0, curves.fair[k] - curves.used[k])
        missing.plot(x, _thin(lack), color=colour, linewidth=1.6)
    use.set_title(f"{label}: used, % of all; dotted: fair parts")
    missing.set_title("Missing to the fair part, % of all")
    # Both have one scale, so that runs and teams can be compared by eye.
    top = max(1.0, float(np.max([curves.used.max(), curves.fair.max()])) * 1.05)
    for axes in (use, missing):
        _finish(axes, unit[0], top)
    more = len(curves.teams) - len(order)
    title = f"the {_MOST} largest of {len(curves.teams)} teams" if more else ""
    use.legend(title=title, loc="upper right", ncols=2)


def _finish(axes: Axes, unit: str, top: float) -> None:
    axes.set_xlabel(f"time, {unit} from the first arrival")
    axes.set_ylim(0, top)
    axes.margins(x=0)
    axes.grid(color=look.FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def _thin(values: Floats) -> Floats:
    """Thin a line out to means of equal parts."""
    n = max(1, len(values) // _N_POINTS)
    means: Floats = values[: len(values) // n * n].reshape(-1, n).mean(axis=1)
    return means
