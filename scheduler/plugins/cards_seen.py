"""The cards of the nodes that refuse a pod because of cards, and why each card is refused to one container of the pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.kernels.devices.pools import WHOLE_CORES
from scheduler.kernels.devices.sharing import CLASSES
from scheduler.plugins.contract import Judged
from scheduler.schema import card_parts
from scheduler.schema import columns as c

FITS = -1
# Sort keys for ``np.lexsort``: the last one counts first.
_BY = (c.ASK_CORES, c.ASK_PERCENT, c.ASK_MIB, c.N_CARDS)


class CardsSeen(NamedTuple):
    """The m cards of n rows in one list, and the codes of the walk over them."""

    codes: c.Ints  # [n, N_CARD_CODES] how many cards of each row the walk refused for each code
    at: c.Ints  # [m] position of the card's node among the rows
    cards: c.Ints  # [m] card row


def name_codes(judged: Judged) -> Mapping[CardRefusal, str]:
    """Name the codes in the words of the driver of the pod's family."""
    return judged.cluster.nodes.devices.name_codes(judged.asked.template.family)


def name_memory(judged: Judged) -> str:
    """Name what the memory of a card stands for: of some devices it is the number of their cores."""
    of_cores = CARD_CODES[CardRefusal.CORES]
    return "cores" if name_codes(judged)[CardRefusal.MEMORY] == of_cores else "memory"


def see_cards(judged: Judged, codes: c.Ints) -> CardsSeen:
    """List the cards of the pod's family on the rows; ``codes`` come from the walk."""
    table, rows = judged.cluster.nodes.columns.pools, judged.rows
    pools = judged.cluster.nodes.find_pools(judged.ask.family)[rows]
    start, count = table.start[pools], table.count[pools]
    at = np.repeat(np.arange(rows.size), count)
    within = np.arange(at.size) - np.repeat(np.cumsum(count) - count, count)
    return CardsSeen(codes, at, start[at] + within)


def find_refusals(judged: Judged, seen: CardsSeen, slot: int, held: c.Ints | None = None) -> c.Ints:
    """Find the code [m] by which each card is refused to the container at ``slot``; ``FITS`` if it is not refused.

    ``held`` [3, m] is what earlier containers of the pod hold on the cards; None if they hold nothing.
    """
    cards, ask, d = judged.cluster.cards.columns, judged.ask, seen.cards
    used = cards.used[:, d] if held is None else cards.used[:, d] + held
    sharers, cores = used[c.SLOTS], measure_requested_cores(judged, d, slot)
    total_cores, used_cores = cards.total[c.CORES, d], used[c.CORES]
    free_mib = cards.total[c.MIB, d] - used[c.MIB]
    is_percent = ask.containers[c.ASK_CORE_PERCENT, slot] == 0
    is_whole = (total_cores == 100) & (cores == 100) & is_percent
    uuid_ok = (
        ask.prefers.uuid_ok[cards.uuid[d]]
        if ask.prefers.uuid_ok.size
        else np.ones(d.size, np.bool_)
    )
    is_idle, marks, rules = cards.used[c.SLOTS, d] == 0, cards.marks[d], ask.rules
    mode_ok = ask.prefers.mode_ok[cards.mode[d]]
    class_ok = np.ones(d.size, np.bool_)
    if rules.any_idle:
        class_ok = is_idle | ((marks & rules.closing & CLASSES) == 0)
        if rules.opening:
            class_ok = class_ok & (is_idle | ((marks & rules.opening) != 0))
        mode_ok = mode_ok | ((marks & rules.keeping) != 0)
        mode_ok = (mode_ok & ((marks & rules.closing) == 0)) | is_idle
        if int(ask.containers[c.ASK_CORES, slot]) == WHOLE_CORES:
            mode_ok = np.ones(d.size, np.bool_)
    is_coreless = bool(rules.coreless)
    checks = (
        (~cards.healthy[d], CardRefusal.HEALTH),
        (cards.cordoned[d], CardRefusal.CORDONED),
        (~class_ok, CardRefusal.CLASS),
        (
            ~(ask.prefers.model_ok[cards.model[d]] & mode_ok),
            CardRefusal.TYPE,
        ),
        (~uuid_ok, CardRefusal.UUID),
        (cards.total[c.SLOTS, d] <= sharers, CardRefusal.SLOTS),
        ((sharers > 0) & bool(ask.rules.mutex), CardRefusal.EXCLUSIVE),
        (free_mib < measure_requested_mib(judged, d, slot), CardRefusal.MEMORY),
        ((total_cores - used_cores < cores) & (not is_coreless), CardRefusal.CORES),
        (is_whole & (sharers > 0), CardRefusal.EXCLUSIVE),
        (
            (total_cores != 0) & (used_cores == total_cores) & (cores == 0) & (not is_coreless),
            CardRefusal.EXHAUSTED,
        ),
        (find_largest_parts(judged, d) < measure_requested_mib(judged, d, slot), CardRefusal.MIG),
    )
    found: c.Ints = np.select([one for one, _ in checks], [int(code) for _, code in checks], FITS)
    return found


