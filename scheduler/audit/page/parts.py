"""Pieces of HTML. Every name that comes in is escaped here, as text or as an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

# A third of a page has more lines than these, with the heading above them.
_SHORT = 12
# A row with a sentence takes so many lines.
_LINES_OF_WORDS = 3


class Bar(NamedTuple):
    """One bar: parts as (class, amount), and a word for its end."""

    label: str
    parts: Sequence[tuple[str, float]]
    value: str


def soft(text: str) -> str:
    """A sentence beside the point."""
    return f'<p class="soft">{escape(text)}</p>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 0) -> str:
    """A table; its last ``words`` columns hold sentences. On a phone every row is a list with its headings."""
    return _table(headings, _rows(headings, rows, words), words)


def grouped(headings: Sequence[str], groups: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> str:
    """A table whose rows have a line above them that is true of all of them; the last column holds a sentence."""
    lines = []
    for title, rows in groups:
        lines += [
            f'<tr class="group"><th colspan="{len(headings)}">{escape(title)}</th></tr>',
            *_rows(headings, rows, 1),
        ]
    return _table(headings, lines, 1)


def _rows(headings: Sequence[str], rows: Iterable[Sequence[str]], words: int) -> list[str]:
    first = len(headings) - words
    return [
        "<tr>"
        + "".join(
            f"<td{_kind(i, first)}{_label(headings[i]) if i else ''}>{escape(text)}</td>"
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    ]


def _table(headings: Sequence[str], rows: Sequence[str], words: int) -> str:
    first = len(headings) - words
    head = "".join(f"<th{_kind(i, first)}>{escape(text)}</th>" for i, text in enumerate(headings))
    kind, lines = _short(len(rows) * (_LINES_OF_WORDS if words else 1)), "\n".join(rows)
    return f"<table{kind}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody></table>"


def bars(title: str, drawn: Sequence[Bar], legend: Sequence[tuple[str, str]] = ()) -> str:
    """Bars of one scale; ``legend`` are (class, meaning)."""
    longest = max((sum(amount for _, amount in bar.parts) for bar in drawn), default=0.0) or 1.0
    lines = []
    for bar in drawn:
        parts = "".join(
            f'<i class="{kind}" style="width:{amount / longest:.2%}"'
            f' title="{escape(f"{kind} {amount:,.1f}")}"></i>'
            for kind, amount in bar.parts
            if amount / longest >= 1e-4
        )
        lines.append(
            f"<span>{escape(bar.label)}</span>"
            f'<span class="bar">{parts}</span><span>{escape(bar.value)}</span>'
        )
    body = "\n".join(lines)
    return (
        f'<figure{_short(len(drawn))} role="group" aria-label="{escape(title)}">{_legend(legend)}\n'
        f'<div class="bars">\n{body}\n</div></figure>'
    )


def _short(n_lines: int) -> str:
    """On paper what takes a small part of a page is not torn; more than that would leave a third of it empty."""
    return ' class="short"' if n_lines <= _SHORT else ""


def _legend(meanings: Sequence[tuple[str, str]]) -> str:
    if not meanings:
        return ""
    words = "".join(f'<span><i class="{kind}"></i>{escape(text)}</span>' for kind, text in meanings)
    return f'<div class="legend">{words}</div>'


def _kind(column: int, first_of_words: int) -> str:
    if column >= first_of_words:
        return ' class="words"'
    return ' class="figure"' if column else ""


def _label(heading: str) -> str:
    return f' data-label="{escape(heading)}"'
