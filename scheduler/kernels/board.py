"""One shape on every node: feasibility, rank key, and a tournament of blocks over them.

Only rows that changed are scored again; the best of each block of 64 rows is kept, so that choosing
a node looks at N/64 figures. The key orders nodes exactly: the highest wins, ties go to the lowest
rank. It is a sum of integers,

    key = tier · 2^60 + unit · Σ weight · score + part

over the normalised scores of all rules but the mode's in milli-points, with part and unit those of ``parts``.
The tier is 1 on nodes without GPUs for pods that ask none: they go there while they fit.
"""

from __future__ import annotations

from scheduler.kernels import domains, fit, judging, parts
from scheduler.kernels._jit import inlined, part, tiny
from scheduler.kernels.devices import linked
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.schema import domains as of_domains
from scheduler.schema.world import World


@inlined
def rescore_rows(world: World, ask: c.Ask, board: c.Board, rows: c.Ints) -> None:
    """Bring ``rows`` of the board up to date: bits, part, key, and the best of their blocks.

    Writes board and scratch. O(rows); all rows when the highest of a normalised score moved, which only shapes with
    preferences have, and for shapes that count pods in domains.
    """
    nodes, s = world.tables.nodes, world.scratch
    lanes = 0
    for i in range(rows.size):
        row = rows[i]
        board.refused[0, row] = 0
        for word in range(1, board.refused.shape[0]):
            board.refused[word, row] = 0
        board.part[row] = -1
        if board.static[row] != 0:
            continue
        if not fit.fits(nodes, ask, row):
            fit.note_short(nodes, ask, row, row, board.refused)
            continue
        unmet = judging.judge_claims(world.tables, ask, row, s, parts.scores_claims(ask))
        if unmet != 0:
            board.refused[0, row] = unmet
            continue
        if board.choices.size > 0:
            board.choices[row] = int(s.claims.figures[d.FIGURE_RANK])
        found = parts.weigh_row(world, ask, row, lanes)
        if found == parts.IN_LANE:
            lanes += 1
            if lanes == c.BLOCK:
                _score_lanes(nodes, ask, board, s, lanes)
                lanes = 0
            continue
        board.part[row] = found
        if board.links.size > 0:
            board.links[row] = linked.score_pairs(s)
        if found < 0:
            board.refused[0, row] = 1 << ask.prefers.bits[c.BIT_CARDS]
    _score_lanes(nodes, ask, board, s, lanes)
    is_wide = board.domains.figures[of_domains.FIGURE_WIDE] != 0
    if is_wide:
        domains.judge_all(board)
    elif board.domains.tallies.shape[0] > 0:
        domains.judge_rows(board, rows)
    most_moved = False
    if board.scores.shape[0] > 0:
        most_moved = _update_highest(board)
    if board.choices.size > 0:
        most_moved |= _update_best_choice(board)
    if is_wide or most_moved:
        _set_keys(nodes, ask, board)
        for block in range(board.best.size):
            _elect_best(nodes, board, block)
        return
    for i in range(rows.size):
        _set_key(nodes, ask, board, rows[i])
    last = -1
    for i in range(rows.size):
        block = rows[i] // c.BLOCK
        # Rows of a full pass come in order: elect each block once.
        if block != last:
            _elect_best(nodes, board, block)
            last = block


@part
def find_winner(nodes: c.Nodes, board: c.Board, among: c.Flags) -> int:
    """Find the row with the highest key, lowest rank on ties, or -1; only ``among`` [N] rows, if that is not empty.

    O(N / 64), and 64 for each block whose best row is none of these.
    """
    found = -1
    for block in range(board.best.size):
        row = board.best[block]
        # Where the best row of a block is not better, none of it is.
        if row < 0 or not _is_better(nodes, board, row, found):
            continue
        if among.size == 0 or among[row]:
            found = row
            continue
        for row in range(block * c.BLOCK, (block + 1) * c.BLOCK):
            if among[row] and board.key[row] >= 0 and _is_better(nodes, board, row, found):
                found = row
    return found


@tiny
def _is_better(nodes: c.Nodes, board: c.Board, row: int, found: int) -> bool:
    """Whether a row on which the pod fits comes before the best so far, -1 for none."""
    return bool(
        found < 0
        or board.key[row] > board.key[found]
        or (board.key[row] == board.key[found] and nodes.rank[row] < nodes.rank[found])
    )


