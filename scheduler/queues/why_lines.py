"""The page of ``evenkeel queue why``: why a workload waits, what is missing, who has it, and what it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from scheduler import printing
from scheduler.explain.layout import HEADING, Line, make_heading
from scheduler.printing import count_nouns
from scheduler.queues.starts import NO_PLACE, say_start

Json = dict[str, Any]
_STATES = {
    "fits": "waits for its turn: there is quota for it",
    "preempts": "waits; others can be made to give quota back for it",
    "waits": "waits",
    "behind": "waits behind others",
    "goes": "waits for workloads that are giving quota back",
    "aside": "may not be tried",
    "holds": "has quota",
    "finished": "is finished, and needs no quota",
}
_NAMED = 5


def name_workload(one: Json) -> str:
    """Name a workload."""
    return f"{one['namespace']}/{one['name']}"


def make_lines(answer: Json) -> Iterator[Line]:
    """Make the page."""
    yield Line(f"Workload {name_workload(answer)}: {_STATES[answer['state']]}", style=HEADING)
    cohort = f" in cohort {answer['cohort']}" if answer["cohort"] else ""
    led = f"local queue {answer['localQueue']}"
    yield Line(f"{led}, queue {answer['queue']}{cohort}" if answer["queue"] else led, 2)
    since = f", in its place since {answer['since']}" if answer["since"] else ""
    yield Line(f"priority {answer['priority']}{since}", 2)
    if answer["position"] is not None:
        yield Line(f"position {answer['position'] + 1} of {answer['ofWaiting']}", 2)
    if answer["ahead"]:
        more = answer["position"] - len(answer["ahead"])
        yield Line(f"before it: {', '.join(answer['ahead'])}{f' and {more} more' if more else ''}", 2)  # fmt: skip
    for use in answer["uses"]:
        yield Line(f"has {use['amount']} of {use['resource']} in flavor {use['flavor']}", 2)
    if answer["reason"]:
        yield from make_heading(answer["reason"])
        if answer["message"]:
            yield Line(answer["message"], 2, 0, style="yellow")
    for flavor in answer["flavors"]:
        yield from _draw_flavor(flavor, answer)
    if answer["victims"]:
        are = "would give quota back" if answer["state"] == "preempts" else "are giving quota back"
        yield from make_heading(f"{count_nouns(len(answer['victims']), 'workload')} {are}")
        yield from _name_givers(answer["victims"])
    yield from _draw_start(answer)


def _draw_start(answer: Json) -> Iterator[Line]:
    """Draw what a workload needs to start, and when it starts."""
    if answer["needs"]:
        yield from make_heading("To start, it needs")
        for text in answer["needs"]:
            yield Line(text, 2)
    if said := say_start(answer):
        yield from make_heading("It starts")
        yield Line(said, 2)


def _draw_flavor(flavor: Json, answer: Json) -> Iterator[Line]:
    yield from make_heading(f"Flavor {flavor['flavor']}")
    if flavor["refusals"]:
        for text in flavor["refusals"]:
            yield Line(f"does not suit it: {text}", 2)
        return
    for one in flavor["resources"]:
        name = one["resource"]
        if one["missing"] == "0":
            yield Line(f"{name}: {one['requested']} requested, {one['available']} free", 2)
            continue
        yield Line(
            f"{name}: {one['requested']} requested, {one['available']} free: {one['missing']} missing",
            2,
        )
        holders = count_nouns(one["holding"], "workload")
        yield Line(
            f"{answer['queue']} uses {one['used']} of its nominal {one['nominal']} ({holders})", 4
        )
        for other in one["borrowers"][:_NAMED]:
            n = count_nouns(other["holding"], "workload")
            yield Line(f"{other['queue']} borrows {other['borrowed']} ({n})", 4)
        if len(one["borrowers"]) > _NAMED:
            more = count_nouns(len(one["borrowers"]) - _NAMED, "other queue")
            yield Line(f"and {more}", 4)
    if flavor["givers"] and answer["state"] != "fits":
        by_queue = Counter(one["queue"] for one in flavor["givers"])
        of = ", ".join(f"{n} of {queue}" for queue, n in sorted(by_queue.items()))
        yield Line(f"the policies allow to take quota back from {of}{_say_lack(answer)}:", 2)
        yield from _name_givers(flavor["givers"], 4)
    for text in flavor["limits"]:
        yield Line(f"not {'more' if flavor['givers'] else 'possible'}: {text}", 2)


def _say_lack(answer: Json) -> str:
    """Say why it is of no use to a workload that others could give quota back; nothing of one for which it is enough."""
    if answer["state"] != "waits":
        return ""
    if answer["reason"] == NO_PLACE:
        return ", which makes no place for all its pods"
    return ", which is not enough"


def _name_givers(givers: Sequence[Json], indent: int = 2) -> Iterator[Line]:
    for one in givers[:_NAMED]:
        why = f", {one['reason']}" if one["reason"] else ""
        yield Line(f"{name_workload(one)} of {one['queue']} (priority {one['priority']}{why})", indent)  # fmt: skip
    if len(givers) > _NAMED:
        yield Line(f"and {printing.count_nouns(len(givers) - _NAMED, 'other')}", indent)
