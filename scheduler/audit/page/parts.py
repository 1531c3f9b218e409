"""Writes pieces of HTML. Every name is escaped here, as text or as an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

# So many lines and a heading fit in a third of a page.
_SHORT = 12
# The least characters on a line of a narrow column; longer texts take several lines.
_NARROW = 20
# Attributes of a table's cells, by what they hold.
_FIGURE, _NAME, _WORDS = ' class="figure"', ' class="name"', ' class="words"'


class Bar(NamedTuple):
    """One bar: parts as (class, amount), and a word for its end."""

    label: str
    parts: Sequence[tuple[str, float]]
    value: str


def write_soft(text: str) -> str:
    """Write a sentence in a soft colour, because it is less important."""
    return f'<p class="soft">{escape(text)}</p>'


def write_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 0, names: int = 0
) -> str:
    """Write a table; its last ``words`` columns hold sentences, and the ``names`` columns before these hold long names.

    On a phone every row is a list with its headings.
    """
    cells, kinds = list(rows), _list_kinds(headings, words, names)
    return _write_table(
        headings, _write_rows(headings, cells, kinds), kinds, sum(map(_count_lines, cells))
    )


def write_grouped(
    headings: Sequence[str], groups: Iterable[tuple[str, Sequence[Sequence[str]]]]
) -> str:
    """Write a table with a line above each group of rows that is about all of them; the last column holds sentences."""
    lines, n_lines, kinds = [], 0, _list_kinds(headings, 1, 0)
    for title, rows in groups:
        lines += [
            f'<tr class="group"><th colspan="{len(headings)}">{escape(title)}</th></tr>',
            *_write_rows(headings, rows, kinds),
        ]
        n_lines += 1 + sum(map(_count_lines, rows))
    return _write_table(headings, lines, kinds, n_lines)


def _write_rows(
    headings: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str]
) -> list[str]:
    return [
        "<tr>"
        + "".join(
            f"<td{kinds[i]}{_write_label(headings[i]) if i else ''}>{escape(text)}</td>"
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in rows
    ]


def _write_table(
    headings: Sequence[str], rows: Sequence[str], kinds: Sequence[str], n_lines: int
) -> str:
    head = "".join(f"<th{kinds[i]}>{escape(text)}</th>" for i, text in enumerate(headings))
    lines = "\n".join(rows)
    return f"<table{_mark_short(n_lines)}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}\n</tbody></table>"


def draw_bars(title: str, drawn: Sequence[Bar], legend: Sequence[tuple[str, str]] = ()) -> str:
    """Draw bars on one scale; ``legend`` are (class, meaning)."""
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
        f'<figure{_mark_short(sum(_count_lines((bar.label,)) for bar in drawn))} role="group" aria-label="{escape(title)}">{_write_legend(legend)}\n'
        f'<div class="bars">\n{body}\n</div></figure>'
    )


def _count_lines(texts: Iterable[str]) -> int:
    """Count the lines of a row if its columns are narrow."""
    return max(1, *(-(-len(text) // _NARROW) for text in texts))


def _mark_short(n_lines: int) -> str:
    """Mark a short table as one that is not torn on paper; a longer one could leave a third of a page empty."""
    return ' class="short"' if n_lines <= _SHORT else ""


def _write_legend(meanings: Sequence[tuple[str, str]]) -> str:
    if not meanings:
        return ""
    words = "".join(f'<span><i class="{kind}"></i>{escape(text)}</span>' for kind, text in meanings)
    return f'<div class="legend">{words}</div>'


def _list_kinds(headings: Sequence[str], words: int, names: int) -> list[str]:
    n_figures = len(headings) - 1 - names - words
    return ["", *[_FIGURE] * n_figures, *[_NAME] * names, *[_WORDS] * words]


def _write_label(heading: str) -> str:
    return f' data-label="{escape(heading)}"'
