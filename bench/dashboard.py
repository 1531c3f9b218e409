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
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scheduler.embedded.agents import nodes
from tests.operator import prometheus, servers
from tests.operator.manifests import container, pod, policy
from tests.operator.prometheus import Panel, Scrape
from tests.operator.world import NODES, PODS, World, enter

Json = dict[str, Any]
SECONDS, EVERY = 240.0, 2.0
N_NODES, CARDS = 12, 4
# Seconds over which rates are taken.
INTERVAL = 20.0
MODELS = (("NVIDIA-Tesla T4", 15_360), ("NVIDIA-A100-SXM4-40GB", 40_960))
# Legends with longer texts have two columns.
_LONG = 18
COLOURS = plt.colormaps["tab10"].colors  # type: ignore[attr-defined]


async def fleet(world: World) -> None:
    for i in range(N_NODES):
        model, mib = MODELS[i % 2]
        await world.create(nodes.gpu_node(f"gpu-{i:02}", cards=CARDS, model=model, mem_mib=mib))
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
    return pod(f"p{i}", labels=labels, containers=[asks])


async def live(world: World) -> None:
    """Pods come in waves, and go after a while."""
    lots, started, leaving = random.Random(4), time.monotonic(), set()

    async def leave(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        with suppress(Exception):
            await world.delete(f"{PODS}/{name}")

    for i in range(100_000):
        into = time.monotonic() - started
        wave = 1.2 if (into // 60) % 2 else 0.45
        await asyncio.sleep(lots.expovariate(1 / wave))
        await world.create(work(i, lots))
        task = asyncio.create_task(leave(f"p{i}", lots.uniform(15, 60)))
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


def answered(found: list[Scrape]) -> list[tuple[Panel, list[tuple[str, list[float], list[float]]]]]:
    """Of every panel its lines: a name, times and values."""
    drawn = []
    for panel in prometheus.panels(f"{INTERVAL:.0f}s"):
        queries = [query for query, _ in panel.queries]
        told = prometheus.ask(found, queries, span=(INTERVAL, SECONDS, EVERY))
        lines = []
        for (query, legend), answer in zip(panel.queries, told["answers"], strict=True):
            if answer["error"]:
                raise SystemExit(f"{query}: {answer['error']}")
            for one in answer["series"]:
                unit = 2**30 if panel.unit == "bytes" else 1
                points = ((float(a), float(b) / unit) for a, b in one["points"])
                lines.append((prometheus.labelled(one["labels"], legend), *_with_gaps(points)))
        drawn.append((panel, lines))
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


def draw(found: list[Scrape], path: Path) -> None:
    drawn = answered(found)
    rows = -(-len(drawn) // 2)
    figure, axes = plt.subplots(rows, 2, figsize=(14, 2.8 * rows), layout="constrained")
    figure.suptitle(
        f"The dashboard's queries over {SECONDS / 60:.0f} minutes of {N_NODES} nodes with {CARDS} cards each,"
        " answered by Prometheus's engine, drawn with matplotlib",
        fontsize=12,
    )
    for panel_axes, (panel, lines) in zip(axes.flat, drawn, strict=False):
        _panel(panel_axes, panel, lines)
    for unused in axes.flat[len(drawn) :]:
        unused.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


def _panel(axes: Axes, panel: Panel, lines: list[tuple[str, list[float], list[float]]]) -> None:
    axes.set_title(panel.title, loc="left", fontsize=11, fontweight="bold")
    if panel.title in {"GPUs", "GPU memory"}:
        times = lines[0][1]
        axes.stackplot(
            times, [line[2] for line in lines], labels=[line[0] for line in lines],
            colors=["#1b6ca8", "#8fc1a9", "#d1495b", "#9a9a9a"],
        )  # fmt: skip
    else:
        for i, (name, at, values) in enumerate(lines):
            axes.plot(at, values, label=name, color=COLOURS[i % 10], linewidth=1.6)
    axes.set_xlim(INTERVAL, SECONDS)
    axes.set_ylim(0, None if any(any(line[2]) for line in lines) else 1)
    axes.grid(color="#e6e6e6")
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(_UNITS[panel.unit]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s / 60:g} min"))
    axes.xaxis.set_major_locator(MaxNLocator(steps=[3, 6]))
    axes.tick_params(labelsize=9)
    columns = 2 if any(len(line[0]) > _LONG for line in lines) else 4
    place: Json = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.1), "ncols": columns}
    axes.legend(fontsize=8, frameon=False, **place)


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


if __name__ == "__main__":
    draw(asyncio.run(scrapes()), Path(sys.argv[1]))
