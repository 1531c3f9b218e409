"""The modes that look at every card of a node: which cards the pod gets, and what that is worth.

``place_pod`` does both, for ``keel`` and for the published policies. A pod of which one container asks cards
gets them by the mode: ``keel`` and ``fgd`` try every different card for a share, all others take the card
that is left with the least; whole cards are all alike, the lowest index first. Pods that want more of the
choice (several containers with cards, numa, a GPU policy of their own) walk as the driver does.
"""

from __future__ import annotations

from scheduler.kernels._jit import part, tiny
from scheduler.kernels.devices import choose, free, gpus, pools
from scheduler.kernels.modes import carved, fragments, keel, places, published
from scheduler.schema import columns as c
from scheduler.schema.places import ROOM_ASKED, STEP, Places

# Ask.mode.aware.
KEEL, FGD, BEST_FIT, FIRST_FIT, DOT_PRODUCT, PACKING, CLUSTERING, RANDOM = range(8)
_FULL_POINTS = 100_000
_MILLI = 1000


@part
def place_pod(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, row: int, s: c.Scratch
) -> int:
    """Return the milli-points 0..100,000 of the pod on a node, -1 when the cards do not suffice.

    Reads all but the scratch; leaves the picks of the pod there as ``choose.choose_devices`` does.
    O(cards · (cards + typical shapes)).
    """
    mode, pool = ask.prefers.mode.aware, pools.find_pool(nodes, ask, row)
    s.second[0] = 0
    if mode == KEEL and is_whole(nodes, demand, row):
        return _place_whole(nodes, cards, ask, demand, row, s)
    n = free.read_cards(nodes, cards, pool, row, s)
    idle, cpu = free.sum_idle(s.states, n), free.find_free_cpu(nodes, row)
    asks = ask.containers.shape[1] > 0
    s.was[c.WAS_IDLE], s.was[c.WAS_CPU], s.was[c.WAS_MEASURE] = idle, cpu, 0
    if mode == KEEL:
        s.served[0], s.served[1] = keel.find_served(nodes, ask, demand, row)
        if asks:
            s.second[0] = places.score_second(
                ask.prefers.mode.objective,
                free.find_used_share(nodes, pool, row, idle),
                ask.prefers.mode.unit,
            )
    if _counts_fragments(ask, demand):
        fragments.count_cards(_get_typical(ask, demand), n, s)
        s.was[c.WAS_MEASURE] = _measure_fragments(ask, demand, row, cpu, idle, (s.fits, s.frag))
    s.tried[0] = 0
    if asks and nodes.pools.managed[pool]:
        s.n_picks[0] = pick_cards(nodes, cards, ask, demand, row, s)
        if s.n_picks[0] < 0:
            return -1
    if mode == KEEL:
        if s.tried[0] == 0:
            s.cost[0] = _find_loss(nodes, cards, ask, demand, row, n, s)
        return keel.score_loss(s.cost[0])
    if mode == FIRST_FIT:
        return 0
    if mode == RANDOM:
        lot = published.draw_lot(ask.rules.draw, nodes.rank[row])
        return lot % (_FULL_POINTS + 1)
    if not asks and mode in (PACKING, CLUSTERING):
        return 0
    if mode == CLUSTERING:
        return published.score_clustering(nodes, ask, demand, row, idle) * _MILLI
    if mode == PACKING:
        wanted = ask.rules.whole
        return published.score_packing(nodes, pool, row, n, s, wanted) * _MILLI
    cpu_asked = ask.dim_amounts[0]
    rest = idle - free.sum_taken(nodes, cards, ask, row, n, s)
    if mode == FGD:
        _count_anew(nodes, cards, ask, demand.fgd, row, n, s)
        measure = _measure_fragments(
            ask, demand, row, cpu - cpu_asked, rest, (s.fits_with, s.frag_with)
        )
        points = published.score_fgd(s.was[c.WAS_MEASURE], measure, demand.rates[c.RATE_FGD])
    elif mode == BEST_FIT:
        points = published.score_best_fit(demand, cpu - cpu_asked, rest)
    else:
        points = published.score_dot_product(demand, cpu, cpu_asked, idle, idle - rest)
    return max(0, points) * _MILLI


@tiny
def is_whole(nodes: c.Nodes, demand: c.Demand, row: int) -> bool:
    """Whether ``keel`` judges a node as a whole, instead of its devices."""
    return bool(not nodes.has_gpu[row] or demand.single.resources.size > 0)


