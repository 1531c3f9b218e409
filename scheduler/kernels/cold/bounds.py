"""The least that ``keel`` can lose on a node, without a look at fragments: amounts, and what is ``known``.

    lost ≥ price · taken + Δshort + left + cut + rest − 2 · D · (rate · taken + drop)

``bound_node`` knows only between which bounds the milli-GPU lie that are taken of a card, and leaves out cut and
rest. ``bound_rooms`` knows for pods of one card how many are left of each, but for rounding. ``bound_cards`` knows it
to the digit, and which cards the pod may have. Of several cards each costs as much as the best of them.
"""

from __future__ import annotations

import math

from scheduler.kernels._jit import inlined, part, tiny
from scheduler.kernels.devices import free, gpus, pools
from scheduler.kernels.modes import keel
from scheduler.schema import card_parts
from scheduler.schema import cold as k
from scheduler.schema import columns as c
from scheduler.schema.cold import Known

NOWHERE = k.NOWHERE
# Less than anything that is lost.
_NO_BOUND = -1e9

# What sums of floats in another order may differ by, of the sum and at least.
_RELATIVE, _ABSOLUTE = 1e-9, 1e-6
_ALL_CORES = 100
# By how many milli the parts of a card can differ that are rounded one by one, and together.
_ROUNDED = 2
_EPSILON = 1e-6


