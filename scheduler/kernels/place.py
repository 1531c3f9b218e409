"""Place a run of like pods: choose, charge, rescore the one row that changed, again.

The result is exactly that of one pod at a time, because nothing else is remembered between pods.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.kernels import board as boards
from scheduler.kernels import charge, domains, parts
from scheduler.kernels._jit import inlined, kernel
from scheduler.kernels.devices import pools
from scheduler.schema import columns as c


class Placed(NamedTuple):
    """Where a run of K pods went.

    ``ledger`` is of the cluster that they are placed in, and has room for them. Q is at least the most picks that
    a pod of the shape can have.
    """

    ledger: c.Ledger
    moved: c.Ints  # [k] rows that are to be looked at again before the first; this one is read
    priority: c.Ints  # [K] of each pod; this one is read
    row: c.Ints  # [K] node row
    pod: c.Ints  # [K] row of the pod table
    n_picks: c.Ints  # [K]
    card: c.Ints  # [K, Q] card rows in pick order
    mib: c.Ints  # [K, Q]
    slot: c.Ints  # [K, Q] container of the pick


@kernel
def place_run(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    demand: c.Demand,
    board: c.Board,
    s: c.Scratch,
    out: Placed,
) -> int:
    """Place up to K pods of one shape; stops at the first that fits nowhere.

    Reads ask and demand; writes board and ``out``, the ledger and thereby nodes and cards. The board must be
    up to date but for the rows that moved, which are scored first: a call of its own would cost more.

    Returns:
        How many were placed.

    Cost: O(N / 64 + 64) a pod, O(N) for shapes with preferences; and that of the rows that moved.
    """
    if out.moved.size > 0:
        boards.rescore(nodes, cards, ask, demand, board, out.moved, s)
    for k in range(out.priority.size):
        row = boards.winner(nodes, board)
        if row < 0:
            return k
        out.row[k] = row
        put(nodes, cards, ask, demand, s, out, k)
        domains.placed(board, row)
        s.changed[0] = row
        boards.rescore(nodes, cards, ask, demand, board, s.changed, s)
    return int(out.priority.size)


@kernel
def put_at(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    demand: c.Demand,
    s: c.Scratch,
    out: Placed,
) -> None:
    """Place the first pod of ``out`` on the row that stands there, whose cards suffice for it."""
    put(nodes, cards, ask, demand, s, out, 0)


@inlined
def put(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    demand: c.Demand,
    s: c.Scratch,
    out: Placed,
    k: int,
) -> None:
    """Choose the cards of pod ``k`` on the node ``out.row[k]``, where it fits, and charge it."""
    row = out.row[k]
    pod = charge.open_row(out.ledger, ask.charge[0], out.priority[k], c.NOT_STARTED)
    out.pod[k], out.n_picks[k] = pod, 0
    if pools.is_by_cards(nodes, ask, row):
        n = parts.choose(nodes, cards, ask, demand, row, s)
        out.n_picks[k] = n
        for p in range(n):
            out.card[k, p] = s.picks[p]
            out.mib[k, p] = s.pick_mib[p]
            out.slot[k, p] = s.pick_slot[p]
        _hold(nodes, ask, out.ledger, pod, row, s)
    out.ledger.node[pod] = row
    charge.add(out.ledger, pod, 1)


@inlined
def _hold(nodes: c.Nodes, ask: c.Ask, ledger: c.Ledger, pod: int, row: int, s: c.Scratch) -> None:
    """The pod holds what stands in ``s.peak`` of the cards that it asks of the node."""
    pool, n = ask.pool, 0
    for j in range(nodes.card_count[pool, row]):
        if s.peak[c.SLOTS, j] > 0:
            n += 1
    at = charge.take_holds(ledger, pod, n)
    for j in range(nodes.card_count[pool, row]):
        if s.peak[c.SLOTS, j] > 0:
            ledger.holds[at, 0] = nodes.card_start[pool, row] + j
            for figure in range(3):
                ledger.holds[at, 1 + figure] = s.peak[figure, j]
            at += 1
