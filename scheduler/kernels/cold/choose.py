"""Choose a node for a pod of a kind that has no board: the one that scoring all of them would find.

The highest key wins on the best tier, ties go to the lowest rank: as on a board of a shape without
normalised preferences. Of nodes that are alike one stands for all until the class could win. What cannot
beat the best that was found so far is passed over, by a rough bound, then by one of its cards, and only then
scored. A look at every so many nodes comes first, so that there is something good to beat.
"""

from __future__ import annotations

from scheduler.kernels import fit, judging, parts, place
from scheduler.kernels._jit import inlined, kernel, part, tiny
from scheduler.kernels.cold import bounds, classes, known
from scheduler.kernels.devices import claim_memo, pools
from scheduler.kernels.modes import aware, keel, places
from scheduler.schema import cold as k
from scheduler.schema import columns as c
from scheduler.schema.cold import (
    AFTER,
    BEST_KEY,
    BEST_RANK,
    BEST_ROW,
    BEST_STATIC,
    N_CLASSES,
    Cold,
    Known,
)
from scheduler.schema.places import ROOM_KEPT, STEP, Places
from scheduler.schema.world import Run, World

# Of so many nodes one is looked at first.
_STRIDE = 32
_MILLI, _WHOLE_PERCENT = 1000, 100
_FEW = 8


@kernel
def place_one(world: World, ask: c.Ask, cold: Cold, run: Run) -> bool:
    """Place a run of one pod; return whether it fits anywhere.

    Reads ask and demand; writes ``run``, ``cold`` and the tables. ``cold`` is of the family that the pod asks, and
    must know what every node was before, but for the rows that moved, which it tells. O(N) for amounts; cards and
    fragments of few.
    """
    tables = world.tables
    classes.update_classes(tables, world.demand, cold.classes, ask.family, cold.moved)
    claim_memo.open_memo(ask.claims, world.scratch.claims)
    for i in range(cold.moved.size):
        cold.known.fresh[cold.moved[i]] = False
    _prepare_pod(ask, world.demand, cold, world.scratch)
    # Nodes with GPUs come second for pods that ask none: only when there is no other.
    first, last = (0, 1) if ask.rules.avoid_gpu else (-1, -1)
    for tier in range(first, last + 1):
        _look_at_classes(world, ask, cold, tier)
        if cold.best[BEST_ROW] >= 0:
            break
    claim_memo.close_memo(world.scratch.claims)
    if cold.best[BEST_ROW] < 0:
        return False
    only = run.priority.size - 1
    run.row[only] = cold.best[BEST_ROW]
    return place.put_pod(world, ask, run, only)


@part
def _prepare_pod(ask: c.Ask, demand: c.Demand, cold: Cold, s: c.Scratch) -> None:
    places.write_ask(ask, demand.places, (0, 0), s, ROOM_KEPT)
    cold.best[BEST_KEY], cold.best[BEST_RANK], cold.best[BEST_ROW] = -1, 0, -1
    most = 0
    for i in range(cold.weights.size):
        highest = 0
        for row in range(cold.refused.size):
            highest = max(highest, cold.scores[i, row])
        most += cold.weights[i] * highest
    cold.best[BEST_STATIC] = ask.prefers.mode.unit * _MILLI * most
    weight = 0
    for pod in range(demand.keel.weight.size):
        weight += demand.keel.weight[pod]
    cold.known.rounded[0] = weight / demand.rates[c.RATE_KEEL]


