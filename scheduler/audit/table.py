"""The audit on a terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

Json = dict[str, Any]
TITLES = {
    "cpu": "CPU, cores",
    "memory": "memory, GiB",
    "gpuCompute": "GPU, GPUs",
    "gpuMemory": "GPU memory, GiB",
}


def show(audit: Json, console: Console) -> None:
    """Print what is stranded in total, on the worst nodes, and how other modes would have done."""
    total = audit["total"]
    console.print(_total(total))
    free, dead = total["free"]["gpuCompute"], total["dead"]["gpuCompute"]
    if free:
        share = total["stranded"]["gpuCompute"] / free
        _say(
            console,
            f"Of {free:.1f} free GPUs a typical GPU pod cannot take {share:.0%}; "
            f"{dead:.1f} no typical pod can take at all.",
        )
    for line in judged_by(audit):
        _say(console, line)
    by_name = {node["name"]: node for node in audit["nodes"]}
    if audit["worst"]:
        worst = [by_name[name] for name in audit["worst"]]
        console.print(_worst(worst))
        # Sentences stand below the figures, not beside them: a narrow terminal has no room for both.
        for node in worst:
            if node["reason"]:
                _say(console, f"{node['name']}: {node['reason']}")
    if audit["replay"]["modes"]:
        console.print(_modes(audit))
        _say(console, moved(audit))
        _say(console, audit["replay"]["note"])


def judged_by(audit: Json) -> list[str]:
    """Sentences on whose demand the figures rest, what waits, and what was left out."""
    demand, lines = audit["demand"], []
    for key, kind in (("gpuPods", "GPU pods"), ("otherPods", "pods without GPU")):
        seen = demand[key]["seen"]
        if demand[key]["assumed"]:
            lines.append(
                f"Only {seen} {kind} seen, fewer than {demand['enough']}: "
                "judged by assumed ones instead."
            )
        else:
            lines.append(f"Judged by {seen} {kind} seen.")
    waiting = audit["waiting"]
    if waiting:
        gpus = sum(pod["gpus"] for pod in waiting)
        cores = sum(pod["cpu"] for pod in waiting)
        lines.append(f"Waiting: {len(waiting)} pods, for {gpus} GPUs and {cores:g} cores in all.")
    if audit["leftOut"]:
        lines.append(f"Left out, for they are malformed: {', '.join(audit['leftOut'])}.")
    return lines


def moved(audit: Json) -> str:
    """How many pods were placed again, and what a figure with pods left over is worth."""
    replay = audit["replay"]
    text = f"{replay['moved']} pods placed again, {replay['stayed']} stayed where they are."
    left_over = [one["mode"] for one in replay["modes"] if one["unplaced"]]
    if left_over:
        text += (
            f" With {', '.join(left_over)} some found no place: less is stranded there because "
            "less is placed."
        )
    return text


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    return table


def _total(total: Json) -> Table:
    table = _table("", "capacity", "used", "free", "stranded", "dead", "$ a month")
    for key, title in TITLES.items():
        figures = [total[f][key] for f in ("capacity", "used", "free", "stranded", "dead")]
        money = f"{total['moneyByDimension'][key]:,.0f}"
        table.add_row(title, *(f"{figure:,.1f}" for figure in figures), money)
    table.add_row("stranded in all", "", "", "", "", "", f"{total['money']:,.0f}")
    return table


def _worst(nodes: list[Json]) -> Table:
    table = _table("worst nodes", "CPU", "GiB", "GPUs", "GPU GiB", "$ a month")
    for node in nodes:
        stranded = [f"{node['stranded'][key]:,.1f}" for key in TITLES]
        table.add_row(Text(node["name"]), *stranded, f"{node['money']:,.0f}")
    return table


def _modes(audit: Json) -> Table:
    headings = ("placed by", "CPU", "GiB", "GPUs", "GPU GiB", "$ a month", "saved", "no place")
    table = _table(*headings, "empty nodes")
    table.columns[0].no_wrap = True
    for row in mode_rows(audit):
        table.add_row(*row)
    return table


def mode_rows(audit: Json) -> list[tuple[str, ...]]:
    """A row of cells for the present and for each mode: name, stranded, money, saved, no place, empty nodes."""
    now, replay = audit["total"], audit["replay"]
    rows = [
        ("as it is", now["stranded"], now["money"], "", "", replay["emptyNodes"]),
        *(
            (one["mode"], one["stranded"], one["money"], f"{one['saved']:,.0f}",
             str(len(one["unplaced"])), one["emptyNodes"])
            for one in replay["modes"]
        ),
    ]  # fmt: skip
    return [
        (
            name,
            *(f"{stranded[key]:,.1f}" for key in TITLES),
            f"{money:,.0f}",
            saved,
            unplaced,
            f"{empty}",
        )
        for name, stranded, money, saved, unplaced, empty in rows
    ]
