"""Renders the page, from the top: the headline, the advice, the fleet, then the details."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from scheduler.audit import causes, device_words, sizes, words
from scheduler.audit.page import charts, fleet, parts
from scheduler.audit.page.style import STYLE
from scheduler.audit.words import FIGURES, TITLES, write_amount, write_range, write_whole_range

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


def render_page(audit: Json) -> str:
    """Render the page. Every name in it comes from a cluster and is escaped."""
    replay = audit["replay"]
    first, second = words.write_headline(audit)
    body = [
        "<h1>What this cluster could use, and what it cannot</h1>",
        parts.write_soft(words.describe_source(audit)),
        f'<p class="lead"><strong>{escape(first)}</strong></p>',
        f'<p class="lead">{escape(second)}</p>',
        *_write_sentences((words.describe_share(audit),)),
    ]
    if replay["modes"]:
        body.append(
            f'<p class="advice"><strong>Advice.</strong> {escape(replay["advice"]["text"])}</p>'
        )
    body += [
        "<h2>The fleet</h2>",
        fleet.draw_fleet(audit["nodes"], audit["waiting"])
        if audit["nodes"]
        else "<p>The cluster has no node.</p>",
        *_write_sentences((words.describe_waiting(audit),)),
        "<h2>In total</h2>",
        _write_total(audit["total"]),
        *_write_sentences(words.LEGEND),
        "<h2>Dollars a month, by resource</h2>",
        charts.draw_money(audit["total"]),
        "<h2>GPUs by node, the most stranded GPUs first</h2>",
        charts.draw_nodes(audit["nodes"]),
        "<h2>Where the most is stranded, in dollars</h2>",
        _write_worst(audit),
    ]
    if audit["gangs"]:
        body.append(
            "<h2>The largest group that fits now, and what would have to move for a larger one</h2>"
        )
    for kind in audit["gangs"]:
        body += [
            *_write_sentences((f"{sizes.write_heading(kind)}:",)),
            parts.write_table(sizes.HEADINGS, sizes.list_levels(kind)),
            *_write_sentences((*sizes.describe_taints(kind), *sizes.describe_moves(kind))),
        ]
    if audit["devices"]["models"]:
        body += [
            "<h2>Devices of claims</h2>",
            parts.write_table(device_words.HEADINGS, device_words.list_models(audit["devices"])),
        ]
    body += _write_sentences(device_words.describe(audit["devices"]))
    if audit["next"]:
        body += [
            "<h2>Where one more pod of each frequent kind would go</h2>",
            parts.write_table(
                ("a pod like", "goes to", "loses", "because"),
                [words.list_upcoming(kind) for kind in audit["next"]],
                words=2,
                names=1,
            ),
        ]
    if replay["modes"] and replay["arrivals"]:
        body += [
            "<h2>What the nodes hold if each mode fills them up</h2>",
            charts.draw_modes(replay),
            _write_filled(replay),
            *_write_sentences(words.describe_filled(audit)),
        ]
    if replay["modes"]:
        body += [
            "<h2>The same pods placed again by other modes: what is stranded at one moment</h2>",
            _write_modes(audit),
            *_write_sentences((*words.describe_moved(audit), replay["note"])),
        ]
    body += [
        "<h2>How the figures were measured</h2>",
        *_write_sentences(
            (
                *words.describe_demand(audit),
                *words.describe_not_judged(audit),
                *_METHOD,
                *words.describe_prices(audit),
            )
        ),
    ]
    text = "\n".join(body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Evenkeel audit</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{text}\n"
        "</body>\n</html>\n"
    )


def _write_sentences(texts: Iterable[str]) -> list[str]:
    return [parts.write_soft(text) for text in texts if text]


def _write_total(total: Json) -> str:
    return parts.write_table(
        ("", *TITLES.values(), "$ a month"),
        [
            (title, *(write_amount(total[figure][key]) for key in TITLES),
             f"{total['value'][figure]:,.0f}")
            for figure, title in FIGURES.items()
        ],
    )  # fmt: skip


def _write_worst(audit: Json) -> str:
    found, worst = causes.group_by_cause(audit), set(audit["worst"])
    if not found:
        return "<p>Nothing is stranded.</p>"
    groups = []
    for cause, nodes in found.items():
        shown = [node for node in nodes if node["name"] in worst]
        rows = [
            (node["name"], *causes.sum_stranded([node]), causes.describe_left(node["why"]))
            for node in shown
        ]
        others = [node for node in nodes if node["name"] not in worst]
        if others:
            named, what = causes.sum_up_rest(len(shown), others)
            rows.append((named, *causes.sum_stranded(others), what))
        groups.append((causes.write_heading(cause, nodes), rows))
    headings = ("node", *TITLES.values(), "$ a month", "what is left")
    return parts.write_grouped(headings, groups)


def _write_filled(replay: Json) -> str:
    now = words.list_held({key: [value] for key, value in replay["held"].items()})
    rows = [(name, *words.list_held(one["held"])) for name, one in words.list_modes(replay)]
    headings = ("mode", *(f"{title} held" for title in words.HELD.values()))
    return parts.write_table(headings, [("as it is now", *now), *rows])


def _write_modes(audit: Json) -> str:
    replay, total = audit["replay"], audit["total"]
    headings = ("mode", "empty nodes", "not placed", "GPUs stranded", "$ a month stranded")
    now = (
        "as it is now", f"{replay['emptyNodes']:,}", "", write_amount(total["stranded"]["gpuCompute"]),
        f"{total['money']:,.0f}",
    )  # fmt: skip
    rows = [
        (
            name,
            *(write_range(one["inOrders"][key]) for key in ("emptyNodes", "unplaced", "gpus")),
            write_whole_range(one["inOrders"]["money"]),
        )
        for name, one in words.list_modes(replay)
    ]
    return parts.write_table(headings, [now, *rows])
