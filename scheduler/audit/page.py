"""The audit as one HTML file that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from scheduler.audit import pictures
from scheduler.audit.table import TITLES, judged_by, mode_rows, moved

Json = dict[str, Any]
_STYLE = """
:root{color-scheme:light dark;--ink:#1d2329;--soft:#5b6670;--line:#d5dbe0;--paper:#fff;
--used:#5b7ea6;--usable:#4f9d69;--stranded:#c8553d;--closed:#a9b0b6}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa5ae;--line:#39424a;--paper:#14181b;
--used:#6f94bf;--usable:#5fb27c;--stranded:#e0705a;--closed:#5d666d}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;
max-width:60rem;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}p.soft{color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th:first-child,td:first-child,td.words,th.words{text-align:left}th{font-weight:600}
svg{width:100%;height:auto;display:block}svg text{fill:var(--ink);font:13px system-ui,sans-serif}
.used{fill:var(--used)}.usable{fill:var(--usable)}.stranded{fill:var(--stranded)}.closed{fill:var(--closed)}
"""
_STRANDED = (
    "Stranded is what is free and what the typical pod, in expectation, cannot take, because something "
    "else is gone on the node or too little is left on a card. Dead is the part that no typical pod at "
    "all can take. Where one typical pod still fits, nothing counts as stranded for it: it is the least "
    "one can say."
)
_CLOSED = (
    "Closed is what is free on nodes that are cordoned or not healthy, and on cards that are out of order, "
    "in MIG mode, or held by pods that do not say which."
)
_FIGURES = ("capacity", "used", "free", "closed", "stranded", "dead")


def render(audit: Json) -> str:
    """The page. Every name in it comes from a cluster and is escaped."""
    total = audit["total"]
    body = [
        "<h1>What this cluster cannot use</h1>",
        _headline(total),
        *(_soft(line) for line in judged_by(audit)),
        "<h2>In total</h2>",
        _total(total),
        pictures.money(total["moneyByDimension"]),
        "<h2>GPUs by node</h2>",
        pictures.nodes(audit["nodes"]),
        "<h2>Worst nodes</h2>",
        _worst(audit),
    ]
    if audit["replay"]["modes"]:
        body += [
            "<h2>The same pods placed by other modes</h2>",
            pictures.modes(total["money"], audit["replay"]["modes"]),
            _modes(audit),
            _soft(moved(audit)),
            _soft(audit["replay"]["note"]),
        ]
    body += ["<h2>How it was judged</h2>", _method(audit)]
    text = "\n".join(body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Evenkeel audit</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{text}\n"
        "</body>\n</html>\n"
    )


def _headline(total: Json) -> str:
    return (
        f"<p>Stranded resources worth <strong>${total['money']:,.0f}</strong> a month, "
        f"{total['stranded']['gpuCompute']:,.1f} of {total['free']['gpuCompute']:,.1f} free GPUs "
        f"among them, of which no typical pod can take {total['dead']['gpuCompute']:,.1f}.</p>"
    )


def _soft(text: str) -> str:
    return f'<p class="soft">{escape(text)}</p>'


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 0) -> str:
    """A table; its last ``words`` columns hold sentences."""
    first = len(headings) - words
    head = "".join(_cell("th", text, is_words=i >= first) for i, text in enumerate(headings))
    lines = "\n".join(
        f"<tr>{''.join(_cell('td', text, is_words=i >= first) for i, text in enumerate(row))}</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


def _cell(tag: str, text: str, *, is_words: bool) -> str:
    marked = ' class="words"' if is_words else ""
    return f"<{tag}{marked}>{escape(text)}</{tag}>"


def _total(total: Json) -> str:
    return _table(
        ("", *_FIGURES, "$ a month"),
        [
            (title, *(f"{total[f][key]:,.1f}" for f in _FIGURES),
             f"{total['moneyByDimension'][key]:,.0f}")
            for key, title in TITLES.items()
        ],
    )  # fmt: skip


def _worst(audit: Json) -> str:
    by_name = {node["name"]: node for node in audit["nodes"]}
    if not audit["worst"]:
        return "<p>None: nothing is stranded.</p>"
    return _table(
        ("node", *TITLES.values(), "$ a month", "why"),
        [
            (node["name"], *(f"{node['stranded'][key]:,.1f}" for key in TITLES),
             f"{node['money']:,.0f}", node["reason"])
            for node in (by_name[name] for name in audit["worst"])
        ],
        words=1,
    )  # fmt: skip


def _modes(audit: Json) -> str:
    headings = ("mode", *TITLES.values(), "$ a month", "saved", "no place", "empty nodes")
    return _table(headings, mode_rows(audit))


def _method(audit: Json) -> str:
    prices = ", ".join(f"{name} {price:g}" for name, price in audit["prices"].items())
    priced = f"Prices a month, in dollars: {prices}."
    return "\n".join(map(_soft, (_STRANDED, _CLOSED, priced)))
