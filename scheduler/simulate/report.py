"""The table of ``evenkeel simulate``."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show(result: dict[str, Any], console: Console) -> None:
    """Print where every pod goes, and with ``nodes`` what every node says."""
    table = Table(box=None, pad_edge=False)
    for heading in ("POD", "NODE", "CARDS", "MESSAGE"):
        table.add_column(heading, overflow="fold")
    for pod in result["pods"]:
        cards = ", ".join(
            f"{d['id']} {d['memoryMiB']} MiB" + (f" {d['cores']} %" if d["cores"] else "")
            for d in pod["devices"]
        )
        where = Text(pod["node"] or "(pending)", style="green" if pod["node"] else "yellow")
        message = "" if pod["node"] else pod["message"]
        table.add_row(f"{pod['namespace']}/{pod['name']}", where, cards, message)
    console.print(table)
    for pod in result["pods"]:
        if pod.get("nodes"):
            console.print(f"\n{pod['namespace']}/{pod['name']}")
            console.print(_nodes(pod))
    summary = result["summary"]
    console.print(
        f"\n{summary['scheduled']} of {summary['pods']} pods scheduled on {summary['nodes']} nodes"
    )


def _nodes(pod: dict[str, Any]) -> Table:
    names = sorted({name for node in pod["nodes"].values() for name in node["scores"]})
    table = Table(box=None, pad_edge=False)
    for heading in ("NODE", "STATUS", *names, "TOTAL", "REASONS"):
        table.add_column(heading)
    for name, node in pod["nodes"].items():
        scores = [f"{node['scores'][n]:g}" if n in node["scores"] else "" for n in names]
        total = "" if node["total"] is None else f"{node['total']:g}"
        chosen = Text(name, style="green" if name == pod["node"] else "")
        table.add_row(chosen, node["status"], *scores, total, ", ".join(node["reasons"]))
    return table
