"""Writes the page of a node: a drawing of its cards, its pods, and the pods that wait for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from scheduler.explain import claim_lines
from scheduler.explain.layout import Line, make_heading, name_some
from scheduler.plugins import words
from scheduler.printing import count_nouns
from scheduler.telling.explained import sentences

Json = Mapping[str, Any]
_BAR = 12
_PODS = 30


def write_lines(node: Json, *, is_wide: bool = False) -> Iterator[Line]:
    """Write every line; if ``is_wide``, with the ids of cards and the full names of resources."""
    yield Line(f"Node {node['name']}{_describe_state(node)}", style="bold")
    for taint in node["taints"]:
        state = ", which reports its state" if taint["isState"] else ""
        yield Line(f"taint {sentences.write_taint(taint)}{state}", 2, 2, "yellow")
    yield from make_heading("In use and free")
    for one in node["resources"]:
        name = one["resource"]
        free, total, used = (
            words.write_rounded(name, one[key]) for key in ("free", "total", "used")
        )
        bar = _draw_bar(one["used"], one["total"])
        yield Line(f"{bar} {name}: {used} of {total}, {free} free", 2, _BAR + 3, is_row=True)
        if one["gpuPart"] < 1:
            yield Line(_describe_shared(one), 2 + _BAR + 3, 0)
    yield from _write_cards(node["cards"], is_wide=is_wide)
    yield from claim_lines.write_pools(node)
    yield from _write_pods(node, is_wide=is_wide)
    yield from _write_waiting(node)


def _describe_shared(one: Json) -> str:
    """Describe devices that are parts of cards: how many cards they are together, and how much of them is in use."""
    used, total = (f"{one[key] * one['gpuPart']:.4g}" for key in ("used", "total"))
    cards = "card" if total == "1" else "cards"
    return f"each is a part of a card, {one['gpuPart']:.4g} of it: {used} of {total} {cards} in use"


def _describe_state(node: Json) -> str:
    said = [
        *(["is cordoned"] if node["cordoned"] else []),
        *(["its device plugin does not answer"] if node["silent"] else []),
    ]
    return f" {', and '.join(said)}." if said else ""


def _draw_bar(used: int, total: int) -> str:
    filled = min(_BAR, -(-_BAR * used // total)) if total and used > 0 else 0
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


def _write_cards(cards: list[Json], *, is_wide: bool) -> Iterator[Line]:
    if not cards:
        return
    yield from make_heading(f"{count_nouns(len(cards), 'card')}: use by pod")
    for card in cards:
        memory, cores, sharers = card["memoryMiB"], card["cores"], card["sharers"]
        said = [
            *([f"NUMA node {card['numa']}"] if card["numa"] else []),
            *(["unhealthy"] if not card["healthy"] else []),
            *(["cordoned"] if card["closed"] else []),
        ]
        more = f" ({', '.join(said)})" if said else ""
        name = f"{card['model']} {card['id']}" if is_wide else card["model"]
        yield Line(f"{card['index']} {name}{more}", 2, 2, is_row=True)
        yield Line(
            f"{_draw_bar(memory['used'], memory['total'])} {memory['used']} of {memory['total']} MiB, "
            f"{memory['free']} free",
            4,
            _BAR + 3,
            is_row=True,
        )
        yield Line(
            f"{_draw_bar(cores['used'], cores['total'])} {cores['used']} of {cores['total']} % of cores, "
            f"{sharers['used']} of {sharers['total']} sharers",
            4,
            _BAR + 3,
            is_row=True,
        )
        for holder in card["holders"]:
            share = f", {holder['cores']} %" if holder["cores"] else ""
            row = f"{holder['pod']} ({holder['memoryMiB']} MiB{share})"
            yield Line(row, 4 + _BAR + 3, 2, "dim", is_row=True)


def _write_pods(node: Json, *, is_wide: bool) -> Iterator[Line]:
    pods = node["pods"]
    every = {name for pod in pods for name in pod["requests"]}
    called = {name: name if is_wide else _shorten_name(name, every) for name in every}
    yield from make_heading(count_nouns(len(pods), "pod"))
    for pod in pods[:_PODS]:
        asked = ", ".join(
            f"{words.write_amount(name, n)} {called[name]}" for name, n in pod["requests"].items()
        )
        said = [f"priority {pod['priority']}"] if pod["priority"] else []
        said += ["is being deleted"] if pod["deleting"] else []
        more = f" ({', '.join(said)})" if said else ""
        row = f"{pod['namespace']}/{pod['name']}{more}: {asked or 'requests nothing'}"
        yield Line(row, 2, 4, is_row=True)
    if len(pods) > _PODS:
        yield Line(f"and {len(pods) - _PODS} more", 2)


def _shorten_name(resource: str, every: Collection[str]) -> str:
    """Shorten the name of a resource by its domain, unless another resource then has the same name."""
    last = resource.rpartition("/")[2]
    return last if sum(one.rpartition("/")[2] == last for one in every) == 1 else resource


def _write_waiting(node: Json) -> Iterator[Line]:
    waiting = node["waiting"]
    if not waiting["pods"]:
        yield from make_heading("No pod waits")
        return
    yield from make_heading(
        f"{count_nouns(waiting['pods'], 'pod')} {'waits' if waiting['pods'] == 1 else 'wait'}"
    )
    for group in waiting["groups"]:
        names = name_some(group["names"], group["pods"])
        if group["fits"]:
            verb = "would fit here now"
        else:
            if_ended = "would fit if others ended" if group["evictionCouldHelp"] else "refused"
            verb = f"{if_ended}: {', '.join(group['reasons'])}"
        lacks = "; ".join(_describe_short(name, one) for name, one in group["short"].items())
        yield Line(f"{group['pods']}  {verb}{f' ({lacks})' if lacks else ''}", 2, 4)
        yield Line(names, 6, 2, "dim")
    if waiting["held"]:
        yield Line(f"held until their mistakes are corrected: {name_some(waiting['held'])}", 2, 4)
    left = waiting["pods"] - waiting["lookedAt"]
    if left:
        yield Line(f"{count_nouns(left, 'more pod')} were not examined", 2, 4)


def _describe_short(resource: str, short: Json) -> str:
    """Describe what is free, and the least that any of some pods asks."""
    asked, free = words.write_pair(resource, short["leastRequested"], short["free"])
    return f"{resource}: {free} free, requested {asked} or more"
