"""The page, from the top: the headline, the advice, the fleet, then the detail."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from scheduler.audit import words
from scheduler.audit.page import charts, fleet, parts
from scheduler.audit.page.style import STYLE
from scheduler.audit.words import FIGURES, TITLES, amount, spread, whole

Json = dict[str, Any]
_METHOD = (
    (
        "Usable is what is free and what the typical pod, in expectation, can take. Stranded is what is free and "
        "what it cannot take, because something else is gone on the node or too little is left on a card. "
        "Dead is the part of it that no typical pod at all can take. Where one typical pod still fits, "
        "nothing counts as stranded for it: it is the least one can say."
    ),
    (
        "Spare is free CPU and memory that is no loss: what lies beside GPUs that are all in use and that no pod "
        "seen could run on, and what is too little for any pod."
    ),
    (
        "Closed is what is free on nodes that are cordoned or not healthy, and on cards that are out of order, "
        "in MIG mode, or held by pods that do not say which."
    ),
    "A node is empty when it has no pod but those that belong to it, such as a DaemonSet's.",
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
        else "<p>There is no node.</p>",
        *_sentences((words.waits(audit),)),
        "<h2>In total</h2>",
        _total(audit["total"]),
        "<h2>Dollars a month, by resource</h2>",
        charts.money(audit["total"]),
        "<h2>GPUs by node, the most stranded GPUs first</h2>",
        charts.nodes(audit["nodes"]),
        "<h2>Where the most is stranded, in dollars</h2>",
        _worst(audit),
    ]
    if audit["next"]:
        body += [
            "<h2>One more pod of a kind that is there</h2>",
            parts.table(
                ("it asks", "goes to", "and loses", "why there"),
                [words.upcoming(kind) for kind in audit["next"]],
                words=2,
            ),
        ]
    if replay["modes"] and replay["arrivals"]:
        body += [
            "<h2>What the nodes hold, filled up by each mode</h2>",
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
        "<h2>How it was judged</h2>",
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
    by_name = {node["name"]: node for node in audit["nodes"]}
    if not audit["worst"]:
        return "<p>Nowhere: nothing is stranded.</p>"
    causes: dict[str, list[Json]] = {}
    for node in map(by_name.__getitem__, audit["worst"]):
        causes.setdefault(_cause(node["why"]), []).append(node)
    groups = [
        (
            f"{cause[0].upper()}{cause[1:]}",
            [
                (node["name"], *(amount(node["stranded"][key]) for key in TITLES),
                 f"{node['money']:,.0f}", _left(node["why"]))
                for node in nodes
            ],
        )
        for cause, nodes in causes.items()
    ]  # fmt: skip
    headings = ("node", *TITLES.values(), "$ a month", "what is left")
    return parts.grouped(headings, groups)


def _cause(why: Json | None) -> str:
    """What several nodes may have in common, which is told once for all of them."""
    if why is None:
        return "less than a hundredth of each unit is stranded"
    return f"{why['cause']} for {why['pods']}" if why["misfits"] else str(why["cause"])


def _left(why: Json | None) -> str:
    if why is None:
        return ""
    return f"{why['left']}; {why['misfits']} do not fit" if why["misfits"] else str(why["left"])


def _filled(replay: Json) -> str:
    now = words.held({key: [value] for key, value in replay["held"].items()})
    rows = [(one["mode"], *words.held(one["held"])) for one in replay["modes"]]
    headings = ("mode", *(f"{title} held" for title in words.HELD.values()))
    return parts.table(headings, [("as it is", *now), *rows])


def _modes(audit: Json) -> str:
    replay, total = audit["replay"], audit["total"]
    headings = ("mode", "empty nodes", "no place", "GPUs stranded", "$ a month stranded")
    now = (
        "as it is", f"{replay['emptyNodes']:,}", "", amount(total["stranded"]["gpuCompute"]),
        f"{total['money']:,.0f}",
    )  # fmt: skip
    rows = [
        (
            one["mode"],
            *(spread(one["inOrders"][key]) for key in ("emptyNodes", "unplaced", "gpus")),
            whole(one["inOrders"]["money"]),
        )
        for one in replay["modes"]
    ]
    return parts.table(headings, [now, *rows])
