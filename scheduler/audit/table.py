"""The audit as text: at most 80 columns wide; only tables in a pipe may be wider."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler import printing
from scheduler.audit import causes, sheet, words
from scheduler.audit.words import FIGURES, TITLES, amount, spread, whole

Json = dict[str, Any]


def show(audit: Json, console: Console) -> None:
    """Print what is usable and what is stranded, the worst nodes, and the results of other modes."""
    say(console, words.about(audit))
    console.print()
    for line in (*words.headline(audit), words.of_free(audit)):
        if line:
            say(console, line)
    console.print(_total(audit["total"]))
    for line in words.LEGEND:
        say(console, line)
    console.print()
    judged = (*words.judged_by(audit), words.waits(audit))
    for line in (*judged, *words.not_judged(audit), *words.priced_by(audit)):
        if line:
            say(console, line)
    if audit["worst"]:
        console.print(_worst(audit))
    # Sentences stand below the figures, not beside them: a narrow terminal has no room for both.
    for line in causes.worst(audit):
        say(console, line)
    _next(audit["next"], console)
    _replay(audit, console)


def show_nodes(audit: Json, console: Console) -> None:
    """Print every node by its name: its cards, what of it is in use, and what is stranded."""
    say(console, words.about(audit))
    table = columns(
        "node", "model", "cards", "pods", "CPU%", "mem%", "GPU%", "VRAM%", "stranded"
    )  # fmt: skip
    table.columns[1].justify = "left"
    uncounted = {one["node"]: one for one in audit["uncounted"]}
    for node in sorted(audit["nodes"], key=lambda one: str(one["name"])):
        table.add_row(*map(Text, words.node(node, uncounted.get(node["name"]))))
    console.print(table)
    say(
        console,
        "CPU, mem, GPU and VRAM: percent in use. Pods: those on the node's cards. "
        "Stranded: free GPUs that typical pods cannot use; "
        f"{words.OUT}: the node is out of service, cordoned or unhealthy.",
    )
    for line in words.not_judged(audit):
        say(console, line)


def as_csv(audit: Json) -> str:
    """Every node by its name, as ``show_nodes``, in amounts; ``uncountedGpus`` are those that only labels tell."""
    figures = ("capacity", "used", "stranded")
    amounts = [(key, figure) for key in TITLES for figure in figures]
    titles = (f"{key}{figure.title()}" for key, figure in amounts)
    uncounted = {one["node"]: one["gpus"] for one in audit["uncounted"]}
    headings = ("node", "models", "uncountedGpus", "pods", "isClosed", *titles, "money")
    rows = (
        (
            one["name"],
            ", ".join(one["models"]),
            uncounted.get(one["name"]),
            one["sharers"],
            one["isClosed"],
            *(one[figure][key] for key, figure in amounts),
            one["money"],
        )
        for one in sorted(audit["nodes"], key=lambda one: str(one["name"]))
    )
    return sheet.write_csv(headings, rows)


def _next(kinds: list[Json], console: Console) -> None:
    if not kinds:
        return
    console.print()
    say(
        console,
        "Where one more pod of each frequent kind would go, what it would lose, and why:",
    )
    for kind in kinds:
        like, node, loss, why = words.upcoming(kind)
        goes = f"goes to {node}" if kind["nodes"] else node
        lost = f" and loses {loss}" if loss else ""
        say(console, f"{like}: {goes}{lost}. {why}".rstrip())


def _replay(audit: Json, console: Console) -> None:
    replay = audit["replay"]
    if not replay["modes"]:
        return
    if replay["arrivals"]:
        console.print(_filled(replay))
        for line in words.filled(audit):
            say(console, line)
    say(console, f"Advice: {replay['advice']['text']}")
    console.print(_modes(replay, audit["total"]))
    for line in (*words.moved(audit), replay["note"]):
        say(console, line)


def say(console: Console, text: str) -> None:
    """Print a sentence, wrapped off a terminal too."""
    # What is indented is one of a list, such as a mistake with its file: a row, and no prose.
    is_whole = console.is_terminal or text.startswith(" ")
    prose = text if is_whole else printing.wrap_prose(text, printing.PROSE)
    console.print(prose, highlight=False, markup=False)


def columns(*headings: str) -> Table:
    """Where a table is too wide its widest column is folded, which is that of names; nothing is cut off."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    return table


def _total(total: Json) -> Table:
    table = columns("", *TITLES.values(), "$ a month")
    for figure, title in FIGURES.items():
        cells = (amount(total[figure][key]) for key in TITLES)
        table.add_row(title, *cells, f"{total['value'][figure]:,.0f}")
    return table


def _worst(audit: Json) -> Table:
    """The nodes that strand the most, and in one row all others."""
    table = columns("stranded on", "CPU", "GiB", "GPUs", "GPU GiB", "$ a month")
    worst = set(audit["worst"])
    for node in audit["nodes"]:
        if node["name"] in worst:
            table.add_row(Text(node["name"]), *causes.sum_stranded([node]))
    others = [node for node in audit["nodes"] if node["money"] > 0 and node["name"] not in worst]
    if others:
        table.add_section()
        more = f"and {words.count_nouns(len(others), 'more node')}"
        table.add_row(more, *causes.sum_stranded(others))
    return table


def _filled(replay: Json) -> Table:
    table = columns("filled up by", *(f"{title} held" for title in words.HELD.values()))
    table.columns[0].no_wrap = True
    table.add_row(
        "as it is now", *words.list_held({key: [value] for key, value in replay["held"].items()})
    )
    for name, one in words.rows_of_modes(replay):
        table.add_row(name, *words.list_held(one["held"]))
    return table


def _modes(replay: Json, total: Json) -> Table:
    table = columns("placed again by", "empty nodes", "not placed", "stranded GPUs", "$ stranded")
    # Ranges are folded where they are too wide, between their figures.
    table.columns[0].no_wrap = True
    now = f"{replay['emptyNodes']:,}", "", amount(total["stranded"]["gpuCompute"])
    table.add_row("as it is now", *now, f"{total['money']:,.0f}")
    for name, one in words.rows_of_modes(replay):
        tried = one["inOrders"]
        cells = (spread(tried[key]) for key in ("emptyNodes", "unplaced", "gpus"))
        table.add_row(name, *cells, whole(tried["money"]))
    return table
