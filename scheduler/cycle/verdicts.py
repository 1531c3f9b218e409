"""What every node says of one pod: fits or not, why, and its scores; for explanations only."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.cycle import diagnosis
from scheduler.cycle.boards import Shape
from scheduler.cycle.schedule import Cycle
from scheduler.plugins import table
from scheduler.plugins.contract import Judged
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_FITS: tuple[str, list[str]] = ("fit", [])


def all_nodes(cluster: Cluster, cycle: Cycle, pod: PodRecord) -> dict[str, dict[str, Any]]:
    """Per node name: feasible, status, reasons, scores by name, weighted ones, total; by name.

    Scores are points 0..100 as kube-scheduler counts them (the score of a node policy 0..30); the total is
    their weighted sum as the cycle compares it. Nodes that do not fit have no scores.
    """
    shape = cycle.shape_of(pod)
    if shape is None:
        return {}
    cycle.boards.refresh(shape)
    rows = diagnosis.all_rows(cluster)
    bits = diagnosis.of_board(shape.board, rows)
    why = _reasons(diagnosis.judged(cluster, shape, cycle.boards.scratch, rows, bits))
    result: dict[str, dict[str, Any]] = {}
    for i in np.argsort(cluster.nodes.columns.rank[rows]).tolist():
        status, reasons = why.get(i, _FITS)
        result[cluster.nodes.name_of(int(rows[i]))] = {
            "feasible": i not in why,
            "status": status,
            "reasons": reasons,
            **_scores(cluster, shape, int(rows[i])),
        }
    return result


def _reasons(judged: Judged) -> dict[int, tuple[str, list[str]]]:
    """By position among the rows: status and reasons of those that do not fit."""
    found = {}
    for positions, told in table.told(judged):
        for i, which, unresolvable in zip(
            positions.tolist(), told.which, told.unresolvable.tolist(), strict=True
        ):
            status = "unresolvable" if unresolvable else "unschedulable"
            found[i] = status, [told.texts[k] for k in np.flatnonzero(which)]
    return found


def _scores(cluster: Cluster, shape: Shape, row: int) -> dict[str, Any]:
    board = shape.board
    if board.key[row] < 0:
        return {"scores": {}, "weighted": {}, "total": None}
    points = table.points(shape.asked, cluster.nodes.columns, board, row)
    points += shape.static.points(board, row) if shape.static else []
    points += shape.counted.points(row)
    total = sum(one.weighted for one in points)
    return {
        "scores": {one.name: one.points for one in points},
        "weighted": {one.name: round(one.weighted, 6) for one in points},
        "total": round(total, 6),
    }
