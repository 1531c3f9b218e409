"""Why cards do not suffice, in figures, over all cards of the nodes that refuse a pod because of cards.

The counts are of the walk that chooses cards. The figures are of the container that requests cards; where several
containers do, ``container_figures`` names those that are short.
"""

from __future__ import annotations

import numpy as np

from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices import models
from scheduler.plugins import container_figures, container_requests, words
from scheduler.plugins.cards_seen import CardsSeen, find_hardest, find_refusals, measure_free
from scheduler.plugins.container_figures import Several
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c

_FIXED = {
    CardRefusal.EXCLUSIVE: "requested GPUs that nobody shares",
    CardRefusal.SLOTS: "the maximum number of containers share each",
    CardRefusal.EXHAUSTED: "other pods have all their cores",
}


def figures(judged: Judged, seen: CardsSeen) -> list[tuple[CardRefusal, str]]:
    """What is behind every code that any card or node of the rows has, the most important first."""
    several = None
    if container_requests.are_several(judged):
        several = container_figures.evaluate_each(judged)
        seen = container_figures.add_hidden(seen, several)
    codes = seen.codes
    counts = codes.sum(axis=0)
    of_nodes = (CardRefusal.TOO_FEW, CardRefusal.TOO_MANY_ASKED)
    there = [CardRefusal(i) for i in np.flatnonzero(counts).tolist()]
    there.sort(key=lambda code: (code not in of_nodes, -int(counts[code]), CARD_CODES[code]))
    found = []
    for code in there:
        n = int((codes[:, code] > 0).sum()) if code in of_nodes else int(counts[code])
        text = (
            f"{CARD_CODES[code]} on {words.count_nouns(n, 'node' if code in of_nodes else 'GPU')}"
        )
        found.append((code, text + _more(judged, seen, code, several)))
    return found


def _more(judged: Judged, seen: CardsSeen, code: CardRefusal, several: Several | None) -> str:
    found = ""
    if several is not None and code in container_figures.CODES:
        found = container_figures.describe(judged, seen, code, several, _FIXED.get(code, ""))
    else:
        match code:
            case CardRefusal.TOO_FEW | CardRefusal.TOO_MANY_ASKED:
                found = _count(judged, seen.codes, code)
            case CardRefusal.MEMORY:
                found = _memory(judged, seen)
            case CardRefusal.CORES:
                found = _cores(judged, seen)
            case CardRefusal.TYPE:
                found = _types(judged, seen)
            case CardRefusal.HEALTH | CardRefusal.CORDONED | CardRefusal.MIG:
                return f", the first on {_node(judged, int(np.argmax(seen.codes[:, code] > 0)))}"
            case _:
                found = _FIXED.get(code, "")
    return f": {found}" if found else ""


def _count(judged: Judged, codes: c.Ints, code: CardRefusal) -> str:
    """Of cards on one node: how many there are, or how many would fit."""
    best = int(np.argmax(codes[:, code]))
    n, node = int(codes[best, code]), _node(judged, best)
    there = "that would fit on one node" if code == CardRefusal.TOO_FEW else "on one node"
    asked = words.count_nouns(int(judged.ask.containers[c.N_CARDS].max()), "GPU")
    return f"requested {asked}, the most {there} is {n}, on {node}"


def _memory(judged: Judged, seen: CardsSeen) -> str:
    slot = find_hardest(judged)
    short = _find_refused(judged, seen, slot, CardRefusal.MEMORY)
    free, total = measure_free(judged, seen, short, c.MIB)
    mib = int(judged.ask.containers[c.ASK_MIB, slot])
    if mib:
        return _most(judged, seen, short, free, (f"{mib} MiB a card", "the largest free is {}"))
    percent = int(judged.ask.containers[c.ASK_PERCENT, slot])
    asked = f"{percent} % of a card's memory"
    of_card = free * 100 // np.maximum(1, total)
    return _most(judged, seen, short, of_card, (asked, "the most free is {} %"))


def _cores(judged: Judged, seen: CardsSeen) -> str:
    slot = find_hardest(judged)
    short = _find_refused(judged, seen, slot, CardRefusal.CORES)
    free, _ = measure_free(judged, seen, short, c.CORES)
    asked = f"{int(judged.ask.containers[c.ASK_CORES, slot])} % of a card's cores"
    return _most(judged, seen, short, free, (asked, "the most free is {} %"))


def _most(judged: Judged, seen: CardsSeen, at: c.Ints, free: c.Ints, told: tuple[str, str]) -> str:
    """The request and the most that is free; empty without cards, where other containers of the pod hold them."""
    if not at.size:
        return ""
    asked, most_free = told
    best = int(np.argmax(free))
    if not free[best]:
        return f"requested {asked}, none of them has any free"
    node = _node(judged, int(seen.at[at[best]]))
    return f"requested {asked}, {most_free.format(int(free[best]))} on {node}"


def _types(judged: Judged, seen: CardsSeen) -> str:
    """The requested kinds, and the kinds of the cards that are none of them."""
    ask, table = judged.asked.template.gpu, judged.cluster.cards
    d = seen.cards[seen.codes[seen.at, CardRefusal.TYPE] > 0]
    d = d[~judged.ask.prefers.model_ok[table.columns.model[d]]]
    if ask is None or not d.size:
        return f"requested mode {words.listed([ask.vgpu_mode], 'mode')}" if ask else ""
    numbers, counts = np.unique(table.columns.model[d], return_counts=True)
    ordered = sorted(
        zip((-counts).tolist(), (table.models.values[i] for i in numbers), strict=True)
    )
    reported = [model for _, model in ordered]
    makers = models.makers(one.resource for one in judged.cluster.registers.families)
    printed = list(dict.fromkeys(models.print_name(one, makers) for one in reported))
    there = words.listed(printed, "other kind")
    # Annotations are compared with what nodes report.
    as_reported = f" (reported as {words.listed(reported, 'name')})" if reported != printed else ""
    return f"requested {_wish(ask)}, there are {there}{as_reported}"


def _wish(ask: GpuAsk) -> str:
    wanted = words.listed(ask.use_types, "kind") if ask.use_types else ""
    unwanted = f"none of {words.listed(ask.nouse_types, 'kind')}" if ask.nouse_types else ""
    return " and ".join(filter(None, (wanted, unwanted)))


def _find_refused(judged: Judged, seen: CardsSeen, slot: int, code: CardRefusal) -> c.Ints:
    """The positions of the cards that are refused for this, on nodes where the walk came as far."""
    came_as_far = seen.codes[seen.at, code] > 0
    return np.flatnonzero((find_refusals(judged, seen, slot) == code) & came_as_far)


def _node(judged: Judged, at: int) -> str:
    return judged.cluster.nodes.name_of(int(judged.rows[at]))
