"""The page, from the top: the headline, the advice, the fleet, then the detail."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from scheduler.audit import causes, words
from scheduler.audit.page import charts, fleet, parts
from scheduler.audit.page.style import STYLE
from scheduler.audit.words import FIGURES, TITLES, amount, spread, whole

Json = dict[str, Any]
_METHOD = (
    (
        "Usable is free capacity that typical pods can use, averaged over these pods. Stranded is free capacity that "
        "typical pods cannot use, because another resource of the node is used up or too little is left on a card. "
        "Where one more typical pod fits on a node, nothing on the node counts as stranded for that pod, so the figures "
        "are lower bounds."
    ),
    "A node is empty when its only pods belong to the node itself, such as those of a DaemonSet.",
)


def render(audit: Json) -> str:
    """The page. Every name in it comes from a cluster and is escaped."""
    replay = audit["replay"]
    first, second = words.headline(audit)
    body = [
        "<h1>What this cluster could use, and what it cannot</h1>",
        parts.soft(words.about(audit)),
        f'<p class="lead"><strong>{escape(first)}</strong></p>',
        f'<p class="lead">{escape(second)}</p>',
        *_sentences((words.of_free(audit),)),
    ]
    if replay["modes"]:
        body.append(
            f'<p class="advice"><strong>Advice.</strong> {escape(replay["advice"]["text"])}</p>'
        )
    body += [
        "<h2>The fleet</h2>",
        fleet.draw(audit["nodes"], audit["waiting"])
        if audit["nodes"]
        else "<p>The cluster has no node.</p>",
        *_sentences((words.waits(audit),)),
        "<h2>In total</h2>",
        _total(audit["total"]),
        *_sentences(words.LEGEND),
        "<h2>Dollars a month, by resource</h2>",
        charts.money(audit["total"]),
        "<h2>GPUs by node, the most stranded GPUs first</h2>",
        charts.nodes(audit["nodes"]),
        "<h2>Where the most is stranded, in dollars</h2>",
        _worst(audit),
    ]
    if audit["next"]:
        body += [
            "<h2>Where one more pod of each frequent kind would go</h2>",
            parts.table(
                ("a pod like", "goes to", "loses", "because"),
                [words.upcoming(kind) for kind in audit["next"]],
                words=2,
                names=1,
            ),
        ]
    if replay["modes"] and replay["arrivals"]:
        body += [
            "<h2>What the nodes hold if each mode fills them up</h2>",
            charts.modes(replay),
            _filled(replay),
            *_sentences(words.filled(audit)),
        ]
    if replay["modes"]:
        body += [
            "<h2>The same pods placed again by other modes: what is stranded at one moment</h2>",
            _modes(audit),
            *_sentences((*words.moved(audit), replay["note"])),
        ]
    body += [
        "<h2>How the figures were measured</h2>",
        *_sentences(
            (*words.judged_by(audit), *words.not_judged(audit), *_METHOD, *words.priced_by(audit))
        ),
    ]
    text = "\n".join(body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Evenkeel audit</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{text}\n"
        "</body>\n</html>\n"
    )


def _sentences(texts: Iterable[str]) -> list[str]:
    return [parts.soft(text) for text in texts if text]


def _total(total: Json) -> str:
    return parts.table(
        ("", *TITLES.values(), "$ a month"),
        [
            (title, *(amount(total[figure][key]) for key in TITLES),
             f"{total['value'][figure]:,.0f}")
            for figure, title in FIGURES.items()
        ],
    )  # fmt: skip


def _worst(audit: Json) -> str:
    found, worst = causes.by_cause(audit), set(audit["worst"])
    if not found:
        return "<p>Nothing is stranded.</p>"
    groups = []
    for cause, nodes in found.items():
        shown = [node for node in nodes if node["name"] in worst]
        rows = [
            (node["name"], *causes.sum_stranded([node]), causes.left(node["why"])) for node in shown
        ]
        others = [node for node in nodes if node["name"] not in worst]
        if others:
            named, what = causes.rest_of_cause(len(shown), others)
            rows.append((named, *causes.sum_stranded(others), what))
        groups.append((causes.of_cause(cause, nodes), rows))
    headings = ("node", *TITLES.values(), "$ a month", "what is left")
    return parts.grouped(headings, groups)


def _filled(replay: Json) -> str:
    now = words.list_held({key: [value] for key, value in replay["held"].items()})
    rows = [(name, *words.list_held(one["held"])) for name, one in words.rows_of_modes(replay)]
    headings = ("mode", *(f"{title} held" for title in words.HELD.values()))
    return parts.table(headings, [("as it is now", *now), *rows])


def _modes(audit: Json) -> str:
    replay, total = audit["replay"], audit["total"]
    headings = ("mode", "empty nodes", "not placed", "GPUs stranded", "$ a month stranded")
    now = (
        "as it is now", f"{replay['emptyNodes']:,}", "", amount(total["stranded"]["gpuCompute"]),
        f"{total['money']:,.0f}",
    )  # fmt: skip
    rows = [
        (
            name,
            *(spread(one["inOrders"][key]) for key in ("emptyNodes", "unplaced", "gpus")),
            whole(one["inOrders"]["money"]),
        )
        for name, one in words.rows_of_modes(replay)
    ]
    return parts.table(headings, [now, *rows])
