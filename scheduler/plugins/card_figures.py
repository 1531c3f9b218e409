"""Why cards do not suffice, in figures, over all cards of the nodes that refuse a pod because of cards.

The counts come from the walk that chooses cards. The figures are about the container that requests cards; if several
containers request cards, ``container_figures`` names the containers that are short.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.reasons import CardRefusal
from scheduler.devices import models
from scheduler.plugins import container_figures, container_requests, words
from scheduler.plugins.cards_seen import (
    CardsSeen,
    find_hardest,
    find_largest_parts,
    find_refusals,
    measure_free,
    measure_requested_cores,
    measure_requested_mib,
    name_codes,
    name_memory,
)
from scheduler.plugins.container_figures import Several
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c

_FIXED = {
    CardRefusal.EXCLUSIVE: "requested GPUs that nobody shares",
    CardRefusal.SLOTS: "the maximum number of containers share each",
    CardRefusal.EXHAUSTED: "other pods have all their cores",
    CardRefusal.OTHER_CARD: "another container of the pod gets another card",
}


def describe_refusals(judged: Judged, seen: CardsSeen) -> list[tuple[CardRefusal, str]]:
    """Describe every code that a card or node of the rows has, the most important code first."""
    several = None
    if container_requests.are_several(judged):
        several = container_figures.evaluate_each(judged)
        seen = container_figures.add_hidden(seen, several)
    codes = seen.codes
    counts = codes.sum(axis=0)
    of_nodes = (CardRefusal.TOO_FEW, CardRefusal.TOO_MANY_ASKED)
    there = [CardRefusal(i) for i in np.flatnonzero(counts).tolist()]
    names = name_codes(judged)
    there.sort(key=lambda code: (code not in of_nodes, -int(counts[code]), names[code]))
    found = []
    for code in there:
        n = int((codes[:, code] > 0).sum()) if code in of_nodes else int(counts[code])
        text = f"{names[code]} on {words.count_nouns(n, 'node' if code in of_nodes else 'GPU')}"
        found.append((code, text + _describe_figures(judged, seen, code, several)))
    return found


def _describe_figures(
    judged: Judged, seen: CardsSeen, code: CardRefusal, several: Several | None
) -> str:
    found = ""
    if several is not None and code in container_figures.CODES:
        found = container_figures.describe_reason(judged, seen, code, several, _FIXED.get(code, ""))
    else:
        match code:
            case CardRefusal.TOO_FEW | CardRefusal.TOO_MANY_ASKED:
                found = _describe_count(judged, seen.codes, code)
            case CardRefusal.MEMORY:
                found = _describe_memory(judged, seen)
            case CardRefusal.CORES:
                found = _describe_cores(judged, seen)
            case CardRefusal.TYPE:
                found = _describe_types(judged, seen)
            case CardRefusal.CLASS:
                found = _describe_class(judged)
            case CardRefusal.MIG:
                found = _describe_parts(judged, seen)
            case CardRefusal.HEALTH | CardRefusal.CORDONED:
                return (
                    f", the first on {_name_node(judged, int(np.argmax(seen.codes[:, code] > 0)))}"
                )
            case _:
                found = _FIXED.get(code, "")
    return f": {found}" if found else ""


def _describe_count(judged: Judged, codes: c.Ints, code: CardRefusal) -> str:
    """Describe how many cards one node has, or how many would fit."""
    best = int(np.argmax(codes[:, code]))
    n, node = int(codes[best, code]), _name_node(judged, best)
    there = "that would fit on one node" if code == CardRefusal.TOO_FEW else "on one node"
    asked = words.count_nouns(int(judged.ask.containers[c.N_CARDS].max()), "GPU")
    return f"requested {asked}, the most {there} is {n}, on {node}"


def _describe_memory(judged: Judged, seen: CardsSeen) -> str:
    slot = find_hardest(judged)
    short = _find_refused(judged, seen, slot, CardRefusal.MEMORY)
    free, total = measure_free(judged, seen, short, c.MIB)
    mib = int(judged.ask.containers[c.ASK_MIB, slot])
    if len(judged.ask.containers) > c.N_ASKED and short.size:
        # What is requested is a part that depends on the model.
        mib = int(measure_requested_mib(judged, seen.cards[short], slot).min())
    if mib:
        return _describe_most(
            judged, seen, short, free, (f"{mib} MiB a card", "the largest free is {}")
        )
    percent = int(judged.ask.containers[c.ASK_PERCENT, slot])
    asked = f"{percent} % of a card's {name_memory(judged)}"
    of_card = free * 100 // np.maximum(1, total)
    return _describe_most(judged, seen, short, of_card, (asked, "the most free is {} %"))


def _describe_cores(judged: Judged, seen: CardsSeen) -> str:
    slot = find_hardest(judged)
    short = _find_refused(judged, seen, slot, CardRefusal.CORES)
    free, _ = measure_free(judged, seen, short, c.CORES)
    cores = int(judged.ask.containers[c.ASK_CORES, slot])
    if len(judged.ask.containers) > c.N_ASKED and short.size:
        cores = int(measure_requested_cores(judged, seen.cards[short], slot).min())
    asked = f"{cores} % of a card's cores"
    return _describe_most(judged, seen, short, free, (asked, "the most free is {} %"))


def _describe_parts(judged: Judged, seen: CardsSeen) -> str:
    """Describe the largest MIG instance that could be made, or that the cards do not report what they can be cut into."""
    slot = find_hardest(judged)
    short = _find_refused(judged, seen, slot, CardRefusal.MIG)
    if not short.size:
        return "no place is left for another instance beside those of the pod"
    d = seen.cards[short]
    can_be_cut = judged.cluster.cards.columns.carving[d] > 0
    node = _name_node(judged, int(seen.at[short[0]]))
    if not can_be_cut.any():
        return f"they do not report what they can be cut into, the first on {node}"
    asked = f"an instance with {int(measure_requested_mib(judged, d, slot).max())} MiB"
    largest = find_largest_parts(judged, d)
    return _describe_most(
        judged, seen, short, np.maximum(largest, 0), (asked, "the largest that fits has {} MiB,")
    )


def _describe_most(
    judged: Judged, seen: CardsSeen, at: c.Ints, free: c.Ints, told: tuple[str, str]
) -> str:
    """Describe the request and the most that is free; empty if ``at`` has no cards: other containers hold them then."""
    if not at.size:
        return ""
    asked, most_free = told
    best = int(np.argmax(free))
    if not free[best]:
        return f"requested {asked}, none of them has any free"
    node = _name_node(judged, int(seen.at[at[best]]))
    return f"requested {asked}, {most_free.format(int(free[best]))} on {node}"


def _describe_class(judged: Judged) -> str:
    """Describe the class of the pod, if it has one."""
    ask = judged.asked.template.gpu
    if ask is not None and ask.sharing.name:
        return f"requested mode {ask.sharing.name}, and other pods are there"
    return "the pod may not share them with the pods that are there"


def _describe_types(judged: Judged, seen: CardsSeen) -> str:
    """Describe the requested kinds of cards, and the kinds of the refused cards."""
    ask, table = judged.asked.template.gpu, judged.cluster.cards
    d = seen.cards[seen.codes[seen.at, CardRefusal.TYPE] > 0]
    d = d[~judged.ask.prefers.model_ok[table.columns.model[d]]]
    if ask is None or not d.size:
        if ask is None:
            return ""
        wanted = ask.sharing.name or ask.vgpu_mode
        return f"requested mode {words.write_some([wanted], 'mode')}"
    if not (ask.use_types or ask.nouse_types):
        # The model decides what can be cut out of a card.
        return "they have no part of the requested size"
    numbers, counts = np.unique(table.columns.model[d], return_counts=True)
    ordered = sorted(
        zip((-counts).tolist(), (table.models.values[i] for i in numbers), strict=True)
    )
    reported = [model for _, model in ordered]
    makers = models.list_makers(judged.cluster.registers.devices.families)
    printed = list(dict.fromkeys(models.print_name(one, makers) for one in reported))
    there = words.write_some(printed, "other kind")
    # Annotations are compared with what nodes report.
    as_reported = (
        f" (reported as {words.write_some(reported, 'name')})" if reported != printed else ""
    )
    return f"requested {_describe_wish(ask)}, there are {there}{as_reported}"


def _describe_wish(ask: GpuAsk) -> str:
    wanted = words.write_some(ask.use_types, "kind") if ask.use_types else ""
    unwanted = f"none of {words.write_some(ask.nouse_types, 'kind')}" if ask.nouse_types else ""
    return " and ".join(filter(None, (wanted, unwanted)))


def _find_refused(judged: Judged, seen: CardsSeen, slot: int, code: CardRefusal) -> c.Ints:
    """Find the positions of the cards that are refused for a code, on nodes where the walk refused cards for it too."""
    came_as_far = seen.codes[seen.at, code] > 0
    return np.flatnonzero((find_refusals(judged, seen, slot) == code) & came_as_far)


def _name_node(judged: Judged, at: int) -> str:
    return judged.cluster.nodes.find_name(int(judged.rows[at]))