@tiny
def get_places(nodes: c.Nodes, demand: c.Demand, row: int) -> Places:
    """Return the places of nodes like this one."""
    return demand.single if nodes.has_gpu[row] else demand.places


@part
def _place_whole(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, row: int, s: c.Scratch
) -> int:
    pool = pools.find_pool(nodes, ask, row)
    if pools.is_by_cards(nodes, ask, row):
        s.tried[0] = 0
        if nodes.pools.count[pool] > 1:
            free.read_cards(nodes, cards, pool, row, s)
        s.n_picks[0] = pick_cards(nodes, cards, ask, demand, row, s)
        if s.n_picks[0] < 0:
            return -1
    found = get_places(nodes, demand, row)
    cost, was_used = _find_whole_loss(nodes, ask, found, row, s)
    fullness = places.measure_fullness(nodes, row, was_used)
    s.second[0] = places.score_second(ask.prefers.mode.objective, fullness, ask.prefers.mode.unit)
    return places.score_loss(cost, found.weights[STEP])


@part
def _find_whole_loss(
    nodes: c.Nodes, ask: c.Ask, found: Places, row: int, s: c.Scratch
) -> tuple[float, float]:
    """Return what a node loses as a whole when the pod has what stands in ``s.peak``, and the share that was in use."""
    pool = pools.find_pool(nodes, ask, row)
    taken = (0, 0)
    if pools.is_by_cards(nodes, ask, row):
        for j in range(nodes.pools.count[pool]):
            taken = (taken[0] + s.peak[c.CORES, j], taken[1] + s.peak[c.MIB, j])
    elif ask.containers.shape[1] > 0:
        taken = (ask.rules.whole * pools.WHOLE_CORES, ask.rules.whole * pools.WHOLE_CORES)
    places.read_node(nodes, found, pool, row, s)
    was, was_used = places.find_held(found, s), places.find_used_share(found, s)
    places.write_ask(ask, found, taken, s, ROOM_ASKED)
    places.take_ask(found, s, ROOM_ASKED)
    cost = (
        was
        - places.find_held(found, s)
        + places.find_other_loss(found, ask.prefers.mode.objective, was_used, s)
    )
    return cost, was_used


@part
def find_loss(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, told: c.Demand, row: int, s: c.Scratch
) -> float:
    """Return what ``keel`` loses by the tables ``told``, with what ``place_pod`` has left in the scratch."""
    if is_whole(nodes, told, row):
        return _find_whole_loss(nodes, ask, get_places(nodes, told, row), row, s)[0]
    n = free.read_cards(nodes, cards, pools.find_pool(nodes, ask, row), row, s)
    return _find_loss(nodes, cards, ask, told, row, n, s)


@part
def pick_cards(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, row: int, s: c.Scratch
) -> int:
    """Choose the pod's cards on a node with cards; return the number of picks, or -1."""
    pool = pools.find_pool(nodes, ask, row)
    chooser = nodes.pools.chooser[pool]
    slot = ask.rules.only
    # The rule of TOGETHER is about several containers, for which the driver's walk chooses anyway.
    is_free = chooser in (c.WALK, c.TOGETHER) or _is_free_for_one(ask, slot, chooser)
    is_carved = nodes.pools.carved[pool]
    # Of the modes only ``keel`` knows parts of cards.
    if ask.rules.walk or not is_free or (is_carved and ask.prefers.mode.aware != KEEL):
        return choose.choose_devices(nodes, cards, ask, row, s)
    start = nodes.pools.start[pool]
    if is_carved:
        count, price = nodes.pools.count[pool], demand.price[row]
        return carved.pick_parts(cards, ask, demand, start, count, price, s)
    passing = 0
    gpus.begin_choice(cards, start, nodes.pools.count[pool], s)
    for j in range(nodes.pools.count[pool]):
        if gpus.accepts_card(cards, ask, slot, start, j, 0, s):
            s.order[passing] = j
            passing += 1
    wanted = ask.containers[c.N_CARDS, slot]
    if passing < wanted:
        return -1
    # A node that is judged as a whole loses alike by all its cards.
    tries = ask.prefers.mode.aware == FGD or (
        ask.prefers.mode.aware == KEEL and not is_whole(nodes, demand, row)
    )
    if tries and wanted == 1 and passing > 1:
        _try_each(nodes, cards, ask, demand, row, passing, s)
    else:
        _take_tightest(ask, passing, wanted, s)
    for p in range(wanted):
        j = s.order[p]
        _give_card(cards, ask, slot, start, j, s)
        s.picks[p] = start + j
        s.pick_mib[p], s.pick_cores[p] = s.peak[c.MIB, j], s.peak[c.CORES, j]
        s.pick_part[p] = c.NO_PART
        s.pick_slot[p] = slot
    return int(wanted)


