"""Draws nodes × cards with the pods on them in the terminal."""

from __future__ import annotations

from typing import Any

from rich.columns import Columns
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from scheduler.api import hami, names
from scheduler.demo import patterns

_WIDTH = 20
_COLOURS = ("cyan", "magenta", "yellow", "green")


def draw_nodes(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> RenderableType:
    """Draw a panel per node and a row per card: how full its memory is, and with which pods."""
    used = patterns.find_used_cards(pods)
    sizes = _read_memory(pods)
    colours = {pod["metadata"]["name"]: _COLOURS[i % len(_COLOURS)] for i, pod in enumerate(pods)}
    return Columns(
        [
            _draw_node(node, used.get(node["metadata"]["name"], {}), sizes, colours)
            for node in nodes
        ],
        padding=(0, 2),
    )


def _draw_node(
    node: dict[str, Any],
    cards: dict[str, list[str]],
    sizes: dict[tuple[str, str], int],
    colours: dict[str, str],
) -> Panel:
    table = Table(box=None, show_header=False, padding=(0, 1))
    register = (node["metadata"].get("annotations") or {}).get(names.HAMI_REGISTER, "[]")
    for card in hami.decode_register(register):
        on_card = cards.get(card.id, [])
        bar, total = Text(), 0
        for pod in on_card:
            mib = sizes[pod, card.id]
            bar.append("█" * round(_WIDTH * mib / card.devmem), style=colours[pod])
            total += mib
        bar.append("░" * (_WIDTH - len(bar.plain)), style="dim")
        names_of = Text(" ").join(
            Text(pod.rsplit("-", 1)[-1], style=colours[pod]) for pod in on_card
        )
        table.add_row(f"card {card.index}", bar, f"{total:>5}/{card.devmem} MiB", Text.assemble(("pods ", "dim"), names_of) if on_card else "")  # fmt: skip
    return Panel(table, title=node["metadata"]["name"], width=64)


def _read_memory(pods: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {
        (pod["metadata"]["name"], use.uuid): use.mem_mib
        for pod in pods
        for slot in hami.decode_devices(
            (pod["metadata"].get("annotations") or {}).get(names.HAMI_ALLOCATED, "")
        )
        for use in slot
    }
