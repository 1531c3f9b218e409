"""Draws two modes side by side: their nodes card by card, and a table of how many more pods fit."""

from __future__ import annotations

from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from scheduler.api import hami, names
from scheduler.demo import comparison
from scheduler.demo.comparison import CARD_MIB, CARDS, KINDS, N_NODES, Side

Json = dict[str, Any]
_WIDTH = 38
_LEVELS = "▁▂▃▄▅▆▇█"
_FREE = "··"
_MEMORY, _COMPUTE = "cyan", "magenta"


def draw_sides(sides: list[Side]) -> RenderableType:
    """Draw what was compared, where the pods are, and what fits afterwards."""
    running = ", ".join(f"{kind.running} {kind.name}" for kind in KINDS if kind.running)
    n_pods = sum(kind.running for kind in KINDS)
    told = Text(
        f"The same {n_pods} pods ({running}) in the same order on {N_NODES} nodes × {CARDS} GPUs of"
        f" {CARD_MIB:,} MiB: placed by keel, and by least-allocated, which is how kube-scheduler"
        " scores free resources by default."
    )
    legend = Text.assemble(
        "A card: ", ("memory", _MEMORY), " and ", ("compute", _COMPUTE), f" allocated, {_FREE} free"
    )
    panels = Columns([_draw_panel(side) for side in sides], padding=(0, 2))
    return Group(told, panels, legend, Text(), _draw_table(sides))


def _draw_panel(side: Side) -> Panel:
    used: dict[tuple[str, str], tuple[int, int]] = {}
    for pod in side.pods:
        text = pod["metadata"]["annotations"][names.HAMI_ALLOCATED]
        for slot in hami.decode_devices(text):
            for use in slot:
                key = (pod["spec"]["nodeName"], use.uuid)
                mib, cores = used.get(key, (0, 0))
                used[key] = (mib + use.mem_mib, cores + use.cores)
    rows = Text("\n").join(_draw_row(node, used) for node in comparison.make_fleet())
    return Panel(rows, title=side.mode, width=_WIDTH)


def _draw_row(node: Json, used: dict[tuple[str, str], tuple[int, int]]) -> Text:
    name = node["metadata"]["name"]
    row = Text(f"{name:<8}")
    for card in hami.decode_register(node["metadata"]["annotations"][names.HAMI_REGISTER]):
        mib, cores = used.get((name, card.id), (0, 0))
        row.append(" ")
        if mib or cores:
            row.append(_choose_level(mib / card.devmem), style=_MEMORY)
            row.append(_choose_level(cores / card.devcore), style=_COMPUTE)
        else:
            row.append(_FREE, style="dim")
    return row


def _choose_level(share: float) -> str:
    return _LEVELS[round(share * (len(_LEVELS) - 1))]


def _draw_table(sides: list[Side]) -> Table:
    table = Table(title="How many more pods fit, one kind at a time, until none fits")
    table.add_column("kind", no_wrap=True)
    table.add_column("a pod requests", no_wrap=True)
    for side in sides:
        table.add_column(side.mode, justify="right", no_wrap=True)
    for kind in KINDS:
        counts = [side.more[kind.name] for side in sides]
        # Colours show the kinds that fit with one mode only: they are the point of the comparison.
        styles = ["" if all(counts) else "green" if n else "red" for n in counts]
        cells = [Text(str(n), style=style) for n, style in zip(counts, styles, strict=True)]
        table.add_row(kind.name, kind.request, *cells)
    return table
