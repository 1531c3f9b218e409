"""Why a shape fits nowhere: the reasons of all nodes, summed up."""

from __future__ import annotations

from collections import Counter

import numpy as np

from scheduler.api.door.decisions import Diagnosis
from scheduler.cycle.boards import Shape
from scheduler.plugins import table
from scheduler.plugins.contract import Judged
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster


def all_rows(cluster: Cluster) -> c.Ints:
    """Rows of all nodes, ascending."""
    return np.array(sorted(cluster.nodes.rows.values()), np.int64)


def of_board(board: c.Board, rows: c.Ints) -> c.Ints:
    """[W, n] refusal bits of some rows on an up-to-date board, 0 where the pod fits."""
    bits: c.Ints = board.refused[:, rows]
    bits[0] |= board.static[rows]
    return bits


def judged(
    cluster: Cluster, shape: Shape, scratch: c.Scratch, rows: c.Ints, bits: c.Ints
) -> Judged:
    """Rows and their refusal bits, for rules to tell why."""
    return Judged(shape.asked, shape.ask, cluster, scratch, rows, bits)


def summed(refused: Judged) -> Diagnosis:
    """How many of the rows gave which reason."""
    counts: Counter[str] = Counter()
    unresolvable = 0
    for _, told in table.told(refused):
        counts.update(dict(zip(told.texts, told.which.sum(axis=0).tolist(), strict=True)))
        unresolvable += int(told.unresolvable.sum())
    reasons = tuple(sorted((text, n) for text, n in counts.items() if n))
    return Diagnosis(refused.rows.size, reasons, unresolvable, table.refusing(refused.bits[0]))