@inlined
def _look_at_classes(world: World, ask: c.Ask, cold: Cold, tier: int) -> None:
    """Look at all classes for a better node: those without GPUs (tier 0), with them (1), or all (-1)."""
    nodes, demand, s = world.tables.nodes, world.demand, world.scratch
    bounded = ask.prefers.mode.aware == aware.KEEL and not ask.rules.walk
    lanes = 0
    step = _STRIDE if bounded else 1
    while step > 0:
        for number in range(0, cold.classes.counts[N_CLASSES], step):
            row = cold.classes.head[number]
            if row < 0 or (cold.classes.near[AFTER, row] < 0 and cold.refused[row] != 0):
                continue
            if (tier >= 0 and nodes.has_gpu[row] != (tier > 0)) or not fit.fits(nodes, ask, row):
                continue
            if judging.judge_claims(world.tables, ask, row, s, parts.scores_claims(ask)) != 0:
                continue
            if not parts.is_aware(ask):
                if step == 1 and parts.weigh_row(world, ask, row, lanes) == parts.IN_LANE:
                    lanes += 1
                    if lanes == c.BLOCK:
                        lanes = _score_lanes(nodes, ask, cold, s, lanes)
                continue
            if bounded and step == 1 and number % _STRIDE == 0:
                continue
            if bounded and not nodes.has_gpu[row]:
                _consider_class(
                    nodes, ask, cold, row, _weigh_whole(nodes, ask, demand, cold, row, s)
                )
                continue
            # No bound knows what devices for claims lose beside cards.
            if bounded and not judging.has_claims(ask) and not _may_win(world, ask, cold, row):
                continue
            _consider_class(nodes, ask, cold, row, parts.weigh_cards(world, ask, row))
        step = 1 if step > 1 else 0
    _score_lanes(nodes, ask, cold, s, lanes)


@inlined
def _may_win(world: World, ask: c.Ask, cold: Cold, row: int) -> bool:
    """Whether bounds leave it open that a node of the row's class is better than the best so far."""
    nodes, cards, demand = world.tables.nodes, world.tables.cards, world.demand
    if aware.is_whole(nodes, demand, row):
        # Of those with a device each there is no bound: they are looked at one by one, class by class.
        return True
    pool = pools.find_pool(nodes, ask, row)
    if not cold.known.fresh[row]:
        known.refresh_node(nodes, cards, demand, cold.known, pool, row, world.scratch)
    by_cards = pools.is_by_cards(nodes, ask, row)
    if by_cards and nodes.pools.carved[pool]:
        cost = bounds.bound_parts(nodes, cards, ask, demand, cold.known, row)
        return not (cost >= bounds.NOWHERE or _loses(nodes, ask, cold, row, _bound_part(ask, cost)))
    if by_cards and is_plain(ask, cold.known, row):
        cost = bounds.bound_rooms(nodes, cards, ask, demand, cold.known, row)
    else:
        cost = bounds.bound_node(nodes, cards, ask, demand, cold.known, row)
    if cost >= bounds.NOWHERE or _loses(nodes, ask, cold, row, _bound_part(ask, cost)):
        return False
    if not by_cards:
        return True
    cost = bounds.bound_cards(nodes, cards, ask, demand, cold.known, row)
    return not (cost >= bounds.NOWHERE or _loses(nodes, ask, cold, row, _bound_part(ask, cost)))


@tiny
def _bound_part(ask: c.Ask, cost: float) -> int:
    """Return the highest part that a loss may have: with the most that a second objective adds, which pods without devices lack."""
    most = keel.score_loss(cost) * ask.prefers.mode.weight * ask.prefers.mode.unit
    is_open = ask.prefers.mode.objective != c.NO_OBJECTIVE and ask.containers.shape[1] > 0
    return int(most + ask.prefers.mode.unit - 1 if is_open else most)


@inlined
def _weigh_whole(
    nodes: c.Nodes, ask: c.Ask, demand: c.Demand, cold: Cold, row: int, s: c.Scratch
) -> int:
    """As ``parts.weigh_row`` for a node without devices whose value before is known; -1 where a bound tells that it loses."""
    found, objective = demand.places, ask.prefers.mode.objective
    if not cold.known.fresh[row]:
        _know_whole(nodes, found, cold.known, row, s)
    kept = cold.known.whole
    for b in range(found.resources.size):
        for figure in range(3):
            s.room[figure, b] = kept[row, k.WHOLE_AT + 3 * b + figure]
    places.take_ask(found, s, ROOM_KEPT)
    was = kept[row, k.WHOLE_HELD]
    rest = places.find_other_loss(found, objective, kept[row, k.WHOLE_USED], s)
    second = places.score_second(objective, kept[row, k.WHOLE_FULL], ask.prefers.mode.unit)
    # A bound takes as long as a few typical pods.
    if found.worth.size > _FEW:
        most = (
            _score_loss(ask, found, bounds.widen_bound(was - places.bound_held(found, s) + rest), s)
            + second
        )
        if _loses(nodes, ask, cold, row, most):
            return -1
    return _score_loss(ask, found, was - places.find_held(found, s) + rest, s) + second


