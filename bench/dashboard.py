"""Draw what the dashboard shows of a small busy cluster: `python -m bench.dashboard docs/pictures/dashboard.png`.

Two replicas run against an embedded cluster while pods come and go. They are scraped as Prometheus would, its own
engine answers the dashboard's queries, and matplotlib draws the answers. So the picture is of real figures and
real queries, and not of Grafana.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Bbox

from scheduler.embedded.agents import nodes
from tests.operator import prometheus, servers
from tests.operator.manifests import container, pod, policy
from tests.operator.prometheus import Panel, Scrape
from tests.operator.world import NODES, World, enter

Json = dict[str, Any]
SECONDS, EVERY = 240.0, 2.0
N_NODES, CARDS = 12, 4
# Seconds over which rates are taken.
INTERVAL = 20.0
MODELS = (("NVIDIA-Tesla T4", 15_360), ("NVIDIA-A100-SXM4-40GB", 40_960))
NAMESPACES = ("default", "speech", "vision")
# Grafana's grid has 24 columns; panels begin and end at every sixth.
_COLUMN = 6
# Legends with longer texts have two columns.
_LONG = 18
COLOURS = plt.colormaps["tab10"].colors  # type: ignore[attr-defined]


class Line(NamedTuple):
    """One series of an answer, by the text of its legend."""

    name: str
    labels: dict[str, str]
    times: list[float]
    values: list[float]


async def fleet(world: World) -> None:
    for i in range(N_NODES):
        model, mib = MODELS[i % 2]
        await world.create(
            nodes.make_gpu_node(f"gpu-{i:02}", cards=CARDS, model=model, mem_mib=mib)
        )
    for namespace in NAMESPACES[1:]:
        await world.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
    serving = {"matchLabels": {"team": "serving"}}
    await world.create(
        policy("serving", podSelector=serving, nodePolicy="spread", gpuPolicy="spread")
    )


def work(i: int, lots: random.Random) -> Json:
    """A share for serving, whole cards for training, or a pod without any."""
    kind = lots.random()
    if kind < 0.5:
        limits: dict[str, str | int] = {
            "nvidia.com/gpu": 1,
            "nvidia.com/gpumem": lots.choice((3000, 6000, 10_000)),
            "nvidia.com/gpucores": lots.choice((10, 25, 40)),
        }
        labels = {"team": "serving"} if kind < 0.25 else {}
    elif kind < 0.85:
        limits, labels = {"nvidia.com/gpu": lots.choice((1, 1, 2, 4))}, {}
    else:
        limits, labels = {}, {}
    asks = container(requests={"cpu": "500m", "memory": "1Gi"}, limits=limits)
    return pod(f"p{i}", namespace=lots.choice(NAMESPACES), labels=labels, containers=[asks])


async def live(world: World) -> None:
    """Pods come in waves, and go after a while."""
    lots, started, leaving = random.Random(4), time.monotonic(), set()

    async def leave(one: Json, seconds: float) -> None:
        meta = one["metadata"]
        await asyncio.sleep(seconds)
        with suppress(Exception):
            await world.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")

    for i in range(100_000):
        into = time.monotonic() - started
        wave = 1.2 if (into // 60) % 2 else 0.45
        await asyncio.sleep(lots.expovariate(1 / wave))
        one = work(i, lots)
        await world.create(one)
        task = asyncio.create_task(leave(one, lots.uniform(15, 60)))
        leaving.add(task)
        task.add_done_callback(leaving.discard)


async def scrapes() -> list[Scrape]:
    found = []
    with servers.embedded() as server:
        async with enter(server) as world:
            await fleet(world)
            replicas = {
                name: await world.start_operator(name=name) for name in ("evenkeel-0", "evenkeel-1")
            }
            async with world.agents():
                living = asyncio.create_task(live(world))
                started = time.monotonic()
                while (now := time.monotonic() - started) < SECONDS:
                    if now > SECONDS / 2:
                        cordon = {"spec": {"unschedulable": True}}
                        await world.call("PATCH", f"{NODES}/gpu-03", cordon)
                    for name, one in replicas.items():
                        found.append(
                            await asyncio.to_thread(prometheus.scrape, one.port, name, now)
                        )
                    await asyncio.sleep(EVERY)
                living.cancel()
                with suppress(asyncio.CancelledError):
                    await living
    return found


def answered(found: list[Scrape], panels: list[Panel]) -> list[tuple[Panel, list[list[Line]]]]:
    """Of every panel and each of its queries the lines."""
    drawn = []
    for panel in panels:
        queries = [query for query, _ in panel.queries]
        told = prometheus.ask(found, queries, span=(INTERVAL, SECONDS, EVERY))
        answers = []
        for (query, legend), answer in zip(panel.queries, told["answers"], strict=True):
            if answer["error"]:
                raise SystemExit(f"{query}: {answer['error']}")
            lines = []
            for one in answer["series"]:
                unit = 2**30 if panel.unit == "bytes" else 1
                points = ((float(a), float(b) / unit) for a, b in one["points"])
                name = prometheus.labelled(one["labels"], legend)
                lines.append(Line(name, one["labels"], *_with_gaps(points)))
            answers.append(lines)
        drawn.append((panel, answers))
    return drawn


def _with_gaps(points: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Times and values; where there is nothing for a while the line breaks off."""
    times: list[float] = []
    values: list[float] = []
    for at, value in points:
        if times and at - times[-1] > 1.5 * EVERY:
            times.append(at)
            values.append(float("nan"))
        times.append(at)
        values.append(value)
    return times, values


