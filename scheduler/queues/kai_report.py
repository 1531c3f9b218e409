"""Prints KAI's queues, and why pods and groups wait in them, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scheduler import printing
from scheduler.explain.layout import HEADING, Line, make_heading
from scheduler.printing import count_nouns
from scheduler.queues.layout import make_table

Json = dict[str, Any]
_SHARES = ("KAI QUEUE", "RESOURCE", "QUOTA", "LIMIT", "WEIGHT", "FAIR", "HELD", "FIXED", "WANTED")
_HOLDERS = ("HOLDS", "KIND", "PRIORITY", "PREEMPTIBLE", "PODS", "AMOUNTS")
_WAITERS = ("#", "WAITS", "KIND", "PRIORITY", "PODS", "WANTS", "REASON")
_STATES = {
    "holds": "holds its place",
    "held": "may not be tried",
    "waits": "waits; its queue has room for it",
}
_NAMED = 5


def list_queues(queues: Sequence[Json], edge: int | None) -> Iterator[Line]:
    """Draw queues, each below the one above it, as a table."""
    rows = []
    for one in queues:
        name = "  " * one["depth"] + one["name"]
        told = [use for use in one["uses"] if _is_told(use)] or one["uses"][-1:]
        for i, use in enumerate(told):
            values = (use[key] for key in ("resource", "quota", "limit"))
            amounts = (use[key] for key in ("fairShare", "held", "nonPreemptible", "requested"))
            shown = name if i == 0 or edge is not None else ""
            rows.append((shown, *values, f"{use['weight']:.13g}", *amounts))
    yield from make_table(_SHARES, rows, edge)
    for one in queues:
        if one["problem"]:
            yield Line()
            yield Line(f"{one['name']} starts no pods: {one['problem']}", style="yellow")


def _is_told(use: Json) -> bool:
    """Whether pods want something of a resource, or a queue has a quota of it."""
    return use["requested"] != "0" or use["held"] != "0" or use["quota"] not in {"0", "unlimited"}


def show(answer: Json, edge: int | None) -> Iterator[Line]:
    """Draw one queue in full."""
    one = answer["kaiQueue"]
    yield Line(f"KAI queue {one['name']}", style=HEADING)
    yield Line(f"below {' in '.join(answer['path']) or 'no other queue'}", 2)
    yield Line(f"priority {one['priority']} among the queues beside it", 2)
    if answer["children"]:
        yield Line(f"queues within: {', '.join(answer['children'])}", 2)
    yield Line()
    yield from list_queues([one | {"depth": 0}], edge)
    if answer["holders"]:
        yield Line()
        rows = [
            (
                _name(other),
                other["kind"],
                f"{other['priority']}",
                "yes" if other["preemptible"] else "no",
                f"{other['pods']}",
                _write_amounts(other),
            )
            for other in answer["holders"]
        ]
        yield from make_table(_HOLDERS, rows, edge)
    yield from _list_waiters(answer, edge)
    if not (answer["holders"] or answer["waiters"] or answer["children"]):
        yield Line()
        yield Line("nothing holds anything in it, and nothing waits")


def _list_waiters(answer: Json, edge: int | None) -> Iterator[Line]:
    waiters = answer["waiters"]
    if not waiters:
        return
    yield Line()
    rows = [
        (
            f"{other['position'] + 1}",
            _name(other),
            other["kind"],
            f"{other['priority']}",
            f"{other['pods']}",
            _write_amounts(other),
            other["reason"] or "the queue has room",
        )
        for other in waiters
    ]
    yield from make_table(_WAITERS, rows, edge, 2)
    if answer["notShown"]:
        yield Line(f"and {answer['notShown']:,} more (--most 0 shows all)", 2)
    for message in dict.fromkeys(other["message"] for other in waiters if other["message"]):
        where = [f"{other['position'] + 1}" for other in waiters if other["message"] == message]
        yield Line()
        yield Line(f"#{printing.list_some(where)}: {message}", style="yellow")


def explain(answer: Json, edge: int | None) -> Iterator[Line]:
    """Draw why a pod or group waits."""
    yield Line(f"{answer['kind']} {_name(answer)} {_STATES[answer['state']]}", style=HEADING)
    above = "".join(f" in {one['name']}" for one in answer["queues"][1:])
    yield Line(f"KAI queue {answer['queue']}{above}", 2)
    is_preemptible = "" if answer["preemptible"] else "not "
    yield Line(f"priority {answer['priority']}, {is_preemptible}preemptible", 2)
    verb = "hold" if answer["state"] == "holds" else "want"
    pods = count_nouns(answer["pods"], "pod")
    yield Line(f"{pods} {verb}{'s' * (answer['pods'] == 1)} {_write_amounts(answer)}", 2)
    if answer["position"] is not None:
        yield Line(f"position {answer['position'] + 1} of {answer['ofWaiting']}", 2)
    if answer["ahead"]:
        more = answer["position"] - len(answer["ahead"])
        yield Line(f"before it: {', '.join(answer['ahead'])}{f' and {more} more' if more else ''}", 2)  # fmt: skip
    if answer["reason"]:
        yield from make_heading(answer["reason"])
        message = answer["message"].removeprefix(f"{answer['reason']}: ")
        yield Line(message, 2, 0, style="yellow")
    if answer["queues"]:
        yield Line()
        yield from list_queues([one | {"depth": 0} for one in answer["queues"]], edge)
    if answer["state"] == "waits":
        yield Line()
        yield Line(f"`evenkeel explain {_name_command(answer)}` says whether nodes have room.")
    yield from _list_givers(answer)


def _list_givers(answer: Json) -> Iterator[Line]:
    if answer["givers"]:
        yield from make_heading("Who may go for it, where no room is free")
        for one in answer["givers"][:_NAMED]:
            pods = ", ".join(one["pods"][:_NAMED])
            more = len(one["pods"]) - _NAMED
            said = f"{pods}{f' and {more} more' if more > 0 else ''}"
            yield Line(f"{said} of {one['queue']} (priority {one['priority']}, {one['by']})", 2)
        if len(answer["givers"]) > _NAMED:
            yield Line(f"and {count_nouns(len(answer['givers']) - _NAMED, 'other')}", 2)
    if answer["limits"]:
        yield from make_heading("Who does not go")
        for text in answer["limits"]:
            yield Line(text, 2)
    if answer["protectedUntil"]:
        yield Line(f"more may go from {answer['protectedUntil']} on, when they have run for long enough", 2)  # fmt: skip


def _name_command(answer: Json) -> str:
    what = "pod" if answer["kind"] == "Pod" else "group"
    return f"{what} {_name(answer)}"


def _name(one: Json) -> str:
    return f"{one['namespace']}/{one['name']}"


def _write_amounts(one: Json) -> str:
    return ", ".join(f"{use['amount']} {use['resource']}" for use in one["amounts"]) or "nothing"
