"""Writes the page of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.explain.layout import Line, make_heading, name_some
from scheduler.printing import count_nouns

Json = Mapping[str, Any]
_SAID = {
    "placed": "is placed: no pod of it waits",
    "below": "runs with fewer pods than it needs",
    "held": "is not tried yet",
    "fits": "waits, although enough of its pods fit",
    "preempts": "waits, and takes the place of others",
    "waits": "waits: too few of its pods fit",
}


def write_lines(group: Json) -> Iterator[Line]:
    """Write every line."""
    yield Line(f"{group['title']} {_SAID[group['state']]}.", style="bold")
    yield from (Line(remark, 2, 0) for remark in group["remarks"])
    yield from _write_pods(group)
    if (topology := group["topology"]) is not None:
        yield Line(_describe_topology(topology), 2, 0)
    if group["message"]:
        yield Line(group["message"], 2, 0, "yellow")
    if (now := group["now"]) is not None:
        nodes = name_some(now["nodes"])
        yield Line(f"Tried now, {count_nouns(now['pods'], 'pod')} would go to {nodes}.", 2, 0)
    yield from _write_preemption(group)
    yield from _write_later(group)
    for level in group["levels"]:
        yield from _write_level(level)
    yield from _write_advice(group)


def _write_pods(group: Json) -> Iterator[Line]:
    on_nodes, waiting = group["pods"]["onNodes"], group["pods"]["waiting"]
    n = len(on_nodes) + len(waiting)
    least = group["minimum"]
    text = f"{count_nouns(n, 'pod')}: {len(on_nodes)} on nodes, {len(waiting)} waiting."
    if least:
        text += f" At least {least} must have a node at once."
    yield Line(text, 2, 0)
    if on_nodes:
        nodes = sorted({pod["node"] for pod in on_nodes})
        yield Line(f"On {count_nouns(len(nodes), 'node')}: {name_some(nodes)}.", 2, 0)
    if waiting:
        yield Line(f"Waiting: {name_some([pod['name'] for pod in waiting])}.", 2, 0)


def _describe_topology(topology: Json) -> str:
    who = f"Its part {topology['part']}" if topology["part"] else "It"
    wishes = [
        *([f"requires one {topology['required']}"] if topology["required"] else []),
        *(f"prefers one {label}" for label in topology["preferred"]),
    ]
    levels = ", ".join(topology["levels"])
    said = f" {' and '.join(wishes)};" if wishes else " is placed by a topology;"
    return f"{who}{said} the levels are {levels}."


def _write_preemption(group: Json) -> Iterator[Line]:
    preemption = group["preemption"]
    if preemption is None:
        return
    if preemption["notDone"]:
        yield Line(f"Nobody is evicted for it: {preemption['notDone']}.", 2, 0)
        return
    victims = [f"{one['namespace']}/{one['name']}" for one in preemption["victims"]]
    who = count_nouns(len(victims), "pod")
    where = name_some(preemption["nodes"])
    yield Line(f"It preempts {who} of lower priority: {name_some(victims)}; it then goes to {where}.", 2, 0)  # fmt: skip


def _write_later(group: Json) -> Iterator[Line]:
    if group["state"] != "waits":
        return
    if (later := group["later"]) is None:
        yield Line(group["noLater"]["text"], 2, 0)
        return
    domain = later["domain"]
    where = f"{domain['label']} {'/'.join(domain['values'])}" if domain else ""
    nodes = name_some(later["nodes"])
    text = f"It fits by {later['at']}{f' in {where}' if where else ''}, on {nodes}"
    yield Line(f"{text}.", 2, 0)
    if later["ahead"]:
        n, names = count_nouns(len(later["ahead"]), "group"), name_some(later["ahead"])
        text = f"Before it in the queue: {n} ({names}). Room for later is promised to the first that does not fit."
        yield Line(text, 2, 0)
    else:
        yield Line("It is the first group in the queue, so this room is promised to it.", 2, 0)


def _write_level(level: Json) -> Iterator[Line]:
    n = level["domains"]
    if not n:
        yield from make_heading(f"{level['label']}: no node has this label and those above it")
        return
    yield from make_heading(f"{level['label']}: the closest of {count_nouns(n, 'domain')}")
    for one in level["closest"]:
        name, nodes = "/".join(one["values"]), count_nouns(one["nodes"], "node")
        yield Line(f"{name} ({nodes}): {one['fitting']} of {one['of']} waiting pods fit", 2, 4)
        if one["lacks"]:
            yield Line(f"the next pod: {one['lacks']}", 6, 2, "dim")


def _write_advice(group: Json) -> Iterator[Line]:
    if group["state"] != "waits":
        return
    if not group["advice"]:
        yield from make_heading("What would let it in")
        yield Line("Nothing was found that would, but other nodes.", 2, 0)
        return
    yield from make_heading("What would let it in; each was tried")
    for i, one in enumerate(group["advice"], 1):
        nodes = count_nouns(one["nodes"], "node")
        text = f"{i}. {one['text']}: {count_nouns(one['pods'], 'pod')} fit on {nodes}"
        yield Line(text, 2, 3)
