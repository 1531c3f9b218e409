"""Lines of text that fold at the edge of a terminal, and parts that both pages share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_NAMED = 3
_LEAST_WIDTH = 20
HEADING = "bold"


class Line(NamedTuple):
    """A line, its indent, and the extra indent of its folded parts.

    A row is a line of a table; a program that reads a pipe may want rows whole.
    """

    text: str = ""
    indent: int = 0
    hang: int = 2
    style: str = ""
    is_row: bool = False


def draw_lines(
    lines: Iterable[Line], console: Console, width: int, *, has_whole_rows: bool = False
) -> None:
    """Print lines, folded at a width; with ``has_whole_rows`` rows are not folded."""
    for line in lines:
        edge = None if line.is_row and has_whole_rows else width
        for text in fold_line(line, edge):
            console.print(Text(text, line.style), soft_wrap=True)


def fold_line(line: Line, width: int | None) -> Iterator[str]:
    """Fold a line into as many as needed; no word is broken, because half of a name is another name."""
    whole = " " * line.indent + line.text
    if width is None or cell_len(whole) <= width:
        yield whole
        return
    indent = min(line.indent + line.hang, max(0, width - _LEAST_WIDTH))
    yield from textwrap.wrap(
        line.text,
        width,
        initial_indent=" " * line.indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    ) or [whole]


def make_heading(text: str) -> Iterator[Line]:
    """Make a heading with an empty line above it."""
    yield Line()
    yield Line(text, style=HEADING)


def name_some(names: Sequence[str], n: int | None = None, most: int = _NAMED) -> str:
    """Name the first of ``n`` names, which ``names`` begins with, and how many more there are."""
    more = (len(names) if n is None else n) - min(most, len(names))
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
