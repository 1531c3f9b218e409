"""Pictures of a replay: allocation and fragments as lines, and the cluster at the end, node by node.

Colours are Okabe and Ito's, which colour-blind readers tell apart, and every line has its own dashes
besides; shares use cividis, which grows darker evenly for every kind of sight: what lies idle shines.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.errors import BadInput
from scheduler.replay.experiment import WHOLE, Floats, Trace
from scheduler.replay.fan_out import Finished, Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SUFFIXES = (".svg", ".png")
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")
_INK, _FAINT = "#333333", "#DDDDDD"
_STYLE: dict[Any, Any] = {
    # A model's name may hold a $.
    "text.parse_math": False,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 9.5,
    "legend.frameon": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
}
_WIDTH, _LINES_HEIGHT, _CLUSTER_HEIGHT = 12.0, 4.0, 2.4
_N_POINTS = 200


def check(path: Path) -> None:
    """Refuse a picture that could not be drawn.

    Raises:
        BadInput: its form is none that is drawn here, or the extra is not installed.
    """
    if path.suffix not in SUFFIXES:
        raise BadInput("--plot", f"{path} does not end in {' or '.join(SUFFIXES)}")
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as error:
        raise BadInput(
            "--plot", "needs the extra plot: pip install evenkeel-scheduler[plot]"
        ) from error


def draw(finished: Sequence[Finished], traces: Traces, path: Path) -> None:
    """Write the picture of a replay as SVG or PNG, by the name of the file.

    A row of lines per variant, then a cluster per mode: that of the first variant and seed.

    Raises:
        BadInput: the extra is not installed, or the file cannot be written.
    """
    check(path)
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and a second at import
    from matplotlib.figure import Figure  # noqa: PLC0415

    variants = list(dict.fromkeys(one.job.variant for one in finished))
    last = _one_per_mode([one for one in finished if one.job.variant == variants[0]])
    heights = [_LINES_HEIGHT] * len(variants) + [_CLUSTER_HEIGHT] * len(last)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
        parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
        for part, variant in zip(parts, variants, strict=False):
            _lines(part, [one for one in finished if one.job.variant == variant])
        for part, one in zip(parts[len(variants) :], last, strict=True):
            _cluster(part, one, traces[one.job.variant])
        _save(figure, path)


def look_of(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line; 28 lines all look different."""
    n = len(_COLOURS)
    return {"color": _COLOURS[i % n], "linestyle": _DASHES[(i % n + i // n) % len(_DASHES)]}


def _save(figure: Figure, path: Path) -> None:
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise BadInput("--plot", f"{path}: {error}") from error


def _one_per_mode(finished: Sequence[Finished]) -> list[Finished]:
    by_mode: dict[str, Finished] = {}
    for one in finished:
        by_mode.setdefault(one.job.options.mode, one)
    return list(by_mode.values())


def _lines(part: SubFigure, finished: Sequence[Finished]) -> None:
    job = finished[0].job
    is_fill = job.experiment == "fill"
    is_measured = any(not np.isnan(one.curve.frag).all() for one in finished)
    axes = part.subplots(1, 2 if is_measured else 1, squeeze=False)[0]
    modes = list(dict.fromkeys(one.job.options.mode for one in finished))
    for i, mode in enumerate(modes):
        runs = [one for one in finished if one.job.options.mode == mode]
        look = look_of(i)
        _band(axes[0], [(one.curve.x, one.curve.allocated) for one in runs], mode, look)
        if is_measured:
            _band(axes[1], [(one.curve.x, one.curve.frag) for one in runs], mode, look)
    for ax, title in zip(axes, ("Allocated", "Fragments"), strict=False):
        ax.set_title(f"{title}, % of all GPUs: {job.experiment} of {job.variant}")
        ax.set_xlabel("arrived, % of all GPUs" if is_fill else "time, mean lifetimes")
        ax.grid(color=_FAINT, linewidth=0.6)
        ax.set_axisbelow(True)
        ax.margins(x=0)
        ax.set_ylim(bottom=0)
    n_seeds = len({one.job.options.seed for one in finished})
    title = f"mean of {n_seeds} seeds, band: all of them" if n_seeds > 1 else ""
    axes[0].legend(title=title, loc="lower right", ncols=1 + len(modes) // 7, handlelength=3)
    _look_closer(axes, finished, is_fill=is_fill)


def _look_closer(axes: Sequence[Axes], finished: Sequence[Finished], *, is_fill: bool) -> None:
    """Cut away the part where all lines are one: the diagonal of a fill-up, the first hours of a stream."""
    settled = [one.curve.allocated[-1 if is_fill else len(one.curve.x) // 2 :] for one in finished]
    low, high = min(map(np.min, settled)), max(map(np.max, settled))
    bottom = max(0.0, low - 12.0)
    axes[0].set_ylim(bottom, high + 1.0)
    if is_fill:
        # Until the first pod is lost, as much is allocated as has arrived.
        axes[0].set_xlim(left=min(bottom, axes[0].get_xlim()[1] - 1.0))
    elif len(axes) > 1:
        frags = [one.curve.frag[len(one.curve.x) // 2 :] for one in finished]
        axes[1].set_ylim(0.0, max(1.0, 1.3 * max(map(np.max, frags))))


def _band(
    ax: Axes, lines: Sequence[tuple[Floats, Floats]], label: str, look: dict[str, Any]
) -> None:
    """The mean of lines with different x, and the range they span."""
    end = min(float(x[-1]) for x, _ in lines)
    start = max(float(x[0]) for x, _ in lines)
    grid = np.linspace(start, end, _N_POINTS)
    values = np.array([np.interp(grid, x, y) for x, y in lines])
    ax.plot(grid, values.mean(axis=0), label=label, linewidth=1.8, **look)
    if len(lines) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        ax.fill_between(grid, low, high, color=look["color"], alpha=0.18, linewidth=0)


def _cluster(part: SubFigure, one: Finished, trace: Trace) -> None:
    """Nodes as columns by model, the fullest first; their GPUs stacked, their CPU beneath."""
    nodes = [i for i, node in enumerate(trace.nodes) if node.gpus]
    nodes.sort(key=lambda i: _place(trace, one, i))
    tall = max(trace.nodes[i].gpus for i in nodes)
    used = np.full((tall, len(nodes)), np.nan)
    for column, i in enumerate(nodes):
        cards = sorted(one.gpu_used[i], reverse=True)
        used[: len(cards), column] = [100.0 * milli / WHOLE for milli in cards]
    cpu = [100.0 * one.cpu_used[i] / max(1, trace.nodes[i].cpu_milli) for i in nodes]
    gpus, cpus = part.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    extent = (0.0, float(len(nodes)), 0.0, float(tall))
    image = gpus.imshow(
        used, aspect="auto", origin="lower", extent=extent, cmap="cividis_r", vmin=0, vmax=100,
        interpolation="nearest",
    )  # fmt: skip
    colours = part.colorbar(image, ax=[gpus, cpus], pad=0.01, aspect=18)
    colours.set_label("used, % of the GPU")
    colours.outline.set_visible(False)
    percent = 100.0 * sum(map(sum, one.gpu_used)) / trace.capacity
    job = one.job
    gpus.set_title(
        f"{job.options.mode}: the cluster at the end, {percent:.1f} % allocated"
        f" ({job.experiment} of {job.variant}, seed {job.options.seed})"
    )
    gpus.set_ylabel("GPUs")
    cpus.stairs(cpu, np.arange(len(nodes) + 1), fill=True, color=_COLOURS[0])
    cpus.set_ylim(0, 100)
    cpus.set_yticks([0, 100])
    cpus.set_ylabel("CPU %")
    _mark_models(gpus, cpus, [trace.nodes[i].model for i in nodes])


def _place(trace: Trace, one: Finished, i: int) -> tuple[int, str, int, int, int]:
    node = trace.nodes[i]
    return (-node.gpus, node.model, -sum(one.gpu_used[i]), -int(one.cpu_used[i]), i)


def _mark_models(gpus: Axes, cpus: Axes, models: Sequence[str]) -> None:
    """A line where the model changes, and the names of those with room for a name."""
    edges = [i for i in range(1, len(models)) if models[i] != models[i - 1]]
    ticks, names = [], []
    for start, end in zip([0, *edges], [*edges, len(models)], strict=True):
        if end - start >= 0.03 * len(models):
            ticks.append((start + end) / 2)
            names.append(f"{models[start] or 'no model'} ({end - start})")
    for edge in edges:
        gpus.axvline(edge, color="white", linewidth=0.8)
        cpus.axvline(edge, color=_FAINT, linewidth=0.8)
    cpus.set_xticks(ticks, names)
    cpus.tick_params(length=0)
    for ax in (gpus, cpus):
        ax.spines[:].set_visible(False)
    gpus.tick_params(axis="x", length=0)
