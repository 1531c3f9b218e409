"""Prints the audit as text: at most 80 columns wide; only tables in a pipe may be wider."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scheduler import printing
from scheduler.audit import causes, device_words, sheet, sizes, words
from scheduler.audit.words import FIGURES, TITLES, write_amount, write_range, write_whole_range

Json = dict[str, Any]


def print_audit(audit: Json, console: Console) -> None:
    """Print what is usable and what is stranded, the worst nodes, and the results of other modes."""
    print_sentence(console, words.describe_source(audit))
    console.print()
    for line in (*words.write_headline(audit), words.describe_share(audit)):
        if line:
            print_sentence(console, line)
    console.print(_make_total(audit["total"]))
    for line in words.LEGEND:
        print_sentence(console, line)
    console.print()
    judged = (*words.describe_demand(audit), words.describe_waiting(audit))
    for line in (*judged, *words.describe_not_judged(audit), *words.describe_prices(audit)):
        if line:
            print_sentence(console, line)
    if audit["worst"]:
        console.print(_make_worst(audit))
    # Sentences are below the figures, not beside them: a narrow terminal has no room for both.
    for line in causes.list_worst(audit):
        print_sentence(console, line)
    for kind in audit["gangs"]:
        _print_sizes(kind, console)
    _print_devices(audit["devices"], console)
    _print_next(audit["next"], console)
    _print_replay(audit, console)


def print_nodes(audit: Json, console: Console) -> None:
    """Print every node by its name: its cards, what is in use, and what is stranded."""
    print_sentence(console, words.describe_source(audit))
    table = make_table(
        "node", "model", "cards", "pods", "CPU%", "mem%", "GPU%", "VRAM%", "stranded"
    )  # fmt: skip
    table.columns[1].justify = "left"
    uncounted = {one["node"]: one for one in audit["uncounted"]}
    for node in sorted(audit["nodes"], key=lambda one: str(one["name"])):
        table.add_row(*map(Text, words.list_node(node, uncounted.get(node["name"]))))
    console.print(table)
    print_sentence(
        console,
        "CPU, mem, GPU and VRAM: percent in use. Pods: those on the node's cards. "
        "Stranded: free GPUs that typical pods cannot use; "
        f"{words.OUT}: the node is out of service, cordoned or unhealthy.",
    )
    for line in words.describe_not_judged(audit):
        print_sentence(console, line)


def write_csv_nodes(audit: Json) -> str:
    """Write every node by its name, as ``print_nodes``, in amounts; ``uncountedGpus`` are known only from labels."""
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


def _print_sizes(kind: Json, console: Console) -> None:
    console.print()
    print_sentence(console, f"{sizes.write_heading(kind)}:")
    table = make_table(*sizes.HEADINGS)
    for row in sizes.list_levels(kind):
        table.add_row(*map(Text, row))
    console.print(table)
    for line in (*sizes.describe_taints(kind), *sizes.describe_moves(kind)):
        print_sentence(console, line)


def _print_devices(devices: Json, console: Console) -> None:
    if devices["models"]:
        console.print()
        table = make_table(*device_words.HEADINGS)
        for row in device_words.list_models(devices):
            table.add_row(*map(Text, row))
        console.print(table)
    for line in device_words.describe(devices):
        print_sentence(console, line)


def _print_next(kinds: list[Json], console: Console) -> None:
    if not kinds:
        return
    console.print()
    print_sentence(
        console,
        "Where one more pod of each frequent kind would go, what it would lose, and why:",
    )
    for kind in kinds:
        like, node, loss, why = words.list_upcoming(kind)
        goes = f"goes to {node}" if kind["nodes"] else node
        lost = f" and loses {loss}" if loss else ""
        print_sentence(console, f"{like}: {goes}{lost}. {why}".rstrip())


def _print_replay(audit: Json, console: Console) -> None:
    replay = audit["replay"]
    if not replay["modes"]:
        return
    if replay["arrivals"]:
        console.print(_make_filled(replay))
        for line in words.describe_filled(audit):
            print_sentence(console, line)
    print_sentence(console, f"Advice: {replay['advice']['text']}")
    console.print(_make_modes(replay, audit["total"]))
    for line in (*words.describe_moved(audit), replay["note"]):
        print_sentence(console, line)


def print_sentence(console: Console, text: str) -> None:
    """Print a sentence, wrapped even if the output is no terminal."""
    # An indented text is an entry of a list, such as a mistake with its file, and is not wrapped off a terminal.
    is_whole = console.is_terminal or text.startswith(" ")
    prose = text if is_whole else printing.wrap_prose(text, printing.PROSE)
    console.print(prose, highlight=False, markup=False)


def make_table(*headings: str) -> Table:
    """Make a table. If it is too wide, its widest column is folded, which has the names; nothing is cut off."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    return table


def _make_total(total: Json) -> Table:
    table = make_table("", *TITLES.values(), "$ a month")
    for figure, title in FIGURES.items():
        cells = (write_amount(total[figure][key]) for key in TITLES)
        table.add_row(title, *cells, f"{total['value'][figure]:,.0f}")
    return table


def _make_worst(audit: Json) -> Table:
    """Make the table of the nodes that strand the most, with one row for all others."""
    table = make_table("stranded on", "CPU", "GiB", "GPUs", "GPU GiB", "$ a month")
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


def _make_filled(replay: Json) -> Table:
    table = make_table("filled up by", *(f"{title} held" for title in words.HELD.values()))
    table.columns[0].no_wrap = True
    table.add_row(
        "as it is now", *words.list_held({key: [value] for key, value in replay["held"].items()})
    )
    for name, one in words.list_modes(replay):
        table.add_row(name, *words.list_held(one["held"]))
    return table


def _make_modes(replay: Json, total: Json) -> Table:
    table = make_table(
        "placed again by", "empty nodes", "not placed", "stranded GPUs", "$ stranded"
    )
    # Ranges that are too wide are folded between their figures.
    table.columns[0].no_wrap = True
    now = f"{replay['emptyNodes']:,}", "", write_amount(total["stranded"]["gpuCompute"])
    table.add_row("as it is now", *now, f"{total['money']:,.0f}")
    for name, one in words.list_modes(replay):
        tried = one["inOrders"]
        cells = (write_range(tried[key]) for key in ("emptyNodes", "unplaced", "gpus"))
        table.add_row(name, *cells, write_whole_range(tried["money"]))
    return table
