"""Pieces of HTML. Every name that comes in is escaped here, as text or as an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

# A third of a page has more lines than these, with the heading above them.
_SHORT = 12
# Characters on a line of a narrow column, at least; longer texts take several lines.
_NARROW = 20
# Attributes of a table's cells, by what they hold.
_FIGURE, _NAME, _WORDS = ' class="figure"', ' class="name"', ' class="words"'


class Bar(NamedTuple):
    """One bar: parts as (class, amount), and a word for its end."""

    label: str
    parts: Sequence[tuple[str, float]]
    value: str


def soft(text: str) -> str:
    """A sentence beside the point."""
    return f'<p class="soft">{escape(text)}</p>'


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 0, names: int = 0
) -> str:
    """A table; its last ``words`` columns hold sentences, the ``names`` columns before them names, which may be long.

    On a phone every row is a list with its headings.
    """
    cells, kinds = list(rows), _kinds(headings, words, names)
    return _table(headings, _rows(headings, cells, kinds), kinds, sum(map(_lines, cells)))


def grouped(headings: Sequence[str], groups: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> str:
    """A table whose rows have a line above them that is true of all of them; the last column holds a sentence."""
    lines, n_lines, kinds = [], 0, _kinds(headings, 1, 0)
    for title, rows in groups:
        lines += [
            f'<tr class="group"><th colspan="{len(headings)}">{escape(title)}</th></tr>',
            *_rows(headings, rows, kinds),
        ]
        n_lines += 1 + sum(map(_lines, rows))
    return _table(headings, lines, kinds, n_lines)


def _rows(
    headings: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str]
) -> list[str]:
    return [
        "<tr>"
        + "".join(
            f"<td{kinds[i]}{_label(headings[i]) if i else ''}>{escape(text)}</td>"
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    ]


def _table(headings: Sequence[str], rows: Sequence[str], kinds: Sequence[str], n_lines: int) -> str:
    head = "".join(f"<th{kinds[i]}>{escape(text)}</th>" for i, text in enumerate(headings))
    lines = "\n".join(rows)
    return f"<table{_short(n_lines)}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody></table>"


def bars(title: str, drawn: Sequence[Bar], legend: Sequence[tuple[str, str]] = ()) -> str:
    """Bars of one scale; ``legend`` are (class, meaning)."""
    longest = max((sum(amount for _, amount in bar.parts) for bar in drawn), default=0.0) or 1.0
    lines, meaning = [], dict(legend)
    for bar in drawn:
        parts = "".join(
            f'<i class="{kind}" style="width:{amount / longest:.2%}"'
            f' title="{escape(f"{meaning.get(kind, kind)}: {amount:,.1f}")}"></i>'
            for kind, amount in bar.parts
            if amount / longest >= 1e-4
        )
        lines.append(
            f"<span>{escape(bar.label)}</span>"
            f'<span class="bar">{parts}</span><span>{escape(bar.value)}</span>'
        )
    body = "\n".join(lines)
    return (
        f'<figure{_short(sum(_lines((bar.label,)) for bar in drawn))} role="group" aria-label="{escape(title)}">{_legend(legend)}\n'
        f'<div class="bars">\n{body}\n</div></figure>'
    )


def _lines(texts: Iterable[str]) -> int:
    """How many lines a row takes if its columns are narrow."""
    return max(1, *(-(-len(text) // _NARROW) for text in texts))


def _short(n_lines: int) -> str:
    """On paper what takes a small part of a page is not torn; more than that would leave a third of it empty."""
    return ' class="short"' if n_lines <= _SHORT else ""


def _legend(meanings: Sequence[tuple[str, str]]) -> str:
    if not meanings:
        return ""
    words = "".join(f'<span><i class="{kind}"></i>{escape(text)}</span>' for kind, text in meanings)
    return f'<div class="legend">{words}</div>'


def _kinds(headings: Sequence[str], words: int, names: int) -> list[str]:
    n_figures = len(headings) - 1 - names - words
    return ["", *[_FIGURE] * n_figures, *[_NAME] * names, *[_WORDS] * words]


def _label(heading: str) -> str:
    return f' data-label="{escape(heading)}"'
