"""Lines of text that fold at the edge of a terminal, and the parts that both pages are drawn with."""

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
    """A line, how far it stands to the right, and how much farther what is folded of it.

    A row is a line of a table, which whoever reads a pipe may want whole.
    """

    text: str = ""
    indent: int = 0
    hang: int = 2
    style: str = ""
    is_row: bool = False


def draw(
    lines: Iterable[Line], console: Console, width: int, *, has_whole_rows: bool = False
) -> None:
    """Print lines, folded at a width; rows are not where they are to be whole."""
    for line in lines:
        edge = None if line.is_row and has_whole_rows else width
        for text in folded(line, edge):
            console.print(Text(text, line.style), soft_wrap=True)


def folded(line: Line, width: int | None) -> Iterator[str]:
    """A line in as many as it takes; no word is broken, for half of a name is another name."""
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


def heading(text: str) -> Iterator[Line]:
    """A heading with room above it."""
    yield Line()
    yield Line(text, style=HEADING)


def some(names: Sequence[str], n: int | None = None, most: int = _NAMED) -> str:
    """The first of n names, of which these are the first; and how many more there are."""
    more = (len(names) if n is None else n) - min(most, len(names))
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
