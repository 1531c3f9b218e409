"""Prints the answers of ``evenkeel queue`` for people: 80 columns on a terminal, whole rows in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from scheduler import printing
from scheduler.explain.layout import HEADING, Line, draw_lines, make_heading
from scheduler.printing import count_nouns
from scheduler.queues import kai_report, why_lines
from scheduler.queues.layout import make_table
from scheduler.queues.starts import say_start, say_time

Json = dict[str, Any]
_NO_QUEUES = "There are no queues: no ClusterQueue, and none of KAI's queues, was found."
_USES = ("FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED", "LENT", "FREE")
_LIMITS = ("FLAVOR", "RESOURCE", "NOMINAL", "BORROWING-LIMIT", "LENDING-LIMIT")
_HOLDERS = ("HAS QUOTA", "PRIORITY", "SINCE", "USES")
_WAITERS = ("#", "WAITS", "PRIORITY", "STARTS", "REASON")
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
    # Where rows stay whole, no table is too wide.
    edge = width if is_terminal else None
    lines: Mapping[str, Callable[[Json, int | None], Iterator[Line]]] = {
        "list": partial(_list_all, _list_queues),
        "tree": partial(_list_all, _draw_tree),
        "show": _show,
        "why": lambda found, _: why_lines.make_lines(found),
    }
    of_kai = {"show": ("kaiQueue", kai_report.show), "why": ("queues", kai_report.explain)}
    key, draw = of_kai.get(answer["what"], ("", None))
    made = (draw if draw and key in answer else lines[answer["what"]])(answer, edge)
    draw_lines(made, console, width, has_whole_rows=not is_terminal)


def _list_all(
    draw: Callable[[Json, int | None], Iterator[Line]], answer: Json, edge: int | None
) -> Iterator[Line]:
    """List queues of both kinds; most clusters have one kind."""
    if not answer["queues"] and not answer["kaiQueues"]:
        yield Line(_NO_QUEUES)
    yield from draw(answer, edge)
    if answer["kaiQueues"]:
        if answer["queues"] or answer["lost"] or answer["astray"]:
            yield Line()
        yield from kai_report.list_queues(answer["kaiQueues"], edge)


def _list_queues(answer: Json, edge: int | None) -> Iterator[Line]:
    queues = answer["queues"]
    if not queues:
        yield from _name_lost(answer)
        return
    heads = (
        "QUEUE",
        "COHORT",
        "WEIGHT",
        "SHARE",
        "WAITING",
        "PARKED",
        "ASIDE",
        "RESERVING",
        "ADMITTED",
    )
    rows = [
        (
            one["name"],
            one["parent"] or "-",
            f"{one['weight']:g}",
            write_share(one),
            *(f"{one[key]}" for key in ("waiting", "parked", "aside", "holding", "admitted")),
        )
        for one in queues
    ]
    yield from make_table(heads, rows, edge, 2)
    uses = [
        (one["name"], use["flavor"], use["resource"], use["nominal"], use["used"], use["borrowed"],
         use["lent"], use["available"])
        for one in queues for use in one["uses"]
    ]  # fmt: skip
    yield Line()
    yield from make_table(("QUEUE", *_USES), uses, edge)
    for one in queues:
        yield from _say_inactive(one)
    yield from _name_lost(answer)


def _name_lost(answer: Json) -> Iterator[Line]:
    """Name the local queues and the first workloads that lead to no queue."""
    if astray := answer["astray"]:
        n, lead = count_nouns(len(astray), "local queue"), "lead" if len(astray) > 1 else "leads"
        said = [f"{why_lines.name_workload(one)} to {one['queue'] or 'none'}" for one in astray]
        yield Line()
        yield Line(
            f"{n} {lead} to no ClusterQueue that is there: {printing.list_some(said)}",
            style="yellow",
        )
    lost = answer["lost"]
    if lost:
        yield Line()
        first, n = lost[0], count_nouns(len(lost), "workload")
        names = printing.list_some([why_lines.name_workload(one) for one in lost])
        yield Line(f"{n} without a queue: {names}. The first: {first['message']}", style="yellow")


def _say_inactive(one: Json) -> Iterator[Line]:
    if one["inactive"]:
        said = "; ".join(f"{why['reason']}: {why['message']}" for why in one["inactive"])
        yield Line()
        yield Line(f"{one['name']} is inactive, and admits no workload: {said}", style="yellow")
    if one["remarks"]:
        yield Line()
        yield Line(f"{one['name']}: {'; '.join(one['remarks'])}", style="yellow")


def write_share(one: Json) -> str:
    """Write the share of a queue; one that is infinite is no number in JSON."""
    return "inf" if one["share"] is None else f"{one['share']:.0f}"


def _draw_tree(answer: Json, edge: int | None) -> Iterator[Line]:
    queues = answer["queues"]
    if not queues:
        yield from _name_lost(answer)
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
                    name if i == 0 or edge is not None else "",
                    write_share(one) if i == 0 or edge is not None else "",
                    use["flavor"],
                    use["resource"],
                    f"{use['used']}/{use['nominal']}",
                    use["borrowed"],
                    use["lent"],
                )
            )
    heads = ("COHORT OR QUEUE", "SHARE", "FLAVOR", "RESOURCE", "USED/QUOTA", "BORROWED", "LENT")
    yield from make_table(heads, rows, edge, 2)
    for one in queues:
        yield from _say_inactive(one)
    yield from _name_lost(answer)


def _show(answer: Json, edge: int | None) -> Iterator[Line]:
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
        yield from make_table(_LIMITS, [_write_limits(quota) for quota in answer["quotas"]], edge)
    if one["uses"]:
        yield Line()
        keys = ("flavor", "resource", "nominal", "used", "borrowed", "lent", "available")
        yield from make_table(_USES, [[use[key] for key in keys] for use in one["uses"]], edge)
    if answer["policies"] is not None:
        yield from _list_policies(answer)
        yield from _list_workloads(answer, edge)


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


def _list_workloads(answer: Json, edge: int | None) -> Iterator[Line]:
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
        yield from make_table(_HOLDERS, rows, edge)
    if waiters:
        yield Line()
        waiting = [
            (
                f"{one['position'] + 1}",
                why_lines.name_workload(one),
                f"{one['priority']}",
                say_time(one),
                one["reason"] or _STATES.get(one["state"], one["state"]),
            )
            for one in waiters
        ]
        yield from make_table(_WAITERS, waiting, edge, 2)
        if answer["notShown"]:
            yield Line(f"and {answer['notShown']:,} more (--most 0 shows all)", 2)
        yield from _say_unknown_starts(waiters)
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


def _say_unknown_starts(waiters: Sequence[Json]) -> Iterator[Line]:
    """Say why it is not known when workloads start; those with the same reason share a line."""
    those = [one for one in waiters if one["startsInSeconds"] is None]
    for text in dict.fromkeys(map(say_start, those)):
        where = [f"{one['position'] + 1}" for one in those if say_start(one) == text]
        yield Line()
        yield Line(f"Start of #{printing.list_some(where)}: {text}")


def _write_holding(one: Json) -> str:
    by_flavor: dict[str, list[str]] = {}
    for use in one["uses"]:
        by_flavor.setdefault(use["flavor"], []).append(f"{use['amount']} {use['resource']}")
    uses = "; ".join(f"{flavor}: {', '.join(some)}" for flavor, some in by_flavor.items())
    marks = [] if one["admitted"] else ["not admitted yet"]
    if one["going"]:
        marks.append("is giving it back")
    return "; ".join([uses or "nothing", *marks])
