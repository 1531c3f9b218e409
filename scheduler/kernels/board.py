"""One shape on every node: feasibility, rank key, and a tournament of blocks over them.

Only rows that changed are scored again; the best of each block of 64 rows is kept, so that choosing
a node looks at N/64 figures. The key orders nodes exactly: the highest wins, ties go to the lowest
rank. It is a sum of integers,

    key = tier · 2^60 + unit · (3 · taints + 2 · affinity) + part

where affinity and taints are kube-scheduler's normalised scores in milli-points, and part and unit those of
``parts``. The tier is 1 on nodes without GPUs for pods that ask none: they go there while they fit.
"""

from __future__ import annotations

from scheduler.kernels import fit, parts
from scheduler.kernels._jit import inlined, kernel
from scheduler.kernels.modes import score
from scheduler.schema import columns as c

_TIER = 1 << 60
TAINT_WEIGHT, AFFINITY_WEIGHT = 3, 2


@kernel
def rescore(
    nodes: c.Nodes,
    cards: c.Cards,
    ask: c.Ask,
    demand: c.Demand,
    board: c.Board,
    rows: c.Ints,
    s: c.Scratch,
) -> None:
    """Bring ``rows`` of the board up to date: part, key, and the best of their blocks.

    Reads nodes, cards, ask, demand; writes board and scratch. O(rows); all rows when a normalised score's
    maximum moved, which only shapes with preferences have.
    """
    lanes = 0
    for i in range(rows.size):
        row = rows[i]
        if not (nodes.valid[row] and board.allowed[row] and fit.fits(nodes, ask, row)):
            board.part[row] = -1
        elif parts.is_aware(nodes, ask, row):
            board.part[row] = parts.by_cards(nodes, cards, ask, demand, row, s)
        elif parts.gather(nodes, cards, ask, row, s, lanes):
            s.rows[lanes] = row
            lanes += 1
            if lanes == c.BLOCK:
                _score(nodes, ask, board, s, lanes)
                lanes = 0
        else:
            board.part[row] = -1
    _score(nodes, ask, board, s, lanes)
    everything = ask.card_rules[c.RULE_PREFERS] != 0 and _maxima_moved(board)
    if everything:
        for row in range(board.part.size):
            _set_key(nodes, ask, board, row)
        for block in range(board.best.size):
            _elect(nodes, board, block)
        return
    last = -1
    for i in range(rows.size):
        _set_key(nodes, ask, board, rows[i])
    for i in range(rows.size):
        block = rows[i] // c.BLOCK
        # Rows of a full pass come in order: elect each block once.
        if block != last:
            _elect(nodes, board, block)
            last = block


@inlined
def winner(nodes: c.Nodes, board: c.Board) -> int:
    """The row with the highest key, lowest rank on ties, or -1. O(N / 64)."""
    found = -1
    for block in range(board.best.size):
        row = board.best[block]
        if row >= 0 and (
            found < 0
            or board.key[row] > board.key[found]
            or (board.key[row] == board.key[found] and nodes.rank[row] < nodes.rank[found])
        ):
            found = row
    return found


@inlined
def _elect(nodes: c.Nodes, board: c.Board, block: int) -> None:
    found = -1
    for row in range(block * c.BLOCK, (block + 1) * c.BLOCK):
        key = board.key[row]
        if key >= 0 and (
            found < 0
            or key > board.key[found]
            or (key == board.key[found] and nodes.rank[row] < nodes.rank[found])
        ):
            found = row
    board.best[block] = found


@inlined
def _score(nodes: c.Nodes, ask: c.Ask, board: c.Board, s: c.Scratch, lanes: int) -> None:
    parts.of_block(nodes, ask, s, lanes)
    for lane in range(lanes):
        board.part[s.rows[lane]] = s.points[lane]


@inlined
def _set_key(nodes: c.Nodes, ask: c.Ask, board: c.Board, row: int) -> None:
    if board.part[row] < 0:
        board.key[row] = -1
        return
    affinity, taints = normalised(board, row)
    unit = parts.HAMI_UNIT if ask.mode[0] >= score.HAMI_BINPACK else 1
    tier = 1 if ask.card_rules[c.RULE_AVOID_GPU] != 0 and not nodes.has_gpu[row] else 0
    preferred = (TAINT_WEIGHT * taints + AFFINITY_WEIGHT * affinity) * 1000
    board.key[row] = tier * _TIER + unit * preferred + board.part[row]


@inlined
def normalised(board: c.Board, row: int) -> tuple[int, int]:
    """kube-scheduler's scores 0..100 of NodeAffinity and TaintToleration on a row."""
    affinity = board.affinity[row] * 100 // board.maxima[0] if board.maxima[0] > 0 else 0
    taints = 100 - board.taints[row] * 100 // board.maxima[1] if board.maxima[1] > 0 else 100
    return affinity, taints


@inlined
def _maxima_moved(board: c.Board) -> bool:
    affinity, taints = 0, 0
    for row in range(board.part.size):
        if board.part[row] >= 0:
            affinity = max(affinity, board.affinity[row])
            taints = max(taints, board.taints[row])
    moved = affinity != board.maxima[0] or taints != board.maxima[1]
    board.maxima[0] = affinity
    board.maxima[1] = taints
    return bool(moved)
