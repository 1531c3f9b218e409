"""Prints a plan for people: each move with what it frees; folded to 80 columns or to a terminal's width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from scheduler import printing
from scheduler.explain.layout import HEADING, Line, draw_lines
from scheduler.plan import words

Json = Mapping[str, Any]


def print_plan(plan: Json, console: Console) -> None:
    """Print the plan."""
    plan = printing.make_printable(plan)
    if printing.is_terminal(console):
        width = min(console.width, printing.PROSE)
        draw_lines(_write_lines(plan), console, width)
    else:
        text = printing.print_to_text(
            lambda whole: draw_lines(_write_lines(plan), whole, printing.PROSE)
        )
        console.file.write(text)


def _write_lines(plan: Json) -> Iterator[Line]:
    yield Line(words.sum_up(plan), style=HEADING)
    if plan["bundles"]:
        yield Line(words.HOW)
    for i, bundle in enumerate(plan["bundles"], 1):
        yield Line()
        for k, move in enumerate(bundle["moves"], 1):
            number = f"{i}.{k}" if len(bundle["moves"]) > 1 else f"{i}"
            yield Line(f"{number}  {words.name_move(move)}", style=HEADING)
            yield Line(f"may go: {words.say_why(move)}", 4)
            for text in words.list_freed(move):
                yield Line(f"frees {text}", 4)
            for text in words.list_let_in(move):
                yield Line(f"lets in {text}", 4)
    if remarks := list(words.list_remarks(plan)):
        yield Line()
        yield from map(Line, remarks)