def measure_free(judged: Judged, seen: CardsSeen, at: c.Ints, figure: int) -> tuple[c.Ints, c.Ints]:
    """Measure how much of a figure (``columns.CORES``, ``MIB``, …) is free on some cards, and their total of it."""
    cards, d = judged.cluster.cards.columns, seen.cards[at]
    total = cards.total[figure, d]
    return np.maximum(0, total - cards.used[figure, d]), total


def find_hardest(judged: Judged) -> int:
    """Find the container that requests the most cards; among several, the one that requests the most of each card."""
    containers = judged.ask.containers
    order = np.lexsort([containers[one] * (containers[c.N_CARDS] > 0) for one in _BY])
    return int(order[-1])


def measure_requested_mib(judged: Judged, d: c.Ints, slot: int) -> c.Ints:
    """Measure the MiB [m] that a container requests of each of these cards, at least 1."""
    containers, cards = judged.ask.containers, judged.cluster.cards.columns
    if len(containers) > c.N_ASKED:
        of_models: c.Ints = containers[c.N_ASKED + 2 * cards.model[d], slot]
        return of_models.clip(1)
    mib, percent = int(containers[c.ASK_MIB, slot]), int(containers[c.ASK_PERCENT, slot])
    if mib:
        return np.full(d.size, mib)
    asked = cards.total[c.MIB, d] * percent // 100
    # All of a card that can be cut is its largest part.
    largest = cards.carvings.run[card_parts.RUN_MOST_MIB, cards.carving[d]]
    asked = np.where(cards.carving[d] > 0, np.minimum(asked, largest), asked)
    found: c.Ints = np.maximum(1, asked)
    return found


def measure_requested_cores(judged: Judged, d: c.Ints, slot: int) -> c.Ints:
    """Measure the cores [m] that a container requests of each of these cards."""
    containers, total = judged.ask.containers, judged.cluster.cards.columns.total[c.CORES, d]
    if len(containers) > c.N_ASKED:
        of_models: c.Ints = containers[
            c.N_ASKED + 1 + 2 * judged.cluster.cards.columns.model[d], slot
        ]
        return of_models
    if percent := int(containers[c.ASK_CORE_PERCENT, slot]):
        asked: c.Ints = np.maximum(1, total * percent // 100)
        return asked
    return np.full(d.size, int(containers[c.ASK_CORES, slot]))


def find_largest_parts(judged: Judged, d: c.Ints) -> c.Ints:
    """Find the MiB [len(d)] of the largest part that can still be cut out of each card.

    -1 of a card that is full, or that does not report what it can be cut into. Of a card that is not in MIG mode pods get
    shares as they request them, so its figure is larger than any request.
    """
    cards = judged.cluster.cards.columns
    found = np.where(cards.mig[d], -1, np.iinfo(np.int64).max)
    states = np.column_stack((cards.carving[d], cards.cut[d]))
    distinct, which = np.unique(states, axis=0, return_inverse=True)
    parts = cards.carvings.parts
    for number, (carving, cut) in enumerate(distinct.tolist()):
        first, n, _ = cards.carvings.run[:, carving].tolist()
        free = parts[first : first + n]
        free = free[free[:, card_parts.PART_CLASH] & cut == 0, card_parts.PART_MIB]
        if n:
            found[which.ravel() == number] = free.max(initial=-1)
    return found