@part
def _know_whole(nodes: c.Nodes, found: Places, known: Known, row: int, s: c.Scratch) -> None:
    """Keep the figures of a node without devices until it moves: they are the same for all kinds of pods."""
    places.read_node(nodes, found, pools.find_first(nodes, row), row, s)
    used = places.find_used_share(found, s)
    known.whole[row, k.WHOLE_HELD] = places.find_held(found, s)
    known.whole[row, k.WHOLE_USED] = used
    known.whole[row, k.WHOLE_FULL] = places.measure_fullness(nodes, row, used)
    for b in range(found.resources.size):
        for figure in range(3):
            known.whole[row, k.WHOLE_AT + 3 * b + figure] = s.room[figure, b]
    known.fresh[row] = True


@tiny
def _score_loss(ask: c.Ask, found: Places, cost: float, s: c.Scratch) -> int:
    """Return the part of a loss, without the second objective."""
    points = parts.add_claims(ask, places.score_loss(cost, found.weights[STEP]), s)
    return int(points * ask.prefers.mode.weight * ask.prefers.mode.unit)


@tiny
def is_plain(ask: c.Ask, known: Known, row: int) -> bool:
    """Whether ``bounds.bound_rooms`` holds on a node with cards and is closer than ``bound_node``, as for less than a card."""
    slot = ask.rules.only
    return bool(
        ask.containers[c.N_CARDS, slot] == 1
        and ask.containers[c.ASK_PERCENT, slot] < _WHOLE_PERCENT
        and known.node[row, k.NODE_KIND] >= 0
    )


@tiny
def _loses(nodes: c.Nodes, ask: c.Ask, cold: Cold, row: int, part: int) -> bool:
    """Whether no node of the row's class can be the best, if its part is at most so much."""
    if cold.classes.near[AFTER, row] >= 0:
        return bool(part + cold.best[BEST_STATIC] < cold.best[BEST_KEY])
    key = part + _sum_static(ask, cold, row)
    if key != cold.best[BEST_KEY]:
        return bool(key < cold.best[BEST_KEY])
    return bool(nodes.rank[row] > cold.best[BEST_RANK])


@part
def _consider_class(nodes: c.Nodes, ask: c.Ask, cold: Cold, row: int, part: int) -> None:
    """Take the best node of a class whose part this is (-1: the pod does not fit) if it is the best of all so far."""
    if part < 0 or _loses(nodes, ask, cold, row, part):
        return
    while row >= 0:
        if cold.refused[row] == 0:
            key = part + _sum_static(ask, cold, row)
            if key > cold.best[BEST_KEY] or (
                key == cold.best[BEST_KEY] and nodes.rank[row] < cold.best[BEST_RANK]
            ):
                cold.best[BEST_KEY], cold.best[BEST_RANK] = key, nodes.rank[row]
                cold.best[BEST_ROW] = row
        row = cold.classes.near[AFTER, row]


@tiny
def _sum_static(ask: c.Ask, cold: Cold, row: int) -> int:
    """Sum what static scores add to the key of a row."""
    points = 0
    for i in range(cold.weights.size):
        points += cold.weights[i] * cold.scores[i, row]
    return int(ask.prefers.mode.unit * _MILLI * points)


@part
def _score_lanes(nodes: c.Nodes, ask: c.Ask, cold: Cold, s: c.Scratch, lanes: int) -> int:
    """Score the nodes in the lanes; return how many lanes are taken then: none."""
    parts.weigh_block(nodes, ask, s, lanes)
    for lane in range(lanes):
        _consider_class(nodes, ask, cold, s.rows[lane], s.points[lane])
    return 0