@part
def _is_free_for_one(ask: c.Ask, slot: int, chooser: int) -> bool:
    """Whether the rule of a chooser says nothing of the one card of a container."""
    if slot < 0 or ask.containers[c.N_CARDS, slot] != 1:
        return False
    if chooser == c.ZONES:
        # The rule is about whole cards, and about pods without cores.
        cores = ask.containers[c.ASK_CORES, slot]
        return bool(cores < pools.WHOLE_CORES and not ask.rules.coreless)
    return bool(chooser in (c.NETWORKS, c.PAIRS))


@part
def _give_card(cards: c.Cards, ask: c.Ask, slot: int, start: int, j: int, s: c.Scratch) -> None:
    s.peak[c.CORES, j] = gpus.find_cores(cards, ask.containers, slot, start + j)
    s.peak[c.MIB, j] = gpus.find_mib_asked(cards, ask, slot, start + j)
    s.peak[c.SLOTS, j] = 1


@part
def _take_tightest(ask: c.Ask, passing: int, wanted: int, s: c.Scratch) -> None:
    """Move the wanted cards with the least idle to the front of ``s.order``, lowest index on ties."""
    for p in range(wanted):
        best = p
        for q in range(p + 1, passing):
            if _rank_card(ask, s, s.order[q]) < _rank_card(ask, s, s.order[best]):
                best = q
        # Move, not swap: those that stay behind keep their order.
        moving = s.order[best]
        for q in range(best, p, -1):
            s.order[q] = s.order[q - 1]
        s.order[p] = moving


@part
def _rank_card(ask: c.Ask, s: c.Scratch, j: int) -> int:
    if ask.prefers.mode.aware == RANDOM:
        return published.draw_lot(ask.rules.draw, -1 - j)
    return int(min(s.free[0, j], s.free[1, j]))


@part
def _try_each(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    demand: c.Demand,
    row: int,
    passing: int,
    s: c.Scratch,
) -> None:
    """Move the card that costs least to the front of ``s.order``; of like cards only the first is tried."""
    slot, pool = ask.rules.only, pools.find_pool(nodes, ask, row)
    start = nodes.pools.start[pool]
    best, least, tried = -1, 0.0, 0
    for p in range(passing):
        j = s.order[p]
        alike = False
        for q in range(tried):
            alike |= _are_alike(cards, start, s.order[q], j, s)
        if alike:
            continue
        # Places of cards that were passed over are free: those tried stand at the front.
        s.order[tried] = j
        tried += 1
        _give_card(cards, ask, slot, start, j, s)
        now = free.read_card_with_pod(cards, start, j, s)
        gone = free.find_usable(s.free[0, j], s.free[1, j]) - free.find_usable(now[0], now[1])
        idle, cpu = s.was[c.WAS_IDLE] - gone, s.was[c.WAS_CPU] - ask.dim_amounts[0]
        measure = 0
        if _counts_fragments(ask, demand):
            typical = _get_typical(ask, demand)
            fragments.keep_counts(typical, s)
            was = (s.free[0, j], s.free[1, j])
            fragments.change_counts(typical, cards.kind[start + j], 1, was, now, s)
            measure = _measure_fragments(ask, demand, row, cpu, idle, (s.fits_with, s.frag_with))
        if ask.prefers.mode.aware == KEEL:
            cost = keel.find_loss(demand, row, s, idle, cpu, measure)
            cost += _find_cut(cards, ask, demand, start, j, s)
        else:
            # As published: the whole score, so that cards tie within a step and the first is taken.
            points = published.score_fgd(s.was[c.WAS_MEASURE], measure, demand.rates[c.RATE_FGD])
            cost = -float(points)
        for i in range(3):
            s.peak[i, j] = 0
        if best < 0 or cost < least:
            best, least = j, cost
    s.order[0], s.tried[0], s.cost[0] = best, tried, least


