"""Writes rows as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from scheduler.errors import make_visible

_OF_A_FORMULA = ("=", "+", "-", "@")


def write_csv(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a line for each row, below the headings. Texts come from a cluster and are made safe."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([_make_safe(cell) for cell in row] for row in rows)
    return lines.getvalue()


def _make_safe(cell: object) -> object:
    """Make a text safe that a spreadsheet would read as a formula; no name and no label is such a text."""
    if not isinstance(cell, str):
        return cell
    text = make_visible(cell)
    return f"'{text}" if text.startswith(_OF_A_FORMULA) else text