@inlined
def bound_node(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, row: int
) -> float:
    """Return a bound of what the pod loses on a node where its amounts fit; ``NOWHERE`` where the cards are too full."""
    if ask.containers.shape[1] == 0:
        cost = _bound_rest(nodes, ask, demand, known, row, 0.0)
        return widen_bound(cost - _bound_drop(nodes, ask, demand, known, row))
    if not pools.is_by_cards(nodes, ask, row):
        taken = ask.rules.whole * c.WHOLE
        cost = _bound_rest(nodes, ask, demand, known, row, float(taken)) + demand.price[row] * taken
        rate = known.node_rates[row, k.RATE_BASE] + _find_half_rate(known, row, taken // c.WHOLE)
        return widen_bound(cost - _bound_shrinkage(demand, known, row, rate * taken))
    slot, start = ask.rules.only, _find_start(nodes, ask, row)
    cores, wanted = ask.containers[c.ASK_CORES, slot], ask.containers[c.N_CARDS, slot]
    if known.node[row, k.NODE_CORES] < cores:
        return NOWHERE
    if known.node[row, k.NODE_MIB] < ask.containers[c.ASK_MIB, slot]:
        return NOWHERE
    low, high = 0, known.node[row, k.NODE_ROOM]
    if known.node[row, k.NODE_EVEN]:
        low, high = _bound_taken(cards, ask, start + known.card[start, k.CARD_AT], high)
    if wanted == 1:
        rate = known.node_rates[row, k.RATE_ONE]
    else:
        rate = known.node_rates[row, k.RATE_FIRM] + _find_half_rate(known, row, wanted)
    # Of what a milli-GPU costs that is taken, all but what is short: that falls until nothing is short.
    slope = demand.price[row] - _find_weight(demand) * rate
    fall = demand.rates[c.RATE_LEFT]
    least, most = float(wanted * low), float(wanted * high)
    if slope <= fall:
        taken_least = most
    elif slope >= fall + demand.rates[c.RATE_SHORT]:
        taken_least = least
    else:
        kink = known.node[row, k.NODE_IDLE] - keel.find_served(nodes, ask, demand, row)[1]
        taken_least = max(least, min(most, kink))
    cost = _bound_rest(nodes, ask, demand, known, row, taken_least) + slope * taken_least
    return widen_bound(cost - _bound_shrinkage(demand, known, row, 0.0))


@inlined
def bound_rooms(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, row: int
) -> float:
    """Return a bound for pods of one card on a node whose cards count alike and of which none closes with its next sharer.

    It reads nothing of the cards but what is free on them, which lies side by side. ``NOWHERE`` where they are
    too full.
    """
    slot, start = ask.rules.only, _find_start(nodes, ask, row)
    cores = ask.containers[c.ASK_CORES, slot]
    if known.node[row, k.NODE_CORES] < cores:
        return NOWHERE
    if known.node[row, k.NODE_MIB] < ask.containers[c.ASK_MIB, slot]:
        return NOWHERE
    of_cores = cores * known.node_rates[row, k.RATE_CORES]
    mib = gpus.find_mib_asked(cards, ask, slot, start + known.card[start, k.CARD_AT])
    of_mib = mib * known.node_rates[row, k.RATE_MIB]
    size = max(int(of_cores + _EPSILON), int(of_mib + _EPSILON))
    least_cores, least_mib = int(of_cores - _EPSILON), int(of_mib - _EPSILON)
    kind = known.node[row, k.NODE_KIND]
    filled = demand.value[kind, size] if size < c.WHOLE else 0.0
    idle, served = known.node[row, k.NODE_IDLE], keel.find_served(nodes, ask, demand, row)
    left_cpu = free.find_free_cpu(nodes, row) - ask.dim_amounts[0]
    # Beyond what a milli-GPU costs that is taken: what is short falls until nothing is.
    per_short = demand.rates[c.RATE_SHORT]
    surplus = idle - _ROUNDED - served[1]
    slope = demand.price[row] - demand.rates[c.RATE_LEFT]
    slope -= _find_weight(demand) * known.node_rates[row, k.RATE_ONE]
    found = NOWHERE
    for at in range(start, start + known.node[row, k.NODE_OPEN]):
        was_cores, was_mib = known.rooms[at, 0], known.rooms[at, 1]
        rest = min(was_cores - least_cores, was_mib - least_mib)
        if rest < 0:
            continue
        was = min(was_cores, was_mib)
        taken = was - rest
        cost = slope * taken + per_short * max(0.0, surplus - taken)
        if size < c.WHOLE:
            cut = demand.value[kind, was] - demand.value[kind, rest] - filled
            cost += keel.CUT_WEIGHT * max(0.0, cut)
            cost += keel.REST_WEIGHT * max(0, rest - _ROUNDED)
        found = min(found, cost)
    if found >= NOWHERE:
        return NOWHERE
    cost = found + min(0.0, slope * _ROUNDED) + demand.rates[c.RATE_LEFT] * idle
    cost += demand.rates[c.RATE_LEFT_CPU] * left_cpu
    cost -= per_short * keel.find_unserved(idle, served[0])
    return widen_bound(cost - _bound_shrinkage(demand, known, row, 0.0))


@part
def bound_parts(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, row: int
) -> float:
    """Return a bound on a node with cards that can be cut; ``NOWHERE`` where no part of the size is left.

    No bound at all, ``_NO_BOUND``, where the cards are not all cut alike or the pod asks for several.
    """
    slot = ask.rules.only
    if ask.containers[c.N_CARDS, slot] != 1 or known.parts[row, k.PARTS_CARVING] < 0:
        return _NO_BOUND
    start = _find_start(nodes, ask, row)
    if known.node[row, k.NODE_OPEN] == 0:
        return NOWHERE
    mib = gpus.find_mib_asked(cards, ask, slot, start + known.card[start, k.CARD_AT])
    sizes, size = cards.carvings.sizes, 0
    carving = int(known.parts[row, k.PARTS_CARVING])
    while size < card_parts.SIZES_MAX and sizes[carving, size] < mib:
        size += 1
    if size == card_parts.SIZES_MAX or known.parts[row, k.PARTS_LOSS + size] >= NOWHERE:
        return NOWHERE
    taken = known.parts[row, k.PARTS_TAKEN]
    cost = known.parts[row, k.PARTS_LOSS + size] + _bound_rest(
        nodes, ask, demand, known, row, taken
    )
    rate = known.node_rates[row, k.RATE_ONE]
    return widen_bound(cost - _bound_shrinkage(demand, known, row, rate * taken))


@part
def bound_cards(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, row: int
) -> float:
    """Return a closer bound, for pods that ask for cards on a node that has cards; ``NOWHERE`` where they do not suffice."""
    if ask.containers[c.N_CARDS, ask.rules.only] == 1:
        return widen_bound(_bound_one(nodes, cards, ask, demand, known, row))
    return widen_bound(_bound_several(nodes, cards, ask, demand, known, row))


@part
def _bound_one(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, row: int
) -> float:
    start = _find_start(nodes, ask, row)
    found = NOWHERE
    for at in range(start, start + known.node[row, k.NODE_OPEN]):
        if not _may_take(cards, ask, known, start, at):
            continue
        taken, local = _bound_card(cards, ask, demand, known, start, at)
        cost = (
            _bound_rest(nodes, ask, demand, known, row, float(taken))
            + demand.price[row] * taken
            + local
        )
        cost -= _bound_shrinkage(demand, known, row, known.card_rates[at, k.CARD_ONE] * taken)
        found = min(found, cost)
    return found


@part
def _bound_several(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, row: int
) -> float:
    start = _find_start(nodes, ask, row)
    wanted = ask.containers[c.N_CARDS, ask.rules.only]
    half = _find_half_rate(known, row, wanted)
    passing, most, best = 0, 0, NOWHERE
    for at in range(start, start + known.node[row, k.NODE_OPEN]):
        if not _may_take(cards, ask, known, start, at):
            continue
        passing += known.card[at, k.CARD_ALIKE]
        taken, local = _bound_card(cards, ask, demand, known, start, at)
        most = max(most, taken)
        # By how much a card's own terms, price and rate change the whole.
        rate = known.card_rates[at, k.CARD_FIRM] + half
        best = min(best, local + (demand.price[row] - _find_weight(demand) * rate) * taken)
    if passing < wanted:
        return NOWHERE
    cost = _bound_rest(nodes, ask, demand, known, row, float(wanted * most))
    return float(cost + wanted * best - _bound_shrinkage(demand, known, row, 0.0))


@tiny
def _find_start(nodes: c.Nodes, ask: c.Ask, row: int) -> int:
    """Return the first row of the node's cards for which the pod asks.

    Where the node has no such card, the row is another node's, and ``NODE_CORES`` is -1: look at that first.
    """
    return int(nodes.pools.start[pools.find_pool(nodes, ask, row)])


@tiny
def _may_take(cards: c.Cards, ask: c.Ask, known: Known, start: int, at: int) -> bool:
    """Whether the pod may have a card by what it needs most; the rest is checked when the card is scored."""
    slot = ask.rules.only
    cores = ask.containers[c.ASK_CORES, slot]
    if known.card[at, k.CARD_CORES] < cores:
        return False
    d = start + known.card[at, k.CARD_AT]
    if known.card[at, k.CARD_MIB] < gpus.find_mib_asked(cards, ask, slot, d):
        return False
    if cores == cards.total[c.CORES, d] and cards.used[c.SLOTS, d] > 0 and cores == _ALL_CORES:
        return False
    return bool(ask.prefers.model_ok[cards.model[d]] and ask.prefers.mode_ok[cards.mode[d]])


@part
def _bound_card(
    cards: c.Cards, ask: c.Ask, demand: c.Demand, known: Known, start: int, at: int
) -> tuple[int, float]:
    """Return what the pod takes of a card that accepts it, and what that costs on whichever node the card is."""
    slot, d = ask.rules.only, start + known.card[at, k.CARD_AT]
    cores, mib = ask.containers[c.ASK_CORES, slot], gpus.find_mib_asked(cards, ask, slot, d)
    now = free.read_card_without(cards, d, (cores, mib, 1))
    was = known.card[at, k.CARD_ROOM]
    taken = max(0, was) - free.find_usable(now[0], now[1])
    value = demand.value[cards.kind[d]]
    return taken, keel.find_cut(cards, value, d, (cores, mib), was, min(now[0], now[1]))


@tiny
def _bound_taken(cards: c.Cards, ask: c.Ask, d: int, room: int) -> tuple[int, int]:
    """Return the least and the most milli-GPU that the pod takes of a card like this one; a card that it closes gives all."""
    slot = ask.rules.only
    cores = ask.containers[c.ASK_CORES, slot] * cards.milli[c.CORES, d]
    mib = gpus.find_mib_asked(cards, ask, slot, d) * cards.milli[c.MIB, d]
    return min(room, math.floor(min(cores, mib))), room


@tiny
def _bound_rest(
    nodes: c.Nodes, ask: c.Ask, demand: c.Demand, known: Known, row: int, most: float
) -> float:
    """Return what is at least unserved or left when no more than so many milli-GPU are taken."""
    cpu, served = free.find_free_cpu(nodes, row), keel.find_served(nodes, ask, demand, row)
    idle, left = known.node[row, k.NODE_IDLE], known.node[row, k.NODE_IDLE] - most
    short = keel.find_unserved(left, served[1]) - keel.find_unserved(idle, served[0])
    cost = demand.rates[c.RATE_SHORT] * short
    cost += demand.rates[c.RATE_LEFT] * left
    cost += demand.rates[c.RATE_LEFT_CPU] * (cpu - ask.dim_amounts[0])
    return float(cost)


@tiny
def _bound_shrinkage(demand: c.Demand, known: Known, row: int, by_taken: float) -> float:
    # Of every typical pod less than a milli-GPU is rounded away.
    drop = known.node_rates[row, k.RATE_DROP]
    return float(_find_weight(demand) * (by_taken + drop + known.rounded[0]))


@tiny
def _bound_drop(nodes: c.Nodes, ask: c.Ask, demand: c.Demand, known: Known, row: int) -> float:
    """Return by how much fragments can shrink where only CPU is taken: typical pods that do not fit only lose more."""
    cpu = free.find_free_cpu(nodes, row) - ask.dim_amounts[0]
    if cpu >= known.node[row, k.NODE_MARK]:
        return 0.0
    return float(_find_weight(demand) * known.node_rates[row, k.RATE_DROP])


@tiny
def _find_weight(demand: c.Demand) -> float:
    return float(keel.FRAGMENT_WEIGHT * demand.rates[c.RATE_DEPARTURES])


@tiny
def _find_half_rate(known: Known, row: int, wanted: int) -> float:
    """Return the rate by pods that may fit no more, for a request of so many cards."""
    at = 0 if wanted <= 1 else 1 if wanted == 2 else 2 if wanted <= 4 else k.N_WANTED - 1
    return float(known.node_rates[row, k.RATE_HALF + at])


@tiny
def widen_bound(cost: float) -> float:
    """Widen a bound so that it holds although sums of floats depend on their order."""
    return float(cost - (abs(cost) * _RELATIVE + _ABSOLUTE)) if cost < NOWHERE else cost
