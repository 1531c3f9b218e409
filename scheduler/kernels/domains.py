"""What is counted of pods in domains of nodes, and what it means for one shape.

A tally counts pods in each domain: a node by itself, or all nodes with one value of a label. It changes with
every placement of the shape, and what it says of nodes is made again from the counts alone.
"""

from __future__ import annotations

import math

from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.schema.handles import Ints1


@kernel
def find_refusals(d: of_domains.Domains, rows: Ints1, refused: Ints1) -> None:
    """Add to ``refused`` [n] the refusal bits of ``rows`` [n] that come from what is counted. O(tallies · (rows + domains))."""
    prepare_tallies(d)
    for i in range(rows.size):
        refused[i] |= find_bits(d, rows[i])


@part
def prepare_tallies(d: of_domains.Domains) -> None:
    """Find how many pods the emptiest domains have, and whether there is any pod to be near to. O(tallies · domains)."""
    d.figures[of_domains.FIGURE_NEAR] = 0
    for t in range(d.tallies.shape[0]):
        if d.tallies[t, of_domains.TALLY_KIND] == of_domains.NEAR:
            for v in range(d.counts.shape[1]):
                d.figures[of_domains.FIGURE_NEAR] += d.counts[t, v]
        if d.tallies[t, of_domains.TALLY_KIND] == of_domains.EVEN:
            d.tallies[t, of_domains.TALLY_FEWEST] = count_fewest(d, t)


@part
def count_fewest(d: of_domains.Domains, t: int) -> int:
    """Count how many pods the emptiest domain of a tally of evenness has. O(domains)."""
    n, fewest = 0, 1 << 62
    for v in range(d.there.shape[1]):
        if d.there[t, v]:
            n += 1
            fewest = min(fewest, d.counts[t, v])
    return 0 if n < d.tallies[t, of_domains.TALLY_LEAST] or n == 0 else int(fewest)


@part
def find_bits(d: of_domains.Domains, row: int) -> int:
    """Return the refusal bits of a row; of the tallies of evenness, only the bit of the first that refuses it."""
    bits, is_even = 0, True
    for t in range(d.tallies.shape[0]):
        kind = d.tallies[t, of_domains.TALLY_KIND]
        if kind == of_domains.APART:
            v = find_domain(d, t, row)
            if v >= 0 and d.counts[t, v] > 0:
                bits |= 1 << d.tallies[t, of_domains.TALLY_BIT]
        elif kind == of_domains.NEAR:
            v = find_domain(d, t, row)
            is_first = (
                d.figures[of_domains.FIGURE_NEAR] == 0 and d.tallies[t, of_domains.TALLY_SELF] != 0
            )
            if v < 0 or (d.counts[t, v] == 0 and not is_first):
                bits |= 1 << d.tallies[t, of_domains.TALLY_BIT]
        elif kind == of_domains.ROOM:
            v = find_domain(d, t, row)
            if (
                v >= 0
                and d.counts[t, v] + d.tallies[t, of_domains.TALLY_SELF]
                > d.tallies[t, of_domains.TALLY_SKEW]
            ):
                bits |= 1 << d.tallies[t, of_domains.TALLY_BIT]
        elif kind == of_domains.EVEN and is_even:
            v = find_domain(d, t, row)
            if v < 0:
                bits |= 1 << d.tallies[t, of_domains.TALLY_NO_LABEL]
                is_even = False
            else:
                n = d.counts[t, v] if d.there[t, v] else 0
                skew = (
                    n + d.tallies[t, of_domains.TALLY_SELF] - d.tallies[t, of_domains.TALLY_FEWEST]
                )
                if skew > d.tallies[t, of_domains.TALLY_SKEW]:
                    bits |= 1 << d.tallies[t, of_domains.TALLY_BIT]
                    is_even = False
    return bits


@part
def find_domain(d: of_domains.Domains, t: int, row: int) -> int:
    """Return the domain of a row for a tally, -1 for none."""
    key = d.tallies[t, of_domains.TALLY_KEY]
    return int(d.domain[key, row]) if key >= 0 else row


@part
def count_placed(board: c.Board, row: int) -> None:
    """Count a pod of the shape that was placed on a row."""
    d = board.domains
    for t in range(d.tallies.shape[0]):
        mask = d.tallies[t, of_domains.TALLY_MASK]
        if mask >= 0 and not d.counted[mask, row]:
            continue
        v = find_domain(d, t, row)
        if v < 0:
            v = d.tallies[t, of_domains.TALLY_EMPTY]
        if v >= 0:
            d.counts[t, v] += d.tallies[t, of_domains.TALLY_GAIN]


@part
def judge_rows(board: c.Board, rows: c.Ints) -> None:
    """Renew those refusal bits of ``rows`` that come from tallies. O(tallies · (rows + domains))."""
    mine = _collect_bits(board.domains)
    prepare_tallies(board.domains)
    for i in range(rows.size):
        _judge_row(board, mine, rows[i])


@part
def judge_all(board: c.Board) -> None:
    """As ``judge_rows`` for all rows, and score those on which the pod fits. O(tallies · (N + domains))."""
    mine = _collect_bits(board.domains)
    prepare_tallies(board.domains)
    # Preferences alone refuse no node.
    if mine != 0:
        for row in range(board.part.size):
            _judge_row(board, mine, row)
    for g in range(board.domains.scores.shape[0]):
        if board.domains.scores[g, c.NORM_HOW] == c.OF_BOTH:
            _score_spread(board, g)
        elif board.domains.scores[g, c.NORM_HOW] == c.OF_SPAN:
            _score_sum(board, g)


