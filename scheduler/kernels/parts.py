"""The mode's term of a pod on a node: card by card, or block by block of nodes for modes that know no cards.

A part is the mode's weight times its milli-points (unit 1), or the float32 node score of a node policy in steps, scaled
so that its range 0..30 weighs as much as a mode's 0..100,000: the unit is how many steps 30 are, which is 30 · 2^26
unless weights or what vendors add are so large that keys would overflow. The part of kube-scheduler's sum has its weights in it.

Where cards are chosen by their links, a mode has up to 100,000 milli-points more for them; of nodes with the same score of a
node policy the one with the better links comes first.
"""

from __future__ import annotations

import numpy as np

from scheduler.kernels import judging
from scheduler.kernels._jit import inlined, kernel, part, tiny
from scheduler.kernels.devices import asks, choose, gpus, linked, pools, vendor_scores
from scheduler.kernels.modes import aware, keel, kube, lambda_g, score
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema.world import World

# What a key has room for below the tier, see ``board``.
TIER = 1 << 60
# The highest node score.
POLICY_MOST = 30
_POINTS = 100_000
# See ``weigh_row``.
IN_LANE = -2


@part
def is_aware(ask: c.Ask) -> bool:
    """Whether the pod is judged by a mode that knows cards."""
    return bool(ask.prefers.mode.aware >= 0)


@tiny
def scores_claims(ask: c.Ask) -> bool:
    """Whether the score of a node depends on the devices that claims of the pod would get there."""
    if not judging.has_claims(ask) or _are_counted(ask):
        return False
    return bool(ask.prefers.mode.aware == aware.KEEL or is_by_units(ask))


@part
def _are_counted(ask: c.Ask) -> bool:
    """Whether all devices of claims stand for resources by which nodes have GPUs, so that the mode counts them already."""
    if ask.containers.shape[1] == 0:
        return False
    for leaf in range(ask.claims.leaves.shape[0]):
        if ask.claims.leaves[leaf, d.LEAF_RESOURCE] < 0:
            return False
    return True


@tiny
def is_by_units(ask: c.Ask) -> bool:
    """Whether devices of claims stand in the place of cards in the score of a node."""
    if not judging.has_claims(ask) or ask.containers.shape[1] > 0:
        return False
    return bool(ask.prefers.mode.aware < 0 and ask.prefers.mode.blind != score.KUBE)


@part
def add_claims(ask: c.Ask, points: int, s: c.Scratch) -> int:
    """Add what the devices for claims lose to the points of a mode that knows cards: it counts as a loss of cards does."""
    if scores_claims(ask):
        points += keel.score_loss(s.claims.figures[d.FIGURE_LOSS]) - keel.MIDDLE_POINTS
        points = max(0, min(_POINTS, points))
    return int(points)


@kernel
def weigh_cards(world: World, ask: c.Ask, row: int) -> int:
    """Return the part of a pod that is judged card by card, -1 where the cards do not suffice."""
    nodes, cards, s = world.tables.nodes, world.tables.cards, world.scratch
    if ask.rules.linked:
        linked.clear_pairs(s)
    points = aware.place_pod(nodes, cards, ask, world.demand, row, s)
    if points >= 0:
        points = add_claims(ask, points, s)
    if points >= 0 and ask.rules.linked:
        points += linked.score_pairs(s)
    return int(
        points * ask.prefers.mode.weight * ask.prefers.mode.unit + s.second[0]
        if points >= 0
        else -1
    )


@kernel
def find_loss(world: World, ask: c.Ask, told: c.Demand, row: int) -> float:
    """Return what a pod of mode ``keel`` loses on a node by the tables ``told``, with the cards that it gets by its own tables.

    Losses are linear in the figures of tables. So a table with all figures but one at 0 gives the share of that one.
    """
    if weigh_cards(world, ask, row) < 0:
        return np.nan
    return aware.find_loss(world.tables.nodes, world.tables.cards, ask, told, row, world.scratch)


@inlined
def choose_cards(world: World, ask: c.Ask, row: int) -> int:
    """Pick the pod's cards on a node with cards, by its mode; return the number of picks, or -1."""
    if not is_aware(ask):
        return choose.choose_devices(
            world.tables.nodes, world.tables.cards, ask, row, world.scratch
        )
    return int(world.scratch.n_picks[0] if weigh_cards(world, ask, row) >= 0 else -1)


@part
def _ask_cards(tables: c.Tables, ask: c.Ask, row: int, s: c.Scratch, lane: int) -> bool:
    """Whether there are cards for the pod; if so, write to the lane what the pod takes of GPUs."""
    nodes, cards = tables.nodes, tables.cards
    gpu_cores, gpu_mib = 0.0, 0.0
    if is_by_units(ask):
        s.choice.units[0, lane] = s.claims.figures[d.FIGURE_UNITS]
        s.choice.units[1, lane] = s.claims.figures[d.FIGURE_USED]
        gpu_cores = s.claims.figures[d.FIGURE_TAKEN] * c.WHOLE
    s.choice.vendor[lane], s.choice.links[lane] = 0.0, 0
    if ask.containers.shape[1] > 0:
        pool = pools.find_pool(nodes, ask, row)
        if nodes.pools.managed[pool]:
            n_picks = choose.choose_devices(nodes, cards, ask, row, s)
            if n_picks < 0:
                return False
            if ask.rules.linked:
                s.choice.links[lane] = linked.score_pairs(s)
            if ask.prefers.mode.scorer > 0:
                is_spread = ask.prefers.mode.blind == score.NODE_SPREAD
                s.choice.vendor[lane] = vendor_scores.score_choice(
                    nodes, cards, ask, row, n_picks, is_spread, s
                )
            for j in range(nodes.pools.count[pool]):
                gpu_cores += s.peak[c.CORES, j]
                gpu_mib += s.peak[c.MIB, j]
        else:
            gpu_cores, gpu_mib = pools.measure_devices(nodes, pool, ask.rules.whole)
    s.ask[2, lane] = gpu_cores
    s.ask[3, lane] = gpu_mib
    return True


