"""Prints ``evenkeel explain``: folded to a terminal's width, elsewhere to 80 columns; wide rows are whole there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from scheduler import printing
from scheduler.explain import group_lines, layout, node_lines, pod_lines
from scheduler.explain.layout import Line

Json = Mapping[str, Any]


def print_answer(answer: Json, console: Console, *, is_wide: bool = False) -> None:
    """Print the answer; if ``is_wide``, with the ids of cards and, off a terminal, with rows of any width."""
    answer = printing.make_printable(answer)

    def lines(width: int) -> Iterator[Line]:
        if answer["kind"] == "Pod":
            return pod_lines.write_lines(answer, width)
        if answer["kind"] == "Group":
            return group_lines.write_lines(answer)
        return node_lines.write_lines(answer, is_wide=is_wide)

    if printing.is_terminal(console):
        layout.draw_lines(lines(console.width), console, console.width)
    else:
        text = printing.print_to_text(
            lambda whole: layout.draw_lines(
                lines(printing.PROSE), whole, printing.PROSE, has_whole_rows=is_wide
            )
        )
        console.file.write(text)
