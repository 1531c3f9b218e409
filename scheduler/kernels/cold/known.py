"""Figures of a node before any pod is put there: found once after the node moved, for all kinds of pods.

Among them is by how much fragments can shrink at most, of which ``bounds`` makes a bound. Let a pod take t milli-GPU
of the idle I. For a typical pod of weight w

- that fits nowhere on the node already, all idle but the credit is lost, and the credit never grows: so the
  loss shrinks by w · t · (1 − credit) at most (``base``);
- that fits still, only what is taken of cards that it cannot use was lost before: w · t on those;
- that fits no more, at least half of what stays idle is lost, and before all of it but the usable U: the loss
  shrinks by w · (t + I − 2 U) / 2 at most. That is nothing where 2 U − I is t or more, else w · t / 2 (``half``)
  and w · (I − 2 U) / 2 where that is positive (``drop``).
"""

from __future__ import annotations

from scheduler.kernels._jit import kernel, part
from scheduler.kernels.devices import free
from scheduler.kernels.modes import carved, fragments
from scheduler.schema import card_parts
from scheduler.schema import cold as k
from scheduler.schema import columns as c
from scheduler.schema.cold import Known


@kernel
def refresh_node(
    nodes: c.Nodes,
    cards: c.Cards,
    demand: c.Demand,
    known: Known,
    pool: int,
    row: int,
    s: c.Scratch,
) -> None:
    """Bring the figures of a node's pool up to date. O(cards · (cards + typical pods))."""
    n = free.read_cards(nodes, cards, pool, row, s)
    known.node[row, k.NODE_IDLE] = free.sum_idle(s.states, n)
    known.node[row, k.NODE_MARK] = 0
    for rate in range(k.N_NODE_RATES):
        known.node_rates[row, rate] = 0.0
    _list_cards(nodes, cards, known, pool, row, s)
    if nodes.pools.carved[pool]:
        _measure_parts(nodes, cards, demand, known, pool, row)
    if demand.rates[c.RATE_DEPARTURES] != 0:
        fragments.count_cards(demand.keel, n, s)
        _find_shrinkage(nodes, demand, known, pool, row, s)
        _find_card_rates(cards, demand, known, nodes.pools.start[pool], row, s)
    known.fresh[row] = True


@part
def _list_cards(
    nodes: c.Nodes, cards: c.Cards, known: Known, pool: int, row: int, s: c.Scratch
) -> None:
    """List the open cards of a pool that differ for pods that ask for no card by its name."""
    start, found = nodes.pools.start[pool], 0
    most_cores, most_mib, most_room, even, one_kind = -1, -1, 0, 1, 1
    for j in range(nodes.pools.count[pool]):
        d = start + j
        if not free.is_open(cards, d):
            continue
        at = start
        while at < start + found and not _are_alike(cards, start + known.card[at, k.CARD_AT], d):
            at += 1
        if at < start + found:
            known.card[at, k.CARD_ALIKE] += 1
            continue
        cores = cards.total[c.CORES, d] - cards.used[c.CORES, d]
        mib = cards.total[c.MIB, d] - cards.used[c.MIB, d]
        room = min(s.free[0, j], s.free[1, j])
        known.card[at, k.CARD_AT], known.card[at, k.CARD_ALIKE] = j, 1
        known.card[at, k.CARD_CORES], known.card[at, k.CARD_MIB] = cores, mib
        known.card[at, k.CARD_ROOM] = room
        for figure in range(2):
            known.rooms[at, figure] = max(0, min(c.WHOLE, s.free[figure, j]))
        one_kind &= 1 if cards.total[c.SLOTS, d] - cards.used[c.SLOTS, d] > 1 else 0
        known.card_rates[at, k.CARD_FIRM] = known.card_rates[at, k.CARD_ONE] = 0.0
        most_cores, most_mib = max(most_cores, cores), max(most_mib, mib)
        most_room = max(most_room, room)
        first = start + known.card[start, k.CARD_AT]
        for figure in range(2):
            even &= 1 if cards.milli[figure, d] == cards.milli[figure, first] else 0
        one_kind &= 1 if cards.kind[d] == cards.kind[first] else 0
        found += 1
    if found > 0:
        first = start + known.card[start, k.CARD_AT]
        known.node[row, k.NODE_KIND] = cards.kind[first] if even & one_kind else -1
        known.node_rates[row, k.RATE_CORES] = cards.milli[c.CORES, first]
        known.node_rates[row, k.RATE_MIB] = cards.milli[c.MIB, first]
    known.node[row, k.NODE_OPEN], known.node[row, k.NODE_EVEN] = found, even
    known.node[row, k.NODE_CORES], known.node[row, k.NODE_MIB] = most_cores, most_mib
    known.node[row, k.NODE_ROOM] = most_room


@part
def _are_alike(cards: c.Cards, d: int, e: int) -> bool:
    return bool(
        cards.used[c.CORES, d] == cards.used[c.CORES, e]
        and cards.used[c.MIB, d] == cards.used[c.MIB, e]
        and cards.used[c.SLOTS, d] == cards.used[c.SLOTS, e]
        and cards.total[c.CORES, d] == cards.total[c.CORES, e]
        and cards.total[c.MIB, d] == cards.total[c.MIB, e]
        and cards.total[c.SLOTS, d] == cards.total[c.SLOTS, e]
        and cards.model[d] == cards.model[e]
        and cards.mode[d] == cards.mode[e]
        and cards.carving[d] == cards.carving[e]
        and cards.cut[d] == cards.cut[e]
    )


