"""Place a run of like pods: choose, charge, rescore the one row that changed, again.

The result is exactly that of one pod at a time, because nothing else is remembered between pods.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.kernels import board as boards
from scheduler.kernels import domains, fit, parts
from scheduler.kernels._jit import inlined, kernel
from scheduler.schema import columns as c


class Placed(NamedTuple):
    """Where a run of K pods went. Q is the most picks a pod of the shape can have."""

    row: c.Ints  # [K] node row
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

    Reads ask and demand; writes nodes, cards, board and ``out``. The board must be up to date.

    Returns:
        How many were placed.

    Cost: O(N / 64 + 64) a pod, O(N) for shapes with preferences.
    """
    for k in range(out.row.size):
        row = boards.winner(nodes, board)
        if row < 0:
            return k
        n = put(nodes, cards, ask, demand, row, s)
        out.row[k] = row
        out.n_picks[k] = n
        for p in range(n):
            out.card[k, p] = s.picks[p]
            out.mib[k, p] = s.pick_mib[p]
            out.slot[k, p] = s.pick_slot[p]
        domains.placed(board, row)
        s.changed[0] = row
        boards.rescore(nodes, cards, ask, demand, board, s.changed, s)
    return int(out.row.size)


@inlined
def put(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, row: int, s: c.Scratch
) -> int:
    """Choose the pod's cards on a node where it fits, and charge it: the number of picks, in the scratch."""
    n = 0
    if ask.containers.shape[1] > 0 and nodes.managed[row]:
        n = parts.choose(nodes, cards, ask, demand, row, s)
        _charge_cards(nodes, cards, row, s)
    fit.charge(nodes, ask, row, 1)
    if ask.card_rules[c.RULE_SIZE] >= 0:
        nodes.sizes[ask.card_rules[c.RULE_SIZE], row] += 1
    if not nodes.managed[row]:
        nodes.gpu_used[c.CORES, row] = nodes.requested[c.GPU, row] * 100
    return int(n)


@inlined
def _charge_cards(nodes: c.Nodes, cards: c.Cards, row: int, s: c.Scratch) -> None:
    start = nodes.card_start[row]
    for j in range(nodes.card_count[row]):
        for i in range(3):
            cards.used[i, start + j] += s.peak[i, j]
            nodes.gpu_used[i, row] += s.peak[i, j]
