"""Prints ``evenkeel explain``: folded to a terminal's width; elsewhere prose has 80 columns and rows are whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from scheduler import printing
from scheduler.explain import layout, node_lines, pod_lines

Json = Mapping[str, Any]


def show(answer: Json, console: Console) -> None:
    """Print the answer."""
    answer = printing.shown(answer)
    lines = pod_lines.of if answer["kind"] == "Pod" else node_lines.of
    if printing.is_terminal(console):
        layout.draw(lines(answer, console.width), console, console.width)
    else:
        text = printing.text(lambda whole: layout.draw(lines(answer, whole.width), whole, None))
        console.file.write(text)
