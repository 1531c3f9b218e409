"""Writes the page of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.explain import claim_lines, losses
from scheduler.explain.layout import Line, make_heading, name_some
from scheduler.plugins import container_requests, words
from scheduler.printing import count_nouns
from scheduler.simulate import explained
from scheduler.telling.explained import sentences

Json = Mapping[str, Any]
# On a narrower terminal a table of scores would be folded.
_TABLE_WIDTH = 64
# How many requests of containers are shown one by one; -o json has all.
_CONTAINERS = 8
_SAID = {
    "bound": "is on {node}",
    "deleting": "is being deleted",
    "gated": "waits behind scheduling gates",
    "held": "is held until its mistake is corrected",
    "queued": "is held back",
    "fits": "waits, although it fits on at least one node",
    "waits": "waits: it fits nowhere",
    "grouped": "waits for its group",
    "preempts": "waits, and takes the place of others",
}


def write_lines(pod: Json, width: int) -> Iterator[Line]:
    """Write every line; ``width`` is the width of the terminal."""
    name, state = f"{pod['namespace']}/{pod['name']}", pod["state"]
    if state == "waits" and pod["nodes"]["fitting"]:
        state = "grouped"
    yield Line(f"Pod {name} {_SAID[state].format(**pod)}.", style="bold")
    yield from (Line(remark, 2, 0) for remark in pod["remarks"])
    yield from _write_queue(pod)
    if (group := pod["group"]) is not None:
        whole = "is placed in one decision, enough of its pods or none"
        yield Line(f"It is in {group['name']}, which {whole}: {group['message']}.", 2, 0)
    if pod["message"]:
        yield Line(pod["message"], 2, 0, "yellow")
    yield from _write_preemption(pod)
    yield from _write_now(pod)
    yield from _write_reasons(pod)
    yield from claim_lines.write_claims(pod)
    if pod["nearest"]:
        yield from _write_nearest(pod["nearest"], pod)
    yield from _write_advice(pod)
    yield from _write_best(pod, width)
    yield from losses.write_lines(pod)


def _write_queue(pod: Json) -> Iterator[Line]:
    queue = pod["queue"]
    if queue is None:
        return
    if queue["gates"]:
        yield Line(f"Scheduling gates: {', '.join(queue['gates'])}; the pod is not tried until they are removed.", 2, 0)  # fmt: skip
    if queue["heldBy"]:
        yield Line(queue["heldBy"], 2, 0, "yellow")
        return
    if queue["place"] == 1:
        yield Line(f"First of {count_nouns(queue['of'], 'pod')} to be tried, by priority and age.", 2, 0)  # fmt: skip
    elif queue["place"]:
        ahead = name_some(queue["ahead"][::-1], queue["place"] - 1)
        yield Line(
            f"Number {queue['place']} of {count_nouns(queue['of'], 'pod')} to be tried, by priority and "
            f"age, behind {ahead}.",
            2,
            0,
        )


def _write_preemption(pod: Json) -> Iterator[Line]:
    preemption = pod["preemption"]
    if preemption is None:
        return
    n = len(preemption["victims"])
    named = [f"{one['namespace']}/{one['name']}" for one in preemption["victims"]]
    whom = f"{'pod' if n == 1 else 'pods'} {name_some(named)} on {preemption['node']}"
    if preemption["notDone"]:
        yield Line(f"Preempting {whom} would let the pod in; this is not done because {preemption['notDone']}.", 2, 0)  # fmt: skip
    else:
        yield Line(f"It preempts {whom}, of lower priority.", 2, 0)


def _write_now(pod: Json) -> Iterator[Line]:
    now = pod["now"]
    if now is None or pod["state"] == "queued":
        return
    devices = [
        *map(_describe_device, now["devices"]),
        *map(claim_lines.write_device, now["claims"]),
    ]
    cards = ", ".join(devices)
    where = f"{now['node']}{f' with {cards}' if cards else ''}"
    if pod["node"]:
        same = " again" if now["node"] == pod["node"] else ""
        yield Line(f"Now it would go to {where}{same}.", 2, 0)
    else:
        yield Line(f"Tried now, it would go to {where}.", 2, 0)


def _describe_device(device: Json) -> str:
    cores = f", {device['cores']} %" if device["cores"] else ""
    return f"card {device['index']} ({device['memoryMiB']} MiB{cores})"


def _write_reasons(pod: Json) -> Iterator[Line]:
    nodes = pod["nodes"]
    if not nodes["total"]:
        return
    fit = f"{nodes['fitting']} of {count_nouns(nodes['total'], 'node')} {'fits' if nodes['fitting'] == 1 else 'fit'}"
    yield from make_heading(fit)
    for one in pod["reasons"]:
        helps = "" if one["evictionCouldHelp"] else " (no eviction would help)"
        yield Line(f"{one['nodes']}  {one['reason']}{helps}", 2, 4)
        yield Line(name_some(one["names"], one["nodes"]), 6, 2, "dim")


def _write_nearest(nearest: Json, pod: Json) -> Iterator[Line]:
    if pod["node"]:
        yield from make_heading(f"{nearest['node']} would refuse the pod now")
    else:
        yield from make_heading(f"Closest: {nearest['node']}")
    figures = {one["resource"]: _describe_short(one) for one in nearest["resources"]}
    for lack in nearest["lacks"]:
        for reason in lack["reasons"]:
            more = [text for resource, text in figures.items() if reason.endswith(f" {resource}")]
            yield Line(": ".join([reason, *more[:1]]), 2, 2)
        yield from (Line(text, 4, 2) for text in lack["counted"])
    if nearest["taints"]:
        yield Line(
            f"taints there: {', '.join(map(sentences.write_taint, nearest['taints']))}", 2, 2
        )
    yield from claim_lines.write_near(nearest)
    if nearest["cards"]:
        yield from _write_fit(nearest)
        alike: dict[str, list[Json]] = {}
        for i, card in enumerate(nearest["cards"]):
            alike.setdefault(f"{_describe_verdict(nearest, i)}: {_describe_card(card)}", []).append(
                card
            )
        for text, cards in alike.items():
            which = ", ".join(str(card["index"]) for card in cards)
            yield Line(f"{'card' if len(cards) == 1 else 'cards'} {which} {text}", 4, 4)


def _write_fit(nearest: Json) -> Iterator[Line]:
    """Write how many of the cards would fit; if several containers request cards, for each of them."""
    n_cards = count_nouns(len(nearest["cards"]), "card")
    if not nearest["containers"]:
        good, asked = sum(card["wouldDo"] for card in nearest["cards"]), nearest["cardsRequested"]
        is_requested = "is" if asked == 1 else "are"
        yield Line(f"{good} of {n_cards} would fit, {asked} {is_requested} requested", 2, 2)
    for one in nearest["containers"][:_CONTAINERS]:
        who, asked = container_requests.name_containers(one["names"]), one["cardsRequested"]
        each = " by each" if len(one["names"]) > 1 else ""
        is_requested = "is" if asked == 1 else "are"
        text = f"{who}: {one['wouldDo']} of {n_cards} would fit, {asked} {is_requested} requested{each}"
        yield Line(text, 2, 2)
    more = len(nearest["containers"]) - _CONTAINERS
    if more > 0:
        yield Line(f"and {count_nouns(more, 'other request')} of containers", 2, 2)
    if (one := nearest.get("together")) is not None:
        before = container_requests.name_containers(one["after"])
        placed = "is placed" if len(one["after"]) == 1 else "are placed"
        text = (
            f"They do not fit together: once {before} {placed}, {one['wouldDo']} of {n_cards} would fit "
            f"container {one['container']}."
        )
        yield Line(text, 2, 2)


def _describe_verdict(nearest: Json, i: int) -> str:
    """Describe whether a card would fit; if several containers request cards, for which, and why not for the others."""
    if not nearest["containers"]:
        card = nearest["cards"][i]
        return "would fit" if card["wouldDo"] else str(card["refusal"])
    by_code: dict[str | None, list[str]] = {}
    for one in nearest["containers"]:
        by_code.setdefault(one["refusals"][i], []).extend(one["names"])
    said = []
    for code, names in by_code.items():
        who = words.write_all(names, "container")
        said.append(f"would fit {who}" if code is None else f"{code} for {who}")
    return ", ".join(said)


def _describe_short(short: Json) -> str:
    asked, free = words.write_pair(short["resource"], short["requested"], short["free"])
    return (
        f"requests {asked}, {free} free of {words.write_rounded(short['resource'], short['total'])}"
    )


def _describe_card(card: Json) -> str:
    memory, cores, sharers = card["memoryMiB"], card["cores"], card["sharers"]
    said = [
        f"{memory['free']} of {memory['total']} MiB free",
        f"{cores['free']} of {cores['total']} % of cores",
        f"{sharers['used']} of {sharers['total']} sharers",
        *([f"NUMA node {card['numa']}"] if card["numa"] else []),
        *(["unhealthy"] if not card["healthy"] else []),
        *(["cordoned"] if card["closed"] else []),
    ]
    return f"{', '.join(said)}; {card['model']}"


def _write_advice(pod: Json) -> Iterator[Line]:
    if pod["state"] == "waits" and pod["nodes"]["fitting"]:
        yield from make_heading("What would let it in")
        # Of groups that name each other, the first is asked about: a shell takes it as one word.
        name = pod["group"]["name"].partition(" ")[2].partition(" and ")[0]
        yield Line(f"Its group decides: `evenkeel explain group {name}` says more.", 2, 0)
        return
    if not pod["advice"]:
        if pod["state"] == "waits":
            yield from make_heading("What would let it in")
            yield Line(f"Nothing was found that would{_write_or_else(pod['ofPod'])}.", 2, 0)
        return
    yield from make_heading("What would let it in, the cheapest first; each was tried")
    for i, one in enumerate(pod["advice"], 1):
        yield Line(f"{i}. {one['text']}", 2, 3)


def _write_or_else(of_pod: str | None) -> str:
    """Write that other nodes would help, unless the pod's own spec keeps it off every node."""
    return f", nor would other nodes: {of_pod}" if of_pod else ", but other nodes"


def _write_best(pod: Json, width: int) -> Iterator[Line]:
    if not pod["best"]:
        return
    best = {f"{one['node']} (place {one['place']})": one for one in pod["best"]}
    mine = next((name for name, one in best.items() if one["node"] == pod["node"]), "")
    yield from make_heading("How the best nodes score")
    if width < _TABLE_WIDTH:
        for name, one in best.items():
            yield Line(f"{name}: total {one['total']:g}", 2, 2)
            for score, points in one["scores"].items():
                weight = pod["weights"][score]
                said = f"{points:g} × {weight} = {one['weighted'][score]:g}"
                yield Line(f"{score} {said if weight else 'above all totals'}", 4, 2)
    else:
        for text in explained.print_scored(best, {"node": mine, "weights": pod["weights"]}):
            yield Line(text.strip(), len(text) - len(text.lstrip()), 2, is_row=True)
    yield Line("in use on the node with the pod", 2, 2)
    for name, one in best.items():
        used = ", ".join(
            f"{usage['resource']} {100 * usage['used'] // usage['total']} %"
            for usage in one["after"]
        )
        yield Line(f"{name}: {used}", 4, 2, is_row=True)
