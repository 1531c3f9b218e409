"""Why cards do not suffice for a pod of several containers that request cards: which containers are short, with figures.

A container is short on a node if the node refuses it by itself, before any container of the pod has a card. The
container's figure is the most that is free on the nodes on which it is short, so the figure is below the request. The
text names the containers that fit on no node of a reason. If there are none, the containers do not fit together on a
node where none of them is short: one sentence says what is left there for the first container that the walk cannot serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.reasons import CardRefusal
from scheduler.plugins import words
from scheduler.plugins.cards_seen import (
    FITS,
    CardsSeen,
    find_refusals,
    measure_free,
    name_memory,
    see_cards,
)
from scheduler.plugins.container_requests import (
    Alone,
    Request,
    Walk,
    evaluate_alone,
    find_largest,
    follow_walk,
    list_names,
    name_containers,
)
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c

# Reasons that are about what one container requests, and not about its pod or the cards.
_OF_CONTAINERS = (
    CardRefusal.TOO_MANY_ASKED,
    CardRefusal.TOO_FEW,
    CardRefusal.MEMORY,
    CardRefusal.CORES,
    CardRefusal.EXCLUSIVE,
)
# Reasons about cards that the pod's own earlier containers may cause.
_OF_CARDS = (CardRefusal.SLOTS, CardRefusal.EXHAUSTED)
CODES = frozenset(_OF_CONTAINERS + _OF_CARDS)
# The most requests that the text of one reason names.
_NAMED = 3


class Several(NamedTuple):
    """The requests of a pod of several containers, each evaluated by itself.

    Attributes:
        are_more: whether smaller requests were not evaluated.
    """

    requests: tuple[Alone, ...]
    are_more: bool


class _Figure(NamedTuple):
    """The request of a container, and the most that is free on the nodes on which the container is short."""

    asked: str
    most: str


def evaluate_each(judged: Judged) -> Several:
    """Evaluate each request by itself on all rows."""
    largest, are_more = find_largest(judged)
    return Several(tuple(evaluate_alone(judged, one) for one in largest), are_more)


def add_hidden(seen: CardsSeen, several: Several) -> CardsSeen:
    """Add the codes of containers that fit on no row, if the walk always ends before it comes to these containers."""
    codes = seen.codes.copy()
    for one in several.requests:
        if one.fits.any():
            continue
        reason = _find_main_reason(one.codes)
        is_covered: c.Flags = np.any((codes > 0) & (one.codes > 0), axis=0)
        if not bool(is_covered[[*_OF_CONTAINERS, reason]].any()):
            codes[:, reason] = np.maximum(codes[:, reason], one.codes[:, reason])
    return seen._replace(codes=codes)


def describe_reason(
    judged: Judged, seen: CardsSeen, code: CardRefusal, several: Several, fixed: str
) -> str:
    """Describe the containers that are short on the nodes of a reason, or why the containers do not fit together there.

    ``fixed`` is the text of a reason that has no figures.
    """
    there = seen.codes[:, code] > 0
    short = [(one, there & (one.codes[:, code] > 0)) for one in several.requests]
    short = [(one, at) for one, at in short if at.any()]
    together = there & ~np.any([at for _, at in short], axis=0) if short else there
    fit_nowhere = [(one, at) for one, at in short if not one.fits[there].any()]
    if not fit_nowhere and together.any():
        return _describe_together(judged, seen, code, together, int(there.sum()))
    if code in _OF_CARDS:
        return fixed
    # If every container fits on one of these nodes, each named container is short on some of the nodes.
    named = fit_nowhere or short
    said = _describe_short(judged, seen, code, named, int(there.sum()), fixed)
    if len(named) > _NAMED:
        more = words.count_nouns(len(named) - _NAMED, "other request")
        said.append(f"and {'other requests' if several.are_more else more}")
    return "; ".join(said)


def _find_main_reason(codes: c.Ints) -> CardRefusal:
    """Find why one request fits nowhere; nodes with enough cards decide, if there are any."""
    enough = codes[codes[:, CardRefusal.TOO_MANY_ASKED] == 0].sum(axis=0)
    if not enough.any():
        return CardRefusal.TOO_MANY_ASKED
    return CardRefusal.TOO_FEW if enough[CardRefusal.TOO_FEW] else CardRefusal(enough.argmax())


def _describe_short(
    judged: Judged,
    seen: CardsSeen,
    code: CardRefusal,
    short: Sequence[tuple[Alone, c.Flags]],
    n_nodes: int,
    fixed: str,
) -> list[str]:
    """Write ``container a requested 3 GPUs and container b 4 GPUs, the most on one node is 2, on n1``, and so on."""
    by_most: dict[str, dict[str, list[str]]] = {}
    for one, at in short[:_NAMED]:
        figure = _measure(judged, seen, code, one, at, fixed)
        if figure is not None:
            n = int(at.sum())
            part = f" (short on {n} of {n_nodes} nodes)" if n < n_nodes else ""
            names = by_most.setdefault(figure.most + part, {}).setdefault(figure.asked, [])
            names.extend(one.request.names)
    said = []
    for most, requests in by_most.items():
        named = [
            f"{name_containers(names)}{' each' if len(names) > 1 else ''}"
            f"{'' if i else ' requested'} {asked}"
            for i, (asked, names) in enumerate(requests.items())
        ]
        said.append(" and ".join(filter(None, (", ".join(named[:-1]), named[-1]))) + most)
    return said


def _measure(
    judged: Judged, seen: CardsSeen, code: CardRefusal, one: Alone, at: c.Flags, fixed: str
) -> _Figure | None:
    """Measure the request and the most on the rows ``at`` [n]; None if the container is not short on their cards."""
    match code:
        case CardRefusal.MEMORY | CardRefusal.CORES:
            return _measure_cards(judged, seen, code, one.request, at)
        case CardRefusal.TOO_FEW | CardRefusal.TOO_MANY_ASKED:
            counts = np.where(at, one.codes[:, code], -1)
            best = int(np.argmax(counts))
            would_fit = "that would fit " if code == CardRefusal.TOO_FEW else ""
            most = f", the most {would_fit}on one node is {counts[best]}, on {_name_node(judged, best)}"
            return _Figure(words.count_nouns(one.request.cards, "GPU"), most)
        case _:
            return _Figure(fixed.removeprefix("requested "), "")


def _measure_cards(
    judged: Judged, seen: CardsSeen, code: CardRefusal, request: Request, at: c.Flags
) -> _Figure | None:
    """Measure the most that is free on as many cards of one node as the container requests."""
    slot = request.slots[0]
    among = np.flatnonzero(at[seen.at])
    seen = seen._replace(at=seen.at[among], cards=seen.cards[among])
    refused = find_refusals(judged, seen, slot)
    free, wanted, unit = _measure_left(judged, seen, code, slot, np.zeros((3, 1), np.int64))
    suiting = np.flatnonzero((refused == FITS) | (refused == code))
    # On each node the cards that fit come first, then the others; among them the cards with the most free come first.
    order = suiting[np.lexsort((-free[suiting], refused[suiting] != FITS, seen.at[suiting]))]
    _, first, counts = np.unique(seen.at[order], return_index=True, return_counts=True)
    nth = np.minimum(counts, request.cards)
    last = order[first + nth - 1]
    # If enough cards fit, the rule on NUMA nodes refuses the container, and no card is short.
    is_short = refused[last] == code
    if not wanted or not is_short.any():
        return None
    nth, last = nth[is_short], last[is_short]
    best = int(np.argmax(free[last]))
    figure, node = f"{int(free[last[best]])}{unit}", _name_node(judged, int(seen.at[last[best]]))
    asked = f"{wanted} of a GPU"
    if request.cards > 1:
        asked = f"{request.cards} GPUs with {wanted} of each"
    if nth[best] == 1:
        return _Figure(asked, f", the largest free is {figure} on {node}")
    most = f", the largest free on {nth[best]} GPUs of one node is {figure}, on {node}"
    return _Figure(asked, most)


def _measure_left(
    judged: Judged, seen: CardsSeen, code: CardRefusal, slot: int, held: c.Ints
) -> tuple[c.Ints, str, str]:
    """Measure [m] what is free on each card without ``held``; also the container's request, and the unit, as texts."""
    mib, percent, cores = judged.ask.containers[
        [c.ASK_MIB, c.ASK_PERCENT, c.ASK_CORES], slot
    ].tolist()
    figure = c.CORES if code == CardRefusal.CORES else c.MIB
    free, total = measure_free(judged, seen, np.arange(seen.at.size), figure)
    left = np.maximum(0, free - held[figure])
    if code == CardRefusal.CORES:
        return left, f"{cores} % of the cores" if cores else "", " %"
    if mib:
        return left, f"{mib} MiB", ""
    return left * 100 // np.maximum(1, total), f"{percent} % of the {name_memory(judged)}", " %"


