"""Why cards do not suffice, in figures, over all cards of the nodes that refuse a pod because of cards.

The counts are of the walk that chooses cards. The figures are of one container at a time, the one that asks
the most, as if the pod held nothing yet; so they are true of pods with several containers too, and only say
less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.devices import models
from scheduler.plugins import words
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c

FITS = -1
# Of how many containers the figures are told.
_EACH_MAX = 3
_FIXED = {
    CardRefusal.EXCLUSIVE: "requested GPUs that nobody shares",
    CardRefusal.SLOTS: "the maximum number of containers share each",
    CardRefusal.EXHAUSTED: "other pods have all their cores",
}


class CardsSeen(NamedTuple):
    """The cards of n rows, one behind the other, and what the walk said of them. m cards."""

    codes: c.Ints  # [n, N_CARD_CODES] how many cards of each row it refused for what
    at: c.Ints  # [m] position of the card's node among the rows
    cards: c.Ints  # [m] card row


def seen(judged: Judged, codes: c.Ints) -> CardsSeen:
    """The cards that the pod is judged by on the rows; ``codes`` are those of the walk."""
    nodes, pool, rows = judged.cluster.nodes.columns, judged.ask.pool, judged.rows
    start, count = nodes.card_start[pool, rows], nodes.card_count[pool, rows]
    at = np.repeat(np.arange(rows.size), count)
    within = np.arange(at.size) - np.repeat(np.cumsum(count) - count, count)
    return CardsSeen(codes, at, start[at] + within)


def refusals(judged: Judged, seen: CardsSeen, slot: int) -> c.Ints:
    """[m] by what a card is refused to a container of a pod that holds nothing yet; ``FITS`` where it is not."""
    cards, ask, d = judged.cluster.cards.columns, judged.ask, seen.cards
    sharers, cores = cards.used[c.SLOTS, d], int(ask.containers[c.ASK_CORES, slot])
    total_cores, used_cores = cards.total[c.CORES, d], cards.used[c.CORES, d]
    free_mib = cards.total[c.MIB, d] - cards.used[c.MIB, d]
    is_whole = (total_cores == 100) & (cores == 100)
    uuid_ok = ask.uuid_ok[cards.uuid[d]] if ask.uuid_ok.size else np.ones(d.size, np.bool_)
    checks = (
        (~cards.healthy[d], CardRefusal.HEALTH),
        (cards.cordoned[d], CardRefusal.CORDONED),
        (~(ask.model_ok[cards.model[d]] & ask.mode_ok[cards.mode[d]]), CardRefusal.TYPE),
        (~uuid_ok, CardRefusal.UUID),
        (cards.total[c.SLOTS, d] <= sharers, CardRefusal.SLOTS),
        ((sharers > 0) & bool(ask.rules.mutex), CardRefusal.EXCLUSIVE),
        (free_mib < mib_asked(judged, d, slot), CardRefusal.MEMORY),
        (total_cores - used_cores < cores, CardRefusal.CORES),
        (is_whole & (sharers > 0), CardRefusal.EXCLUSIVE),
        ((total_cores != 0) & (used_cores == total_cores) & (cores == 0), CardRefusal.EXHAUSTED),
        (cards.mig[d], CardRefusal.MIG),
    )
    found: c.Ints = np.select([one for one, _ in checks], [int(code) for _, code in checks], FITS)
    return found


def figures(judged: Judged, seen: CardsSeen) -> list[tuple[CardRefusal, str]]:
    """What is behind every code that any card or node of the rows has, the most telling first."""
    codes = seen.codes
    counts = codes.sum(axis=0)
    of_nodes = (CardRefusal.TOO_FEW, CardRefusal.TOO_MANY_ASKED)
    there = [CardRefusal(i) for i in np.flatnonzero(counts).tolist()]
    there.sort(key=lambda code: (code not in of_nodes, -int(counts[code]), CARD_CODES[code]))
    found = []
    for code in there:
        n = int((codes[:, code] > 0).sum()) if code in of_nodes else int(counts[code])
        text = f"{CARD_CODES[code]} on {words.counted(n, 'node' if code in of_nodes else 'GPU')}"
        found.append((code, text + _more(judged, seen, code)))
    return found


def _more(judged: Judged, seen: CardsSeen, code: CardRefusal) -> str:
    found = ""
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
    """Of cards on one node: how many there are, or how many would do."""
    wanted = judged.ask.containers[c.N_CARDS]
    asked = np.unique(wanted[wanted > 0])
    best = int(np.argmax(codes[:, code]))
    n, node = int(codes[best, code]), _node(judged, best)
    there = "that would fit on one node" if code == CardRefusal.TOO_FEW else "on one node"
    if asked.size > 1:
        # The walk does not tell which container it could not serve.
        each = [str(int(one)) for one in wanted[wanted > 0]]
        return f"requested {_and(each)} GPUs in {len(each)} containers, the most {there} for one of them is {n}, on {node}"
    return f"requested {words.counted(int(asked[0]), 'GPU')}, the most {there} is {n}, on {node}"


def _memory(judged: Judged, seen: CardsSeen) -> str:
    slot = hardest(judged, c.ASK_MIB, c.ASK_PERCENT)
    short = _refused(judged, seen, slot, CardRefusal.MEMORY)
    if not short.size:
        return _together(judged, seen, CardRefusal.MEMORY)
    free, total = _free(judged, seen, short, c.MIB)
    mib = int(judged.ask.containers[c.ASK_MIB, slot])
    if mib:
        return _most(judged, seen, short, free, (f"{mib} MiB a card", "the largest free is {}"))
    percent = int(judged.ask.containers[c.ASK_PERCENT, slot])
    asked = f"{percent} % of a card's memory"
    of_card = free * 100 // np.maximum(1, total)
    return _most(judged, seen, short, of_card, (asked, "the most free is {} %"))


def _cores(judged: Judged, seen: CardsSeen) -> str:
    slot = hardest(judged, c.ASK_CORES)
    short = _refused(judged, seen, slot, CardRefusal.CORES)
    if not short.size:
        return _together(judged, seen, CardRefusal.CORES)
    free, _ = _free(judged, seen, short, c.CORES)
    asked = f"{int(judged.ask.containers[c.ASK_CORES, slot])} % of a card's cores"
    return _most(judged, seen, short, free, (asked, "the most free is {} %"))


def _together(judged: Judged, seen: CardsSeen, code: CardRefusal) -> str:
    """Where any container would fit by itself: what each asks, and the most that is free before any has a card."""
    containers = judged.ask.containers
    slots = np.flatnonzero(containers[c.N_CARDS] > 0).tolist()
    at = np.flatnonzero(seen.codes[seen.at, code] > 0)
    at = at[refusals(judged, seen, hardest(judged, c.ASK_MIB, c.ASK_PERCENT))[at] == FITS]
    if len(slots) < 2 or not at.size:
        return ""
    is_memory = code == CardRefusal.MEMORY
    figure, unit = (c.MIB, "MiB") if is_memory else (c.CORES, "%")
    each = [
        f"{mib} MiB" if is_memory and mib else f"{percent if is_memory else cores} %"
        for mib, percent, cores in containers[[c.ASK_MIB, c.ASK_PERCENT, c.ASK_CORES]][
            :, slots
        ].T.tolist()
    ]
    free, _ = _free(judged, seen, at, figure)
    best = int(np.argmax(free))
    return (
        f"requested {_and(each)} of a card's {'memory' if is_memory else 'cores'} in {len(slots)} containers, "
        f"the largest free is {int(free[best])} {unit} on {_node(judged, int(seen.at[at[best]]))}"
    )


def _and(each: Sequence[str]) -> str:
    """``a, b and c``; of many the first, and how many more."""
    more = len(each) - _EACH_MAX
    if more > 0:
        return f"{', '.join(each[:_EACH_MAX])} and {more} more"
    return " and ".join(filter(None, (", ".join(each[:-1]), each[-1])))


def _free(judged: Judged, seen: CardsSeen, at: c.Ints, figure: int) -> tuple[c.Ints, c.Ints]:
    """Of some cards what is free of a figure, and all there is of it."""
    cards, d = judged.cluster.cards.columns, seen.cards[at]
    total = cards.total[figure, d]
    return np.maximum(0, total - cards.used[figure, d]), total


def _most(judged: Judged, seen: CardsSeen, at: c.Ints, free: c.Ints, told: tuple[str, str]) -> str:
    """What was asked and the most that is free; empty without cards, where others of the pod are in the way."""
    if not at.size:
        return ""
    asked, most_free = told
    best = int(np.argmax(free))
    if not free[best]:
        return f"requested {asked}, none of them has any free"
    node = _node(judged, int(seen.at[at[best]]))
    return f"requested {asked}, {most_free.format(int(free[best]))} on {node}"


def _types(judged: Judged, seen: CardsSeen) -> str:
    """The kinds that were asked, and those of the cards that are none of them."""
    ask, table = judged.asked.template.gpu, judged.cluster.cards
    d = seen.cards[seen.codes[seen.at, CardRefusal.TYPE] > 0]
    d = d[~judged.ask.model_ok[table.columns.model[d]]]
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


def _refused(judged: Judged, seen: CardsSeen, slot: int, code: CardRefusal) -> c.Ints:
    """The positions of the cards that are refused for this, on nodes where the walk came as far."""
    came_as_far = seen.codes[seen.at, code] > 0
    return np.flatnonzero((refusals(judged, seen, slot) == code) & came_as_far)


def hardest(judged: Judged, *figures: int) -> int:
    """The container that asks the most by the first of these figures, and of several by the next."""
    containers = judged.ask.containers
    asking = containers[c.N_CARDS] > 0
    order = np.lexsort([containers[figure] * asking for figure in reversed((*figures, c.N_CARDS))])
    return int(order[-1])


def mib_asked(judged: Judged, d: c.Ints, slot: int) -> c.Ints:
    """[m] the memory that a container asks of each of these cards, at least 1."""
    containers, total = judged.ask.containers, judged.cluster.cards.columns.total[c.MIB, d]
    mib, percent = int(containers[c.ASK_MIB, slot]), int(containers[c.ASK_PERCENT, slot])
    asked: c.Ints = np.maximum(1, np.full(d.size, mib) if mib else total * percent // 100)
    return asked


def _node(judged: Judged, at: int) -> str:
    return judged.cluster.nodes.name_of(int(judged.rows[at]))
