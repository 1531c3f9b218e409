"""Place a run of like pods: choose, charge, rescore the one row that changed, again.

The result is exactly that of one pod at a time, because nothing else is remembered between pods.
"""

from __future__ import annotations

from scheduler.kernels import board as boards
from scheduler.kernels import charge, domains, judging, parts
from scheduler.kernels._jit import kernel, part
from scheduler.kernels.devices import asks, choose, claim_memo, claims, device_holds, pools
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema.world import Run, World


@kernel
def place_run(world: World, ask: c.Ask, board: c.Board, run: Run) -> int:
    """Place up to K pods of one shape; stops at the first that fits nowhere, and after one on a row of ``run.stops``.

    Reads ask and demand; writes board, ``run`` and the tables. The board must be up to date but for the rows that
    moved; these are scored first, because a call of its own would cost more. For K = 0 nothing else is done. Where the
    row is chosen already, the board is neither read nor written, and the cards there must suffice.

    Returns:
        How many were placed.

    Cost: O(N / 64 + 64) a pod, O(N) for shapes with preferences or where only some rows may be chosen; and the cost of
    scoring the rows that moved.
    """
    stale, n, is_over = run.moved, run.priority.size, False
    if stale.size > 0 and run.chosen < 0:
        claim_memo.open_memo(ask.claims, world.scratch.claims)
    for k in range(n + 1):
        # At one place, so that it is compiled once.
        if stale.size > 0 and run.chosen < 0:
            boards.rescore_rows(world, ask, board, stale)
            claim_memo.close_memo(world.scratch.claims)
        if k == n or is_over:
            return k
        row = run.chosen
        if run.wanted.size > 0:
            row = run.wanted[k] if board.key[run.wanted[k]] >= 0 else -1
        elif row < 0:
            row = boards.find_winner(world.tables.nodes, board, run.among)
        if row < 0:
            return k
        run.row[k] = row
        if not put_pod(world, ask, run, k):
            return k
        if run.chosen < 0:
            domains.count_placed(board, row)
        world.scratch.changed[0] = row
        stale = world.scratch.changed
        is_over = run.stops.size > 0 and bool(run.stops[row])
    return int(n)


@kernel
def put_pod(world: World, ask: c.Ask, run: Run, k: int) -> bool:
    """Choose the cards of pod ``k`` on the node ``run.row[k]``, where it fits, and charge it.

    Return whether that could be done: not if devices for its claims are not found after all.
    """
    row, tables, s = run.row[k], world.tables, world.scratch
    n_devices = _choose_devices(world, ask, run, k)
    if n_devices < 0:
        return False
    pod = charge.open_row(tables, ask.charge, run.priority[k], c.NOT_STARTED)
    run.pod[k], run.n_picks[k] = pod, 0
    n_held = 0
    asks.prepare_choice(tables.nodes, tables.cards, ask, row, s)
    if pools.is_by_cards(tables.nodes, ask, row):
        n = parts.choose_cards(world, ask, row)
        n_held = _note_picks(tables.nodes, ask, run, k, n, n_held, s)
    numa = s.only_numa[0]
    for i in range(len(ask.more)):
        one = asks.read_ask(ask.more[i])
        s.only_numa[0] = numa if one.rules.joint else c.ANY_NUMA
        if pools.is_by_cards(tables.nodes, one, row):
            n = choose.choose_devices(tables.nodes, tables.cards, one, row, s)
            n_held = _note_picks(tables.nodes, one, run, k, n, n_held, s)
    asks.end_choice(s)
    if n_devices > 0:
        n_held = device_holds.note_holds(tables, ask.claims, s, n_devices, n_held)
    charge.write_holds(tables, pod, s.holds, n_held)
    tables.pods.node[pod] = row
    charge.add_charge(tables, pod, 1)
    return True


@part
def _choose_devices(world: World, ask: c.Ask, run: Run, k: int) -> int:
    """Choose the devices of pod ``k`` for its claims; return how many they are, or a negative number for none."""
    run.n_devices[k] = 0
    if not judging.has_claims(ask):
        return 0
    tables, s, row = world.tables, world.scratch, run.row[k]
    # A better choice is worth less than the search of a node; any choice is found as it was when the node was judged.
    n = claims.allocate(tables, ask.claims, row, s.claims, True, ask.claims.most // d.CHOOSING_PART)
    if n < 0:
        n = claims.allocate(tables, ask.claims, row, s.claims, False, ask.claims.most)
    if n < 0 or n > run.device.shape[1]:
        return -1
    for f in range(n):
        run.device[k, f], run.leaf[k, f] = s.claims.local[s.claims.pick[f]], s.claims.leaf[f]
    run.n_devices[k] = n
    return int(n)


@part
def _note_picks(
    nodes: c.Nodes, ask: c.Ask, run: Run, k: int, n: int, n_held: int, s: c.Scratch
) -> int:
    """Note the ``n`` cards that were picked from one pool, and in ``s.holds`` what the pod holds of them; return how many it holds."""
    row, first = run.row[k], run.n_picks[k]
    for p in range(n):
        run.card[k, first + p] = s.picks[p]
        run.mib[k, first + p] = s.pick_mib[p]
        run.cores[k, first + p] = s.pick_cores[p]
        run.slot[k, first + p] = s.pick_slot[p]
        run.part[k, first + p] = s.pick_part[p]
        if s.pick_part[p] != c.NO_PART:
            n_held = _note_hold(s, n_held, s.picks[p], s.pick_part[p])
    run.n_picks[k] = first + n
    pool = pools.find_pool(nodes, ask, row)
    for j in range(nodes.pools.count[pool]):
        if s.peak[c.SLOTS, j] > 0:
            n_held = _note_hold(s, n_held, nodes.pools.start[pool] + j, c.NO_PART)
            for figure in range(3):
                s.holds[n_held - 1, c.HOLD_CORES + figure] = s.peak[figure, j]
    return n_held


@part
def _note_hold(s: c.Scratch, n: int, d: int, p: int) -> int:
    """Add a row without figures to ``s.holds``; return how many rows there are."""
    for column in range(c.N_HOLD):
        s.holds[n, column] = 0
    s.holds[n, c.HOLD_CARD], s.holds[n, c.HOLD_PART] = d, p
    return n + 1
