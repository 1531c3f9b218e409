"""One shape on every node: feasibility, rank key, and a tournament of blocks over them.

Only rows that changed are scored again; the best of each block of 64 rows is kept, so that choosing
a node looks at N/64 figures. The key orders nodes exactly: the highest wins, ties go to the lowest
rank. It is a sum of integers,

    key = tier · 2^60 + unit · (3 · taints + 2 · affinity) + part

where affinity and taints are kube-scheduler's normalised scores in milli-points and ``part`` is the
mode's weight times its milli-points (unit 1), or HAMi's float32 node score in steps of 2^-26, scaled
so that its range 0..30 weighs as much as a mode's 0..100,000 (unit 30 · 2^26). The tier is 1 on
nodes without GPUs for pods that ask none: they go there while they fit.
"""

from __future__ import annotations

import numpy as np

from scheduler.kernels import fit
from scheduler.kernels._jit import inlined, kernel
from scheduler.kernels.devices import gpus
from scheduler.kernels.modes import aware, lambda_g, score
from scheduler.schema import columns as c

_TIER = 1 << 60
_STEPS = 1 << 26
HAMI_UNIT = 30 * _STEPS
_POINTS = 100_000
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
        elif is_aware(nodes, ask, row):
            points = aware.place(nodes, cards, ask, demand, row, s)
            board.part[row] = points * ask.mode[1] if points >= 0 else -1
        elif _gather(nodes, cards, ask, row, s, lanes):
            s.rows[lanes] = row
            lanes += 1
            if lanes == c.BLOCK:
                _score_block(nodes, ask, board, s, lanes)
                lanes = 0
        else:
            board.part[row] = -1
    _score_block(nodes, ask, board, s, lanes)
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
def is_aware(nodes: c.Nodes, ask: c.Ask, row: int) -> bool:
    """Whether the pod is judged card by card on a node."""
    return bool(ask.mode[2] >= 0 and (ask.mode[3] != 0 or nodes.has_gpu[row]))


@inlined
def choose(
    nodes: c.Nodes, cards: c.Cards, ask: c.Ask, demand: c.Demand, row: int, s: c.Scratch
) -> int:
    """Pick the pod's cards on a node with cards, by its mode: the number of picks, or -1."""
    if not is_aware(nodes, ask, row):
        return gpus.choose(nodes, cards, ask, row, s)
    if aware.place(nodes, cards, ask, demand, row, s) < 0:
        return -1
    return int(s.n_picks[0])


@inlined
def _gather(nodes: c.Nodes, cards: c.Cards, ask: c.Ask, row: int, s: c.Scratch, lane: int) -> bool:
    """Whether there are cards for the pod; if so what it takes of GPUs stands in the lane."""
    gpu_cores, gpu_mib = 0, 0
    if ask.containers.shape[1] > 0:
        if nodes.managed[row]:
            if gpus.choose(nodes, cards, ask, row, s) < 0:
                return False
            for j in range(nodes.card_count[row]):
                gpu_cores += s.peak[c.CORES, j]
                gpu_mib += s.peak[c.MIB, j]
        else:
            # Whole GPUs of a node without HAMi: a GPU is 100 percent of cores.
            gpu_cores = ask.card_rules[c.RULE_WHOLE_GPUS] * 100
    s.ask[2, lane] = gpu_cores
    s.ask[3, lane] = gpu_mib
    return True


@inlined
def _fill(nodes: c.Nodes, ask: c.Ask, s: c.Scratch, lanes: int) -> None:
    """The figures of the rows in the lanes, one dimension after the other: that is how they lie."""
    for d in range(c.N_DIMS):
        r = ask.dims[d]
        if r >= 0:
            for lane in range(lanes):
                row = s.rows[lane]
                s.cap[d, lane] = nodes.allocatable[r, row]
                s.used[d, lane] = nodes.requested[r, row]
                s.ask[d, lane] = ask.dim_amounts[d]
    if score.uses_nonzero(ask.mode[0]):
        for d in range(2):
            for lane in range(lanes):
                s.used[d, lane] = nodes.nonzero[d, s.rows[lane]]
                s.ask[d, lane] = ask.nonzero[d]
    for lane in range(lanes):
        row = s.rows[lane]
        s.cap[2, lane] = nodes.gpu_total[c.CORES, row]
        s.used[2, lane] = nodes.gpu_used[c.CORES, row]
        s.cap[3, lane] = nodes.gpu_total[c.MIB, row]
        s.used[3, lane] = nodes.gpu_used[c.MIB, row]


@kernel
def _score_block(nodes: c.Nodes, ask: c.Ask, board: c.Board, s: c.Scratch, lanes: int) -> None:
    mode, weight = ask.mode[0], ask.mode[1]
    if mode >= score.HAMI_BINPACK:
        for lane in range(lanes):
            row = s.rows[lane]
            # Over-full cards may take the score above 30: fuller than full is full, or the tiers break.
            steps = min(HAMI_UNIT, int(np.float64(gpus.node_score(nodes, row)) * _STEPS))
            if mode == score.HAMI_SPREAD:
                steps = HAMI_UNIT - steps
            board.part[row] = max(0, steps) * weight * _POINTS
        return
    _fill(nodes, ask, s, lanes)
    if mode == score.BALANCED:
        score.balanced(ask, s, lanes)
    elif mode == score.LAMBDA_G:
        lambda_g.lambda_g(s, lanes)
        for lane in range(lanes):
            s.points[lane] = int(s.out[lane] * (_POINTS / 9.0) + 0.5)
    elif mode == score.LAMBDA_G_V3:
        lambda_g.lambda_g_v3(s, lanes)
        for lane in range(lanes):
            # A fit in integers may read as none in shares; the pod can still go there.
            s.points[lane] = int(max(0.0, s.out[lane]) * 1000.0 + 0.5)
    else:
        score.fit_strategy(ask, s, lanes)
    for lane in range(lanes):
        board.part[s.rows[lane]] = s.points[lane] * weight


@inlined
def _set_key(nodes: c.Nodes, ask: c.Ask, board: c.Board, row: int) -> None:
    if board.part[row] < 0:
        board.key[row] = -1
        return
    affinity, taints = normalised(board, row)
    unit = HAMI_UNIT if ask.mode[0] >= score.HAMI_BINPACK else 1
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