@part
def fits(board: c.Board, row: int) -> bool:
    """Whether the pod fits on a row of an up-to-date board."""
    has_domains = board.domains.tallies.shape[0] > 0
    return bool(board.part[row] >= 0 and not (has_domains and board.refused[0, row]))


@part
def _collect_bits(d: of_domains.Domains) -> int:
    """Return all refusal bits that come from tallies."""
    mine = 0
    for t in range(d.tallies.shape[0]):
        kind = d.tallies[t, of_domains.TALLY_KIND]
        if kind < of_domains.SPREAD:
            mine |= 1 << d.tallies[t, of_domains.TALLY_BIT]
        if kind == of_domains.EVEN:
            mine |= 1 << d.tallies[t, of_domains.TALLY_NO_LABEL]
    return mine


@part
def _judge_row(board: c.Board, mine: int, row: int) -> None:
    board.refused[0, row] = (board.refused[0, row] & ~mine) | find_bits(board.domains, row)


@part
def _score_spread(board: c.Board, g: int) -> None:
    """Give points of the score ``g``: a node whose domains count fewer pods gets more points.

    Where there are many domains a pod counts more: by the factor ln(domains + 2).
    """
    d = board.domains
    scored = 0
    for row in range(board.part.size):
        d.raw[g, row] = 0 if fits(board, row) and _is_scored(d, g, row) else -1
        scored += d.raw[g, row] == 0
    for t in range(d.tallies.shape[0]):
        if d.tallies[t, of_domains.TALLY_SCORE] == g:
            by_node = d.tallies[t, of_domains.TALLY_BY_NODE] != 0
            d.tallies[t, of_domains.TALLY_SIZE] = scored if by_node else _count_domains(d, t, g)
    lowest, highest = 1 << 62, 0
    for row in range(board.part.size):
        if d.raw[g, row] < 0:
            continue
        total = 0.0
        for t in range(d.tallies.shape[0]):
            v = find_domain(d, t, row)
            if d.tallies[t, of_domains.TALLY_SCORE] == g and v >= 0:
                weight = d.logs[d.tallies[t, of_domains.TALLY_SIZE]]
                total += d.counts[t, v] * weight + (d.tallies[t, of_domains.TALLY_SKEW] - 1)
        # Half a point is rounded up.
        d.raw[g, row] = math.floor(total + 0.5)
        lowest, highest = min(lowest, d.raw[g, row]), max(highest, d.raw[g, row])
    for row in range(board.part.size):
        if d.raw[g, row] < 0:
            d.points[g, row] = 0
        elif highest == 0:
            d.points[g, row] = 100
        else:
            d.points[g, row] = 100 * (highest + lowest - d.raw[g, row]) // highest


@part
def _score_sum(board: c.Board, g: int) -> None:
    """Give points of the score ``g``: a node whose domains count more gets more points.

    Tally by tally over all rows, also those on which the pod does not fit: a loop without conditions takes a third.
    """
    d, n = board.domains, board.part.size
    for row in range(n):
        d.raw[g, row] = 0
    for t in range(d.tallies.shape[0]):
        if d.tallies[t, of_domains.TALLY_SCORE] == g:
            _add_counts(d, g, t)
    lowest, highest = 1 << 62, -(1 << 62)
    for row in range(n):
        if fits(board, row):
            lowest, highest = min(lowest, d.raw[g, row]), max(highest, d.raw[g, row])
    span = highest - lowest
    for row in range(n):
        # In floats and cut off, as kube-scheduler does it.
        d.points[g, row] = int(100.0 * ((d.raw[g, row] - lowest) / span)) if span > 0 else 0


@part
def _add_counts(d: of_domains.Domains, g: int, t: int) -> None:
    """Add what a tally says of each row to the score ``g``."""
    key, weight = d.tallies[t, of_domains.TALLY_KEY], d.tallies[t, of_domains.TALLY_WEIGHT]
    if key < 0:
        for row in range(min(d.raw.shape[1], d.counts.shape[1])):
            d.raw[g, row] += weight * d.counts[t, row]
        return
    for row in range(d.raw.shape[1]):
        v = d.domain[key, row]
        d.raw[g, row] += weight * d.counts[t, v] if v >= 0 else 0


@part
def _is_scored(d: of_domains.Domains, g: int, row: int) -> bool:
    """Whether a node has every label that it must have for a score."""
    for t in range(d.tallies.shape[0]):
        is_strict = (
            d.tallies[t, of_domains.TALLY_SCORE] == g and d.tallies[t, of_domains.TALLY_STRICT] != 0
        )
        if is_strict and find_domain(d, t, row) < 0:
            return False
    return True


@part
def _count_domains(d: of_domains.Domains, t: int, g: int) -> int:
    """Count the domains in which the scored nodes are."""
    d.figures[of_domains.FIGURE_STAMP] += 1
    stamp = d.figures[of_domains.FIGURE_STAMP]
    n, without = 0, 0
    for row in range(d.raw.shape[1]):
        if d.raw[g, row] < 0:
            continue
        v = find_domain(d, t, row)
        if v < 0:
            v = d.tallies[t, of_domains.TALLY_EMPTY]
        if v < 0:
            without = 1
        elif d.seen[v] != stamp:
            d.seen[v] = stamp
            n += 1
    return n + without
