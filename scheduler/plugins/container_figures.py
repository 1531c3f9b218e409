"""Why cards do not suffice for a pod of several containers that request cards: each named with its own figures.

The figure of a container is the most that is free for it alone, before any container of the pod has a card. Where
that is enough for each of them, what is left for the first container that the walk cannot serve is told too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.reasons import CardRefusal
from scheduler.kernels import diagnose
from scheduler.plugins import words
from scheduler.plugins.cards_seen import (
    FITS,
    CardsSeen,
    find_refusals,
    measure_free,
    mib_asked,
    see_cards,
)
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c

# By what is short, the figures by which requests are unlike.
CODES = {
    CardRefusal.TOO_FEW: (c.ASK_MIB, c.ASK_PERCENT, c.ASK_CORES),
    CardRefusal.TOO_MANY_ASKED: (),
    CardRefusal.MEMORY: (c.ASK_MIB, c.ASK_PERCENT),
    CardRefusal.CORES: (c.ASK_CORES,),
}
# A pod may have a thousand containers: so many requests are told, the largest so many are compared with what is
# free on all cards, and so many containers are tried one after the other.
_TOLD, _MEASURED, _TRIED = 3, 4, 32


class Request(NamedTuple):
    """What one container requests, or several alike.

    Attributes:
        slots, names: which containers.
        cards: how many cards each requests.
        amounts: of what it requests on each, by which such requests are unlike.
    """

    slots: tuple[int, ...]
    names: tuple[str, ...]
    cards: int
    amounts: tuple[int, ...]

    @property
    def who(self) -> str:
        """The containers in words."""
        return name_containers(self.names) + (" each" if len(self.slots) > 1 else "")


class Walk(NamedTuple):
    """Where the walk over the containers ends on one node.

    Attributes:
        slot: the first container that finds too few cards.
        served: the containers before it.
        held: [3, n] what these hold on the node's cards.
        fitting: on how many cards the container would fit.
    """

    slot: int
    served: tuple[int, ...]
    held: c.Ints
    fitting: int


class _Figure(NamedTuple):
    """Of one request what is requested, and the most that there is of it and where."""

    request: Request
    asked: str
    there: str
    is_enough: bool


def are_several(judged: Judged) -> bool:
    """Whether several containers request cards."""
    return bool((judged.ask.containers[c.N_CARDS] > 0).sum() > 1)


def group_requests(judged: Judged, *figures: int) -> list[Request]:
    """The containers that request cards, those alike by some figures together, in the order of the pod."""
    containers = judged.ask.containers
    alike: dict[tuple[int, ...], list[int]] = {}
    for slot in np.flatnonzero(containers[c.N_CARDS] > 0).tolist():
        key = tuple(containers[[c.N_CARDS, *figures], slot].tolist())
        alike.setdefault(key, []).append(slot)
    return [
        Request(tuple(slots), tuple(list_names(judged, slots)), key[0], key[1:])
        for key, slots in alike.items()
    ]


def list_names(judged: Judged, slots: Sequence[int]) -> list[str]:
    """What containers are called; one without a name by its number."""
    gpu = judged.asked.template.gpu
    called = gpu.names if gpu is not None and gpu.names else ()
    return [(called[slot] if slot < len(called) else "") or f"number {slot + 1}" for slot in slots]


def name_containers(names: Sequence[str]) -> str:
    """``container a``, ``containers a and b``; of many the first, and how many more."""
    return f"container{'s' if len(names) > 1 else ''} {words.joined(names, 'container')}"


def tell(judged: Judged, seen: CardsSeen, code: CardRefusal) -> str:
    """What each container requests and the most that there is; then what is left, where each alone would fit."""
    requests = group_requests(judged, *CODES[code])
    largest = sorted(requests, key=lambda one: (one.amounts, one.cards), reverse=True)[:_MEASURED]
    measured = [one for one in requests if one in largest]
    found = [figure for one in measured for figure in _measure(judged, seen, code, one)]
    if not found:
        return ""
    # What is short is told first.
    found.sort(key=lambda one: one.is_enough)
    told = [f"{one.request.who} requested {one.asked}, {one.there}" for one in found[:_TOLD]]
    more = len(found) - len(told) + len(requests) - len(measured)
    told += [f"and {words.counted(more, 'other request')}"] if more > 0 else []
    said = "; ".join(told)
    if code == CardRefusal.TOO_MANY_ASKED:
        return said
    together = _together(judged, seen, code) if all(one.is_enough for one in found) else ""
    return f"{said} (before any of them has a GPU){together}"


def follow_walk(judged: Judged, at: int) -> Walk | None:
    """Where the walk ends on the node at a position among the rows; None where that is not known."""
    ask, row = judged.ask, judged.rows[[at]]
    nodes, cards = judged.cluster.nodes.columns, judged.cluster.cards.columns
    count = int(nodes.card_count[ask.pool, row[0]])
    asking = np.flatnonzero(ask.containers[c.N_CARDS] > 0).tolist()
    held = np.zeros((3, count), np.int64)
    for i, slot in enumerate(asking[:_TRIED]):
        first = ask._replace(containers=ask.containers[:, : slot + 1].copy())
        codes = np.zeros((1, c.N_CARD_CODES), np.int64)
        diagnose.card_codes(nodes, cards, first, row, judged.scratch, codes)
        # Every card that is not refused was picked; the count of those that were is no refusal.
        fitting = count - int(codes[0].sum() - codes[0, CardRefusal.TOO_FEW])
        if fitting < int(ask.containers[c.N_CARDS, slot]):
            return Walk(slot, tuple(asking[:i]), held, fitting)
        held = judged.scratch.held[:, :count].copy()
    return None


def _measure(
    judged: Judged, seen: CardsSeen, code: CardRefusal, request: Request
) -> Iterator[_Figure]:
    match code:
        case CardRefusal.MEMORY:
            yield from _of_memory(judged, seen, request)
        case CardRefusal.CORES:
            yield from _of_cores(judged, seen, request)
        case CardRefusal.TOO_FEW:
            fit = np.flatnonzero(find_refusals(judged, seen, request.slots[0]) == FITS)
            there = "the most that would fit on one node is"
            yield _counted(judged, seen, request, fit, there)
        case _:
            every = np.arange(seen.at.size)
            yield _counted(judged, seen, request, every, "the most on one node is")


def _of_memory(judged: Judged, seen: CardsSeen, request: Request) -> Iterator[_Figure]:
    slot = request.slots[0]
    at = _suiting(judged, seen, slot, CardRefusal.MEMORY)
    mib, percent = judged.ask.containers[[c.ASK_MIB, c.ASK_PERCENT], slot].tolist()
    free, total = measure_free(judged, seen, at, c.MIB)
    asked = mib_asked(judged, seen.cards[at], slot)
    if mib:
        yield from _of_cards(judged, seen, request, at, free, asked, (f"{mib} MiB", "{}"))
    else:
        shown = free * 100 // np.maximum(1, total)
        said = f"{percent} % of the memory", "{} %"
        yield from _of_cards(judged, seen, request, at, shown, asked * 0 + percent, said)


def _of_cores(judged: Judged, seen: CardsSeen, request: Request) -> Iterator[_Figure]:
    slot = request.slots[0]
    cores = int(judged.ask.containers[c.ASK_CORES, slot])
    if cores:
        at = _suiting(judged, seen, slot, CardRefusal.CORES)
        free, _ = measure_free(judged, seen, at, c.CORES)
        said = f"{cores} % of the cores", "{} %"
        yield from _of_cards(judged, seen, request, at, free, free * 0 + cores, said)


def _of_cards(
    judged: Judged,
    seen: CardsSeen,
    request: Request,
    at: c.Ints,
    free: c.Ints,
    asked: c.Ints,
    said: tuple[str, str],
) -> Iterator[_Figure]:
    """The most that is free on as many cards of one node as the request has; nothing where no node has so many."""
    wanted, most = said
    nth, rows = _nth_largest(free, seen.at[at], request.cards)
    if not nth.size:
        return
    best = int(np.argmax(free[nth]))
    figure, node = most.format(int(free[nth[best]])), _node(judged, int(rows[best]))
    is_enough = bool((free[nth] >= asked[nth]).any())
    if request.cards == 1:
        yield _Figure(
            request, f"{wanted} of a GPU", f"the largest free is {figure} on {node}", is_enough
        )
    else:
        there = f"the largest free on {request.cards} GPUs of one node is {figure}, on {node}"
        yield _Figure(request, f"{request.cards} GPUs with {wanted} of each", there, is_enough)


def _counted(judged: Judged, seen: CardsSeen, request: Request, at: c.Ints, there: str) -> _Figure:
    counts = np.bincount(seen.at[at], minlength=judged.rows.size)
    best = int(np.argmax(counts))
    said = f"{there} {int(counts[best])}, on {_node(judged, best)}"
    asked = words.counted(request.cards, "GPU")
    return _Figure(request, asked, said, bool(counts[best] >= request.cards))


def _suiting(judged: Judged, seen: CardsSeen, slot: int, code: CardRefusal) -> c.Ints:
    """The positions of cards that a container would fit on, or would but for this."""
    refused = find_refusals(judged, seen, slot)
    found: c.Ints = np.flatnonzero((refused == FITS) | (refused == code))
    return found


def _nth_largest(values: c.Ints, at: c.Ints, n: int) -> tuple[c.Ints, c.Ints]:
    """Of every node with so many values which is the n-th largest, and the node."""
    order = np.lexsort((-values, at))
    rows, first = np.unique(at[order], return_index=True)
    counts = np.diff(np.append(first, order.size))
    has = counts >= n
    return order[first[has] + n - 1], rows[has]


def _together(judged: Judged, seen: CardsSeen, code: CardRefusal) -> str:
    """What is left for the container that the walk cannot serve, on the node with the most free."""
    there = np.flatnonzero(seen.codes[:, code] > 0)
    if not there.size:
        return ""
    figure = c.CORES if code == CardRefusal.CORES else c.MIB
    free, _ = measure_free(judged, seen, np.arange(seen.at.size), figure)
    at = int(there[np.argmax(np.bincount(seen.at, free, judged.rows.size)[there])])
    end = follow_walk(judged, at)
    if end is None or not end.served:
        return ""
    before = name_containers(list_names(judged, end.served))
    placed = f"once {before} {'is' if len(end.served) == 1 else 'are'} placed"
    left = _left(judged, seen, code, at, end)
    on = _node(judged, at)
    return f", but they do not fit together: {placed}, {left} on {on}" if left else ""


def _left(judged: Judged, seen: CardsSeen, code: CardRefusal, at: int, end: Walk) -> str:
    """Of what there is too little for the container at which the walk ends on a node."""
    who = name_containers(list_names(judged, [end.slot]))
    wanted = int(judged.ask.containers[c.N_CARDS, end.slot])
    if code == CardRefusal.TOO_FEW:
        return f"{who} fits on {end.fitting} of {words.counted(wanted, 'requested GPU')}"
    figure = c.CORES if code == CardRefusal.CORES else c.MIB
    of_node = judged._replace(rows=judged.rows[[at]], bits=judged.bits[:, [at]])
    cards = see_cards(of_node, seen.codes[[at]])
    short = np.flatnonzero(find_refusals(of_node, cards, end.slot, end.held) == code)
    if not short.size:
        return ""
    free, total = measure_free(of_node, cards, short, figure)
    left = np.maximum(0, free - end.held[figure, short])
    unit = " %" if figure == c.CORES else ""
    if figure == c.MIB and not judged.ask.containers[c.ASK_MIB, end.slot]:
        left, unit = left * 100 // np.maximum(1, total), " %"
    return f"the largest free for {who} is {int(left.max())}{unit}"


def _node(judged: Judged, at: int) -> str:
    return judged.cluster.nodes.name_of(int(judged.rows[at]))
