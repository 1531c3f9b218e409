"""Prints the answers of ``evenkeel queue`` for people: 80 columns on a terminal, whole rows in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from scheduler import printing
from scheduler.explain.layout import HEADING, Line, draw_lines, make_heading
from scheduler.printing import count_nouns
from scheduler.queues import why_lines

Json = dict[str, Any]
_GAP = "  "
_NO_QUEUES = "There are no queues: no ClusterQueue was found."
_USES = ("FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED", "LENT", "FREE")
_LIMITS = ("FLAVOR", "RESOURCE", "NOMINAL", "BORROWING-LIMIT", "LENDING-LIMIT")
_HOLDERS = ("HAS QUOTA", "PRIORITY", "SINCE", "USES")
_WAITERS = ("#", "WAITS", "PRIORITY", "REASON")
# What stands for the reason of those who have none.
_STATES = {
    "fits": "its turn comes",
    "behind": "behind the first (StrictFIFO)",
    "preempts": "others would give back",
}


def print_answer(answer: Json, console: Console) -> None:
    """Print an answer."""
    answer = printing.make_printable(answer)
    is_terminal = printing.is_terminal(console)
    width = min(console.width, printing.PROSE)
    lines: Mapping[str, Callable[[Json], Iterator[Line]]] = {
        "list": _list_queues,
        "tree": _draw_tree,
        "show": _show,
        "why": why_lines.make_lines,
    }
    draw_lines(lines[answer["what"]](answer), console, width, has_whole_rows=not is_terminal)


def _make_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    """Make a table whose columns are as wide as their widest cell."""
    cells = [heads, *rows]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(heads))]
    for row in cells:
        padded = (
            cell + " " * (wide - cell_len(cell)) for cell, wide in zip(row, widths, strict=True)
        )
        style = HEADING if row is heads else ""
        yield Line(_GAP.join(padded).rstrip(), hang=4, style=style, is_row=True)


def _list_queues(answer: Json) -> Iterator[Line]:
    queues = answer["queues"]
    if not queues:
        yield Line(_NO_QUEUES)
        return
    heads = ("QUEUE", "COHORT", "WEIGHT", "SHARE", "WAITING", "PARKED", "RESERVING", "ADMITTED")
    rows = [
        (
            one["name"],
            one["parent"] or "-",
            f"{one['weight']:g}",
            write_share(one),
            *(f"{one[key]}" for key in ("waiting", "parked", "holding", "admitted")),
        )
        for one in queues
    ]
    yield from _make_table(heads, rows)
    uses = [
        (one["name"], use["flavor"], use["resource"], use["nominal"], use["used"], use["borrowed"],
         use["lent"], use["available"])
        for one in queues for use in one["uses"]
    ]  # fmt: skip
    yield Line()
    yield from _make_table(("QUEUE", *_USES), uses)
    for one in queues:
        yield from _say_inactive(one)


def _say_inactive(one: Json) -> Iterator[Line]:
    if one["inactive"]:
        said = "; ".join(f"{why['reason']}: {why['message']}" for why in one["inactive"])
        yield Line()
        yield Line(f"{one['name']} is inactive, and admits no workload: {said}", style="yellow")


def write_share(one: Json) -> str:
    """Write the share of a queue; one that is infinite is no number in JSON."""
    return "inf" if one["share"] is None else f"{one['share']:.0f}"


def _draw_tree(answer: Json) -> Iterator[Line]:
    queues = answer["queues"]
    if not queues:
        yield Line(_NO_QUEUES)
        return
    depth: dict[str, int] = {}
    rows = []
    for one in queues:
        level = depth.get(one["parent"] or "", -1) + 1
        if one["kind"] == "Cohort":
            depth[one["name"]] = level
        name = "  " * level + one["name"] + ("/" if one["kind"] == "Cohort" else "")
        nothing = {"flavor": "-", "resource": "-", "used": "-", "nominal": "-", "borrowed": "-", "lent": "-"}  # fmt: skip
        for i, use in enumerate(one["uses"] or [nothing]):
            rows.append(
                (
                    name if i == 0 else "",
                    write_share(one) if i == 0 else "",
                    use["flavor"],
                    use["resource"],
                    f"{use['used']}/{use['nominal']}",
                    use["borrowed"],
                    use["lent"],
                )
            )
    heads = ("COHORT OR QUEUE", "SHARE", "FLAVOR", "RESOURCE", "USED/QUOTA", "BORROWED", "LENT")
    yield from _make_table(heads, rows)
    for one in queues:
        yield from _say_inactive(one)


def _show(answer: Json) -> Iterator[Line]:
    one = answer["queue"]
    yield Line(f"{one['kind']} {one['name']}", style=HEADING)
    above = " in ".join(answer["path"])
    yield Line(f"cohort: {above or '-'}", 2)
    yield Line(f"weight {one['weight']:g}, share {write_share(one)}", 2)
    yield from _say_inactive(one)
    if answer["children"]:
        yield Line(f"below it: {', '.join(answer['children'])}", 2)
    if answer["quotas"]:
        yield Line()
        yield from _make_table(_LIMITS, [_write_limits(quota) for quota in answer["quotas"]])
    if one["uses"]:
        yield Line()
        keys = ("flavor", "resource", "nominal", "used", "borrowed", "lent", "available")
        yield from _make_table(_USES, [[use[key] for key in keys] for use in one["uses"]])
    if answer["policies"] is not None:
        yield from _list_policies(answer)
        yield from _list_workloads(answer)


def _write_limits(quota: Json) -> tuple[str, ...]:
    limits = (quota[key] or "none" for key in ("borrowingLimit", "lendingLimit"))
    return quota["flavor"], quota["resource"], quota["nominal"], *limits


def _list_policies(answer: Json) -> Iterator[Line]:
    found = answer["policies"]
    yield from make_heading("Policies")
    for key, value in found.items():
        if value is None or value == []:
            continue
        shown = ", ".join(value) if isinstance(value, list) else value
        yield Line(f"{key}: {str(shown).lower() if isinstance(value, bool) else shown}", 2)
    yield from make_heading("Local queues")
    for one in answer["localQueues"]:
        stop = "" if one["stopPolicy"] == "None" else f" (stopped: {one['stopPolicy']})"
        yield Line(f"{one['namespace']}/{one['name']}{stop}", 2)
    if not answer["localQueues"]:
        yield Line("none, so no workload can come", 2)


def _list_workloads(answer: Json) -> Iterator[Line]:
    holders, waiters = answer["holders"], answer["waiters"]
    if holders:
        yield Line()
        rows = [
            (
                why_lines.name_workload(one),
                f"{one['priority']}",
                one["since"],
                _write_holding(one),
            )
            for one in holders
        ]
        yield from _make_table(_HOLDERS, rows)
    if waiters:
        yield Line()
        rows = [
            (
                f"{one['position'] + 1}",
                why_lines.name_workload(one),
                f"{one['priority']}",
                one["reason"] or _STATES.get(one["state"], one["state"]),
            )
            for one in waiters
        ]
        yield from _make_table(_WAITERS, rows)
        if answer["notShown"]:
            yield Line(f"and {answer['notShown']:,} more (--most 0 shows all)", 2)
        for message in dict.fromkeys(one["message"] for one in waiters if one["message"]):
            where = [f"{one['position'] + 1}" for one in waiters if one["message"] == message]
            yield Line()
            yield Line(f"#{printing.list_some(where)}: {message}", style="yellow")
    for one in answer["aside"]:
        yield Line()
        said = f"{why_lines.name_workload(one)} may not be tried: {one['reason']}: {one['message']}"
        yield Line(said, style="yellow")
    if not (holders or waiters or answer["aside"]):
        yield Line()
        yield Line(f"no workload has quota or waits ({count_nouns(0, 'workload')})")


def _write_holding(one: Json) -> str:
    uses = ", ".join(f"{use['amount']} {use['resource']} ({use['flavor']})" for use in one["uses"])
    marks = [] if one["admitted"] else ["not admitted yet"]
    if one["going"]:
        marks.append("is giving it back")
    return "; ".join([uses or "nothing", *marks])