def _describe_together(
    judged: Judged, seen: CardsSeen, code: CardRefusal, at: c.Flags, n_nodes: int
) -> str:
    """Describe what is left for the container that the walk cannot serve, on the node of ``at`` with the most free."""
    figure = c.CORES if code == CardRefusal.CORES else c.MIB
    free, _ = measure_free(judged, seen, np.arange(seen.at.size), figure)
    best = int(np.argmax(np.where(at, np.bincount(seen.at, free, judged.rows.size), -1)))
    end = follow_walk(judged, best)
    if end is None or not end.served:
        return ""
    before = name_containers(list_names(judged, end.served))
    placed = f"once {before} {'is' if len(end.served) == 1 else 'are'} placed"
    n = int(at.sum())
    part = f" on {n} of {n_nodes} nodes" if n < n_nodes else ""
    left = _describe_left(judged, seen, code, best, end)
    return (
        f"the containers do not fit together{part}: {placed}, {left} on {_name_node(judged, best)}"
    )


def _describe_left(judged: Judged, seen: CardsSeen, code: CardRefusal, at: int, end: Walk) -> str:
    """Describe what is too little for the container at which the walk ends on the node at position ``at``."""
    who = name_containers(list_names(judged, [end.slot]))
    if code in (CardRefusal.MEMORY, CardRefusal.CORES):
        of_node = judged._replace(rows=judged.rows[[at]], bits=judged.bits[:, [at]])
        cards = see_cards(of_node, seen.codes[[at]])
        left, wanted, unit = _measure_left(of_node, cards, code, end.slot, end.held)
        short = find_refusals(of_node, cards, end.slot, end.held) == code
        if wanted and short.any():
            return f"the largest free for {who} is {int(left[short].max())}{unit}"
    wanted_cards = int(judged.ask.containers[c.N_CARDS, end.slot])
    return f"{who} fits on {end.fitting} of {words.count_nouns(wanted_cards, 'requested GPU')}"


def _name_node(judged: Judged, at: int) -> str:
    return judged.cluster.nodes.find_name(int(judged.rows[at]))
