"""What every node says of one pod: fits or not, why, and its scores; for explanations only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler.cycle.asking import Answers
from scheduler.plugins import table
from scheduler.plugins.contract import Judged, Points
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_FITS: tuple[str, list[str]] = ("fit", [])


class Verdicts(NamedTuple):
    """What every node says of one pod.

    Attributes:
        nodes: per name, in the order of names: feasible, status, reasons; and by score ``raw``, ``scores`` and
            ``weighted``, with their ``total``. Nodes that do not fit have no scores.
        weights: of each score that any of them has, 0 of what comes before all totals.
    """

    nodes: dict[str, dict[str, Any]]
    weights: dict[str, int]


def all_nodes(cluster: Cluster, answers: Answers, pod: PodRecord) -> Verdicts:
    """Scores are points 0..100 as kube-scheduler counts them; raw is what they were made from.

    The total is the weighted sum as the cycle compares it.
    """
    weights: dict[str, int] = {}
    shape = answers.get_shape(pod)
    if shape is None:
        return Verdicts({}, weights)
    answers.boards.refresh(shape)
    rows = diagnosis.all_rows(cluster)
    bits = answers.find_refusals(shape, rows)
    why = _reasons(
        diagnosis.gather_refusals(cluster, shape, answers.boards.world(shape), rows, bits)
    )
    result: dict[str, dict[str, Any]] = {}
    for i in np.argsort(cluster.nodes.columns.rank[rows]).tolist():
        status, reasons = why.get(i, _FITS)
        result[cluster.nodes.name_of(int(rows[i]))] = {
            "feasible": i not in why,
            "status": status,
            "reasons": reasons,
            **scores(points_on(cluster, shape, int(rows[i])), weights),
        }
    return Verdicts(result, weights)


def _reasons(judged: Judged) -> dict[int, tuple[str, list[str]]]:
    """By position among the rows: status and reasons of those that do not fit."""
    found = {}
    for positions, told in table.tell(judged):
        for i, which, unresolvable in zip(
            positions.tolist(), told.which, told.unresolvable.tolist(), strict=True
        ):
            status = "unresolvable" if unresolvable else "unschedulable"
            found[i] = status, [told.texts[k] for k in np.flatnonzero(which)]
    return found


def points_on(cluster: Cluster, shape: Shape, row: int) -> list[Points]:
    """Of every rule that scores, on an up-to-date board; none where the pod does not fit."""
    board = shape.board
    if board.key[row] < 0:
        return []
    points = table.points(shape.asked, shape.ask, cluster.nodes.columns, board, row)
    points += shape.static.points(board, row, shape.weights) if shape.static else []
    return points + shape.counted.points(row)


def scores(points: list[Points], weights: dict[str, int]) -> dict[str, Any]:
    """What a node has of every score, by its name, and the sum; ``weights`` learns what each counts."""
    weights.update((one.name, one.weight) for one in points)
    total = sum(one.weight * one.points for one in points)
    return {
        "raw": {one.name: one.raw for one in points},
        "scores": {one.name: one.points for one in points},
        "weighted": {one.name: round(one.weight * one.points, 6) for one in points},
        "total": round(total, 6) if points else None,
    }