@part
def weigh_row(world: World, ask: c.Ask, row: int, lane: int) -> int:
    """Return the part of a pod on a row where its amounts fit.

    It is -1 where cards do not suffice, and ``IN_LANE`` where the row is to be scored with others, in this lane. The
    devices of further families only have to suffice.
    """
    tables, s, found = world.tables, world.scratch, -1
    if asks.prepare_choice(tables.nodes, tables.cards, ask, row, s):
        if is_aware(ask):
            found = weigh_cards(world, ask, row)
        elif _ask_cards(tables, ask, row, s, lane):
            s.rows[lane] = row
            found = IN_LANE
    asks.end_choice(s)
    return int(found)


@part
def _fill_lanes(nodes: c.Nodes, ask: c.Ask, s: c.Scratch, lanes: int) -> None:
    """Write the figures of the rows to the lanes, dimension by dimension, as they lie in memory."""
    for i in range(c.N_DIMS):
        r = ask.prefers.dims[i]
        if r >= 0:
            for lane in range(lanes):
                row = s.rows[lane]
                s.cap[i, lane] = nodes.allocatable[r, row]
                s.used[i, lane] = nodes.requested[r, row]
                s.ask[i, lane] = ask.dim_amounts[i]
    if score.uses_nonzero(ask.prefers.mode.blind):
        for i in range(2):
            for lane in range(lanes):
                s.used[i, lane] = nodes.nonzero[i, s.rows[lane]]
                s.ask[i, lane] = ask.nonzero[i]
    for lane in range(lanes):
        row = s.rows[lane]
        pool = pools.find_pool(nodes, ask, row)
        s.cap[2, lane] = nodes.pools.total[c.CORES, pool]
        s.used[2, lane] = nodes.pools.used[c.CORES, pool]
        s.cap[3, lane] = nodes.pools.total[c.MIB, pool]
        s.used[3, lane] = nodes.pools.used[c.MIB, pool]
        if not nodes.pools.managed[pool]:
            offered = nodes.allocatable[nodes.pools.resource[pool], row]
            s.cap[2, lane], s.cap[3, lane] = pools.measure_devices(nodes, pool, offered)
            held = pools.count_devices(nodes, pool, row)
            s.used[2, lane], s.used[3, lane] = pools.measure_devices(nodes, pool, held)
    if is_by_units(ask):
        for lane in range(lanes):
            s.cap[2, lane] = s.choice.units[0, lane] * c.WHOLE
            s.used[2, lane] = s.choice.units[1, lane] * c.WHOLE
            s.cap[3, lane], s.used[3, lane] = 0.0, 0.0


@tiny
def _score_units(s: c.Scratch, lane: int) -> float:
    """Return the node score of a node's devices for claims, like that of cards: how much of them is in use, 0..30."""
    units = s.choice.units[0, lane]
    return float(POLICY_MOST * s.choice.units[1, lane] / units if units > 0 else 0.0)


@kernel
def weigh_block(nodes: c.Nodes, ask: c.Ask, s: c.Scratch, lanes: int) -> None:
    """Write the parts of the nodes in the lanes to ``s.points``."""
    mode, weight = ask.prefers.mode.blind, ask.prefers.mode.weight
    if mode >= score.NODE_BINPACK:
        extra, step = ask.prefers.mode.extra, ask.prefers.mode.unit // POLICY_MOST
        most = step * (POLICY_MOST + 2 * extra)
        for lane in range(lanes):
            row = s.rows[lane]
            if is_by_units(ask):
                found = _score_units(s, lane)
            else:
                found = np.float64(gpus.score_node(nodes, pools.find_pool(nodes, ask, row)))
            # Over-full cards may take the score above 30: fuller than full is full, or the tiers break.
            found = min(found, np.float64(POLICY_MOST)) + s.choice.vendor[lane]
            steps = int((found + extra) * step)
            if mode == score.NODE_SPREAD:
                steps = most - steps
            s.points[lane] = (max(0, steps) * _POINTS + s.choice.links[lane]) * weight
        return
    if mode == score.KUBE:
        for lane in range(lanes):
            s.points[lane] = kube.score_node(nodes, ask, s.rows[lane])
        return
    _fill_lanes(nodes, ask, s, lanes)
    if mode == score.BALANCED:
        score.score_balance(ask, s, lanes)
    elif mode == score.LAMBDA_G:
        lambda_g.score_lambda_g(s, lanes)
        for lane in range(lanes):
            s.points[lane] = int(s.out[lane] * (_POINTS / 9.0) + 0.5)
    elif mode == score.LAMBDA_G_V3:
        lambda_g.score_lambda_g_v3(s, lanes)
        for lane in range(lanes):
            # A fit in integers may read as none in shares; the pod can still go there.
            s.points[lane] = int(max(0.0, s.out[lane]) * 1000.0 + 0.5)
    else:
        score.score_fit(ask, s, lanes)
    for lane in range(lanes):
        s.points[lane] = (s.points[lane] + s.choice.links[lane]) * weight