@part
def _measure_parts(
    nodes: c.Nodes, cards: c.Cards, demand: c.Demand, known: Known, pool: int, row: int
) -> None:
    """Measure what is lost at least by one part of each size; cards that are cut alike are one."""
    start, sizes = nodes.pools.start[pool], cards.carvings.sizes
    first = start + known.card[start, k.CARD_AT]
    carving = cards.carving[first] if known.node[row, k.NODE_OPEN] > 0 else 0
    has_all = sizes[carving, card_parts.SIZES_MAX - 1] == card_parts.NO_SIZE
    is_one = carving > 0 and has_all
    for size in range(card_parts.SIZES_MAX):
        known.parts[row, k.PARTS_LOSS + size] = k.NOWHERE
    known.parts[row, k.PARTS_TAKEN] = 0
    for at in range(start, start + known.node[row, k.NODE_OPEN]):
        d = start + known.card[at, k.CARD_AT]
        is_one &= cards.carving[d] == carving
        if not is_one:
            break
        for size in range(card_parts.SIZES_MAX):
            mib = sizes[carving, size]
            if mib == card_parts.NO_SIZE:
                break
            p, cost, taken = carved.find_best_part(cards, demand, d, mib, cards.cut[d])
            if p == c.NO_PART:
                break
            cost += demand.price[row] * taken
            at_size = k.PARTS_LOSS + size
            known.parts[row, at_size] = min(known.parts[row, at_size], cost)
            known.parts[row, k.PARTS_TAKEN] = max(known.parts[row, k.PARTS_TAKEN], taken)
    known.parts[row, k.PARTS_CARVING] = carving if is_one else -1


@part
def _find_shrinkage(
    nodes: c.Nodes, demand: c.Demand, known: Known, pool: int, row: int, s: c.Scratch
) -> None:
    typical, idle = demand.keel, known.node[row, k.NODE_IDLE]
    cpu = free.find_free_cpu(nodes, row)
    part = 1.0 / demand.rates[c.RATE_KEEL]
    base, drop, mark = 0.0, 0, 0
    for pod in range(typical.weight.size):
        weight = typical.weight[pod]
        # Of those that fit, for _by_card: their weight, and again where they may fit no more.
        s.fits_with[pod] = s.frag_with[pod] = 0
        if not fragments.fits(typical, row, cpu, pod, s.fits):
            credit = fragments.find_credit(typical, demand.close, max(0, cpu), pod, s.fits)
            base += weight * (1.0 - credit / (2.0 * c.PER_WHOLE))
            continue
        spare = idle - 2 * s.frag[pod]
        s.fits_with[pod] = weight
        s.frag_with[pod] = weight if spare < min(idle, c.WHOLE) else 0
        for wanted in range(k.N_WANTED):
            most = idle if wanted == k.N_WANTED - 1 else min(idle, c.WHOLE << wanted)
            known.node_rates[row, k.RATE_HALF + wanted] += (
                0.5 * part * weight if spare < most else 0.0
            )
        if spare < 0:
            drop -= weight * spare
            mark = max(mark, typical.cpu[pod])
    known.node[row, k.NODE_MARK] = mark
    known.node_rates[row, k.RATE_DROP] = 0.5 * part * drop
    known.node_rates[row, k.RATE_BASE] = part * base
    if not nodes.pools.managed[pool]:
        unusable = _sum_unusable(typical, 0, c.WHOLE, c.WHOLE, s)[0]
        known.node_rates[row, k.RATE_BASE] += part * unusable


@part
def _find_card_rates(
    cards: c.Cards, demand: c.Demand, known: Known, start: int, row: int, s: c.Scratch
) -> None:
    rates = known.card_rates
    part, base = 1.0 / demand.rates[c.RATE_KEEL], known.node_rates[row, k.RATE_BASE]
    most_firm, most_one = 0.0, 0.0
    for at in range(start, start + known.node[row, k.NODE_OPEN]):
        j = known.card[at, k.CARD_AT]
        kind = cards.kind[start + j]
        unusable, half = _sum_unusable(demand.keel, kind, s.free[0, j], s.free[1, j], s)
        rates[at, k.CARD_FIRM] = base + part * unusable
        rates[at, k.CARD_ONE] = base + part * (unusable + 0.5 * half)
        most_firm, most_one = (
            max(most_firm, rates[at, k.CARD_FIRM]),
            max(most_one, rates[at, k.CARD_ONE]),
        )
    known.node_rates[row, k.RATE_FIRM], known.node_rates[row, k.RATE_ONE] = most_firm, most_one


@part
def _sum_unusable(
    typical: c.Typical, kind: int, cores: int, mib: int, s: c.Scratch
) -> tuple[int, int]:
    """Sum the weight of the pods that fit and cannot use a card, and of those that can and may fit no more."""
    unusable, half = 0, 0
    for pod in range(typical.weight.size):
        usable = (cores >= typical.cores[kind, pod]) & (mib >= typical.mib[kind, pod])
        unusable += 0 if usable else s.fits_with[pod]
        half += s.frag_with[pod] if usable else 0
    return unusable, half
