"""Draws nodes × cards with the pods on them in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.columns import Columns
from rich.console import RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from scheduler.demo.cards import NodeCards

_WIDTH = 20
_COLOURS = ("cyan", "magenta", "yellow", "green")


def draw_nodes(nodes: Sequence[NodeCards], pods: Sequence[str]) -> RenderableType:
    """Draw a panel per node and a row per card: how full its memory is, and with which pods."""
    colours = {pod: _COLOURS[i % len(_COLOURS)] for i, pod in enumerate(pods)}
    return Columns([_draw_node(node, colours) for node in nodes], padding=(0, 2))


def _draw_node(node: NodeCards, colours: Mapping[str, str]) -> Panel:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for card in node.cards:
        bar, total = Text(), 0
        for pod, mib in card.pods:
            bar.append("█" * round(_WIDTH * mib / card.mib), style=colours[pod])
            total += mib
        bar.append("░" * (_WIDTH - len(bar.plain)), style="dim")
        names_of = Text(" ").join(
            Text(pod.rsplit("-", 1)[-1], style=colours[pod]) for pod, _ in card.pods
        )
        table.add_row(card.name, bar, f"{total:>5}/{card.mib} MiB", Text.assemble(("pods ", "dim"), names_of) if card.pods else "")  # fmt: skip
    return Panel(table, title=node.name, width=64)
