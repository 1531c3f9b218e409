"""Tables of ``evenkeel queue``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from scheduler.explain.layout import HEADING, Line

_GAP, _INDENT = "  ", 6


def make_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], edge: int | None, n_titles: int = 1
) -> Iterator[Line]:
    """Make a table; where it is wider than the page, its first cells are a line above the others.

    Rows that follow each other with the same first cells share this line.
    """
    cells = [heads, *rows]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(heads))]
    if edge is None or sum(widths) + len(_GAP) * (len(widths) - 1) <= edge:
        yield from (_make_row(row, widths, 0, is_head=row is heads) for row in cells)
        return
    for titles, those in groupby(cells, key=lambda row: row[:n_titles]):
        is_head = titles == heads[:n_titles]
        yield _make_row(titles, [0] * n_titles, 0, is_head=is_head)
        yield from (
            _make_row(row[n_titles:], widths[n_titles:], _INDENT, is_head=is_head) for row in those
        )


def _make_row(row: Sequence[str], widths: Sequence[int], indent: int, *, is_head: bool) -> Line:
    padded = (cell + " " * (wide - cell_len(cell)) for cell, wide in zip(row, widths, strict=True))
    style = HEADING if is_head else ""
    return Line(_GAP.join(padded).rstrip(), indent, 4, style, is_row=True)