def draw(found: list[Scrape], path: Path, panels: list[Panel]) -> None:
    drawn = answered(found, panels)
    # Rows without panels are headings of Grafana's.
    tops = sorted({panel.place[1] for panel, _ in drawn})
    heights = {top: max(p.place[3] for p, _ in drawn if p.place[1] == top) for top in tops}
    figure = plt.figure(figsize=(14, 0.36 * sum(heights.values())), layout="constrained")
    figure.suptitle(
        f"The dashboard's queries over {SECONDS / 60:.0f} minutes of {N_NODES} nodes with {CARDS} cards each,"
        " answered by Prometheus's engine, drawn with matplotlib",
        fontsize=12,
    )
    grid = figure.add_gridspec(
        len(tops), 24 // _COLUMN, height_ratios=[heights[top] for top in tops]
    )
    for panel, answers in drawn:
        x, top, width, _ = panel.place
        columns = slice(x // _COLUMN, (x + width) // _COLUMN)
        axes = figure.add_subplot(grid[tops.index(top), columns])
        axes.set_title(panel.title, loc="left", fontsize=11, fontweight="bold")
        DRAWN[panel.type](axes, panel, answers)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def _stat(axes: Axes, panel: Panel, answers: list[list[Line]]) -> None:
    [[line]] = answers
    axes.axis("off")
    text = f"{line.values[-1]:.0f} s" if panel.unit == "s" else f"{line.values[-1]:.3g}"
    axes.text(0.5, 0.4, text, ha="center", va="center", fontsize=26, color="#1b6ca8")


def _table(axes: Axes, panel: Panel, answers: list[list[Line]]) -> None:
    """As Grafana joins them: a row for each node or queue, the last figure of each query."""
    axes.axis("off")
    # The labels of the first query are the first columns.
    names = list(answers[0][0].labels)
    rows: dict[str, list[str]] = {}
    for i, lines in enumerate(answers):
        for line in lines:
            texts = [text.removeprefix("NVIDIA-") for text in line.labels.values()]
            row = rows.setdefault(texts[0], texts + [""] * len(answers))
            last = line.values[-1]
            is_share = "memory" in panel.queries[i][1]
            row[i + len(names)] = f"{last:.0%}" if is_share else f"{last:.2f}" if last % 1 else f"{last:.0f}"  # fmt: skip
    ordered = sorted(rows.values(), key=lambda row: -float(row[-1] or 0))
    headings = [*names, *(legend for _, legend in panel.queries)]
    longest = [max(map(len, column)) + 2 for column in zip(headings, *ordered, strict=True)]
    table = axes.table(
        ordered, colLabels=headings, colWidths=[one / sum(longest) for one in longest],
        cellLoc="left", bbox=Bbox.unit(),
    )  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for cell in table.get_celld().values():
        cell.set_edgecolor("#e6e6e6")


def _heat(axes: Axes, lines: list[Line], colours: str) -> AxesImage:
    """A row for each line, a column for each moment."""
    moments = np.arange(INTERVAL, SECONDS + EVERY / 2, EVERY)
    figures = np.full((len(lines), len(moments)), np.nan)
    for i, line in enumerate(lines):
        at = np.rint((np.array(line.times) - INTERVAL) / EVERY).astype(int)
        figures[i, at] = line.values
    image = axes.imshow(
        figures, aspect="auto", cmap=colours, vmin=0, extent=(INTERVAL, SECONDS, len(lines), 0),
        interpolation="none",
    )  # fmt: skip
    axes.set_yticks(np.arange(len(lines)) + 0.5, [line.name for line in lines], fontsize=9)
    _time_axis(axes)
    return image


def _heatmap(axes: Axes, _: Panel, answers: list[list[Line]]) -> None:
    # The first row is at the bottom, as in Grafana.
    image = _heat(axes, [line for lines in answers for line in lines][::-1], "Blues")
    axes.figure.colorbar(image, ax=axes, label="cards", pad=0.01)


def _history(axes: Axes, _: Panel, answers: list[list[Line]]) -> None:
    lines = sorted((line for lines in answers for line in lines), key=lambda line: line.name)
    image = _heat(axes, lines, "BuPu")
    image.set_clim(0, 1)
    # As many cards as there are have no room for their names: the first of each node.
    names = [line.name if line.name.endswith(" 0") else "" for line in lines]
    axes.set_yticklabels([name.removesuffix(" 0") for name in names], fontsize=8)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def _timeseries(axes: Axes, panel: Panel, answers: list[list[Line]]) -> None:
    lines = [line for lines in answers for line in lines]
    if panel.title in {"GPUs", "GPU memory"}:
        axes.stackplot(
            lines[0].times, [line.values for line in lines], labels=[line.name for line in lines],
            colors=["#1b6ca8", "#8fc1a9", "#d1495b", "#9a9a9a"],
        )  # fmt: skip
    else:
        for i, line in enumerate(lines):
            axes.plot(line.times, line.values, label=line.name, color=COLOURS[i % 10], linewidth=1.6)  # fmt: skip
    _time_axis(axes)
    axes.set_ylim(0, None if any(any(line.values) for line in lines) else 1)
    axes.grid(color="#e6e6e6")
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(_UNITS[panel.unit]))
    axes.tick_params(labelsize=9)
    columns = 2 if any(len(line.name) > _LONG for line in lines) else 4
    place: Json = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.1), "ncols": columns}
    axes.legend(fontsize=8, frameon=False, **place)


def _time_axis(axes: Axes) -> None:
    axes.set_xlim(INTERVAL, SECONDS)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s / 60:g} min"))
    axes.xaxis.set_major_locator(MaxNLocator(steps=[3, 6]))
    axes.tick_params(labelsize=9)


def _seconds(value: float, _: int) -> str:
    return f"{value:g} s" if value >= 1 or not value else f"{value * 1000:g} ms"


def _bytes(value: float, _: int) -> str:
    return f"{value:g} GiB"


_UNITS = {
    "short": lambda value, _: f"{value:g}",
    "s": _seconds,
    "bytes": _bytes,
    "percentunit": lambda value, _: f"{value:.0%}",
}

# By the type that a panel has in Grafana.
DRAWN: dict[str, Callable[[Axes, Panel, list[list[Line]]], None]] = {
    "stat": _stat,
    "table": _table,
    "heatmap": _heatmap,
    "status-history": _history,
    "timeseries": _timeseries,
}


if __name__ == "__main__":
    draw(asyncio.run(scrapes()), Path(sys.argv[1]), prometheus.panels(f"{INTERVAL:.0f}s"))