@part
def _are_alike(cards: c.Cards, start: int, i: int, j: int, s: c.Scratch) -> bool:
    """Whether two cards of a node are left alike by any pod."""
    return bool(
        s.free[0, i] == s.free[0, j]
        and s.free[1, i] == s.free[1, j]
        and cards.milli[0, start + i] == cards.milli[0, start + j]
        and cards.milli[1, start + i] == cards.milli[1, start + j]
        and _is_last(cards, start + i) == _is_last(cards, start + j)
    )


@part
def _is_last(cards: c.Cards, d: int) -> bool:
    """Whether a card has room for one more sharer only: with the pod it is closed."""
    return bool(cards.total[c.SLOTS, d] - cards.used[c.SLOTS, d] == 1)


@part
def _find_loss(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    demand: c.Demand,
    row: int,
    n: int,
    s: c.Scratch,
) -> float:
    """Return what ``keel`` loses when the pod has what stands in ``s.peak``."""
    idle = s.was[c.WAS_IDLE] - free.sum_taken(nodes, cards, ask, row, n, s)
    cpu = s.was[c.WAS_CPU] - ask.dim_amounts[0]
    measure = 0
    if _counts_fragments(ask, demand):
        _count_anew(nodes, cards, ask, demand.keel, row, n, s)
        measure = _measure_fragments(ask, demand, row, cpu, idle, (s.fits_with, s.frag_with))
    cost = keel.find_loss(demand, row, s, idle, cpu, measure)
    if pools.is_by_cards(nodes, ask, row):
        pool = pools.find_pool(nodes, ask, row)
        start = nodes.pools.start[pool]
        for j in range(nodes.pools.count[pool]):
            if s.peak[c.SLOTS, j] > 0:
                cost += _find_cut(cards, ask, demand, start, j, s)
    return float(cost)


@part
def _find_cut(
    cards: c.Cards, ask: c.Ask, demand: c.Demand, start: int, j: int, s: c.Scratch
) -> float:
    if cards.carving[start + j] > 0:
        return carved.find_loss(cards, ask, demand, start, j, s)
    now = free.read_card_with_pod(cards, start, j, s)
    was, rest = min(s.free[0, j], s.free[1, j]), min(now[0], now[1])
    held = s.peak[c.CORES, j], s.peak[c.MIB, j]
    return keel.find_cut(cards, demand.value[cards.kind[start + j]], start + j, held, was, rest)


@part
def _count_anew(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    typical: c.Typical,
    row: int,
    n: int,
    s: c.Scratch,
) -> None:
    """Count for typical pods what changes when the pod has what stands in ``s.peak``."""
    fragments.keep_counts(typical, s)
    if ask.containers.shape[1] == 0:
        return
    pool = pools.find_pool(nodes, ask, row)
    if not nodes.pools.managed[pool]:
        whole = min(ask.rules.whole, s.states[2, 0]) if n > 0 else 0
        fragments.change_counts(typical, s.states[3, 0], whole, (c.WHOLE, c.WHOLE), (0, 0), s)
        return
    start = nodes.pools.start[pool]
    for j in range(nodes.pools.count[pool]):
        if s.peak[c.SLOTS, j] > 0:
            now = free.read_card_with_pod(cards, start, j, s)
            was = (s.free[0, j], s.free[1, j])
            fragments.change_counts(typical, cards.kind[start + j], 1, was, now, s)


@tiny
def _counts_fragments(ask: c.Ask, demand: c.Demand) -> bool:
    """Whether fragments count."""
    if ask.prefers.mode.aware == KEEL:
        return bool(demand.rates[c.RATE_DEPARTURES] != 0)
    return bool(ask.prefers.mode.aware == FGD)


@tiny
def _get_typical(ask: c.Ask, demand: c.Demand) -> c.Typical:
    return demand.keel if ask.prefers.mode.aware == KEEL else demand.fgd


@part
def _measure_fragments(
    ask: c.Ask, demand: c.Demand, row: int, cpu: int, idle: int, counted: tuple[c.Ints, c.Ints]
) -> int:
    credit = ask.prefers.mode.aware == KEEL
    typical = _get_typical(ask, demand)
    return fragments.sum_fragments(typical, demand.close, row, cpu, idle, counted, credit)