@part
def _elect_best(nodes: c.Nodes, board: c.Board, block: int) -> None:
    found = -1
    for row in range(block * c.BLOCK, (block + 1) * c.BLOCK):
        if board.key[row] >= 0 and _is_better(nodes, board, row, found):
            found = row
    board.best[block] = found


@part
def _score_lanes(nodes: c.Nodes, ask: c.Ask, board: c.Board, s: c.Scratch, lanes: int) -> None:
    parts.weigh_block(nodes, ask, s, lanes)
    for lane in range(lanes):
        board.part[s.rows[lane]] = s.points[lane]
        if board.links.size > 0:
            board.links[s.rows[lane]] = s.choice.links[lane]


@part
def _set_key(nodes: c.Nodes, ask: c.Ask, board: c.Board, row: int) -> None:
    if not domains.fits(board, row):
        board.key[row] = -1
        return
    points = board.base[0]
    for i in range(board.scores.shape[0]):
        points += board.norms[i, c.NORM_WEIGHT] * normalize_score(board, i, row)
    for g in range(board.domains.scores.shape[0]):
        points += board.domains.scores[g, c.NORM_WEIGHT] * board.domains.points[g, row]
    if board.choices.size > 0:
        points += board.choice_norm[c.NORM_WEIGHT] * normalize_choice(board, row)
    tier = 1 if ask.rules.avoid_gpu and not nodes.has_gpu[row] else 0
    board.key[row] = tier * parts.TIER + ask.prefers.mode.unit * points * 1000 + board.part[row]


@part
def _set_keys(nodes: c.Nodes, ask: c.Ask, board: c.Board) -> None:
    """As ``_set_key`` for all rows, score by score: loops without conditions take half as long."""
    n, unit = board.part.size, ask.prefers.mode.unit * 1000
    tier = parts.TIER if ask.rules.avoid_gpu else 0
    for row in range(n):
        board.key[row] = board.base[0] * unit + tier * (1 - nodes.has_gpu[row]) + board.part[row]
    for i in range(board.scores.shape[0]):
        weight = board.norms[i, c.NORM_WEIGHT] * unit
        for row in range(n):
            board.key[row] += weight * normalize_score(board, i, row)
    for g in range(board.domains.scores.shape[0]):
        weight = board.domains.scores[g, c.NORM_WEIGHT] * unit
        for row in range(n):
            board.key[row] += weight * board.domains.points[g, row]
    if board.choices.size > 0:
        for row in range(n):
            board.key[row] += board.choice_norm[c.NORM_WEIGHT] * unit * normalize_choice(board, row)
    for row in range(n):
        if not domains.fits(board, row):
            board.key[row] = -1


@part
def normalize_score(board: c.Board, i: int, row: int) -> int:
    """Return the points 0..100 of the static score ``i`` of the board on a row, as kube-scheduler normalizes them."""
    raw, most = board.scores[i, row], board.norms[i, c.NORM_MOST]
    if board.norms[i, c.NORM_HOW] == c.AS_IS:
        return int(raw)
    share = raw * 100 // most if most > 0 else 0
    return int(100 - share if board.norms[i, c.NORM_HOW] == c.LESS_OF_MOST else share)


@part
def normalize_choice(board: c.Board, row: int) -> int:
    """Return the points 0..100 of the alternatives that claims get on a row."""
    most = board.choice_norm[c.NORM_MOST]
    return int(board.choices[row] * 100 // most if most > 0 else 0)


@part
def _update_best_choice(board: c.Board) -> bool:
    """As ``_update_highest`` for the alternatives of claims."""
    most = 0
    for row in range(board.part.size):
        if domains.fits(board, row):
            most = max(most, board.choices[row])
    moved = most != board.choice_norm[c.NORM_MOST]
    board.choice_norm[c.NORM_MOST] = most
    return bool(moved)


@part
def _update_highest(board: c.Board) -> bool:
    """Find the highest raw scores of all rows on which the pod fits; return whether one of them has changed."""
    moved = False
    for i in range(board.scores.shape[0]):
        most = 0
        for row in range(board.part.size):
            if domains.fits(board, row):
                most = max(most, board.scores[i, row])
        moved = moved or most != board.norms[i, c.NORM_MOST]
        board.norms[i, c.NORM_MOST] = most
    return moved
