"""Draws the cluster at the end, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scheduler.replay import demand
from scheduler.replay.experiment import WHOLE, Floats, Trace
from scheduler.replay.fan_out import Finished
from scheduler.replay.plots import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure


def draw_cluster(part: SubFigure, one: Finished, trace: Trace) -> None:
    """Draw nodes as columns, the fullest first; what is used of each resource is stacked."""
    if trace.has_gpus:
        _draw_gpus(part, one, trace)
    else:
        _draw_resources(part, one, trace)


def _draw_gpus(part: SubFigure, one: Finished, trace: Trace) -> None:
    """Draw nodes by model, with their GPUs stacked and their CPU beneath."""
    nodes = [i for i, node in enumerate(trace.nodes) if node.gpus]
    nodes.sort(key=lambda i: _make_sort_key(trace, one, i))
    tall = max(trace.nodes[i].gpus for i in nodes)
    used = np.full((tall, len(nodes)), np.nan)
    for column, i in enumerate(nodes):
        cards = sorted(one.gpu_used[i], reverse=True)
        used[: len(cards), column] = [100.0 * milli / WHOLE for milli in cards]
    cpu = [100.0 * _find_cpu(one, i) / max(1, trace.nodes[i].cpu_milli) for i in nodes]
    gpus, cpus = part.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    _draw_image(part, gpus, [gpus, cpus], used, "used, % of the GPU")
    percent = 100.0 * sum(map(sum, one.gpu_used)) / trace.capacity
    gpus.set_title(_make_title(one, f"{percent:.1f} % allocated"))
    gpus.set_ylabel("GPUs")
    cpus.stairs(cpu, np.arange(len(nodes) + 1), fill=True, color=look.COLOURS[0])
    cpus.set_ylim(0, 100)
    cpus.set_yticks([0, 100])
    cpus.set_ylabel("CPU %")
    _mark_models(gpus, cpus, [trace.nodes[i].model for i in nodes])


def _draw_resources(part: SubFigure, one: Finished, trace: Trace) -> None:
    """Draw a row per resource."""
    asked = demand.read_demand(trace)
    has = asked.capacity > 0
    percent = np.full(has.shape, np.nan)
    np.divide(100.0 * one.used, asked.capacity, out=percent, where=has)
    order = np.argsort(-np.nan_to_num(percent[asked.load_row]), kind="stable")
    axes = part.subplots()
    # The first resource is on top.
    _draw_image(part, axes, [axes], percent[::-1, order], "used, %")
    share = 100.0 * one.used[asked.load_row].sum() / asked.total[asked.load_row]
    axes.set_title(_make_title(one, f"{share:.1f} % of {asked.load_name} allocated"))
    axes.set_yticks(np.arange(len(asked.names)) + 0.5, asked.names[::-1])
    axes.set_xlabel("nodes")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_image(
    part: SubFigure, axes: Axes, beside: Sequence[Axes], percent: Floats, label: str
) -> None:
    tall, wide = percent.shape
    image = axes.imshow(
        percent, aspect="auto", origin="lower", extent=(0.0, float(wide), 0.0, float(tall)),
        cmap="cividis_r", vmin=0, vmax=100, interpolation="nearest",
    )  # fmt: skip
    colours = part.colorbar(image, ax=beside, pad=0.01, aspect=18)
    colours.set_label(label)
    colours.outline.set_visible(False)


def _make_title(one: Finished, told: str) -> str:
    job = one.job
    return (
        f"{job.label}: the cluster at the end, {told}"
        f" ({job.experiment} of {job.variant}, seed {job.options.seed})"
    )


def _find_cpu(one: Finished, node: int) -> int:
    return int(one.used[0, node])


def _make_sort_key(trace: Trace, one: Finished, i: int) -> tuple[int, str, int, int, int]:
    node = trace.nodes[i]
    return (-node.gpus, node.model, -sum(one.gpu_used[i]), -_find_cpu(one, i), i)


def _mark_models(gpus: Axes, cpus: Axes, models: Sequence[str]) -> None:
    """Mark with a line where the model changes, and write the names of models that have room for a name."""
    edges = [i for i in range(1, len(models)) if models[i] != models[i - 1]]
    ticks, names = [], []
    for start, end in zip([0, *edges], [*edges, len(models)], strict=True):
        if end - start >= 0.03 * len(models):
            ticks.append((start + end) / 2)
            names.append(f"{models[start] or 'no model'} ({end - start})")
    for edge in edges:
        gpus.axvline(edge, color="white", linewidth=0.8)
        cpus.axvline(edge, color=look.FAINT, linewidth=0.8)
    cpus.set_xticks(ticks, names)
    cpus.tick_params(length=0)
    for ax in (gpus, cpus):
        ax.spines[:].set_visible(False)
    gpus.tick_params(axis="x", length=0)
