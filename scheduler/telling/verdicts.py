"""For explanations: whether one pod fits on every node, the reasons if not, and the scores."""

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
    """The result of every node for one pod.

    Attributes:
        nodes: by name, in the order of names: feasible, status, reasons; and by score ``raw``, ``scores`` and
            ``weighted``, with their ``total``. Nodes on which the pod does not fit have no scores.
        weights: the weight of each score; 0 for a score that is compared before the totals.
    """

    nodes: dict[str, dict[str, Any]]
    weights: dict[str, int]


def judge_nodes(cluster: Cluster, answers: Answers, pod: PodRecord) -> Verdicts:
    """Evaluate one pod on all nodes.

    Scores are points 0..100 as in kube-scheduler; raw is the value from which the points are made. The total is the
    weighted sum that the cycle compares.
    """
    weights: dict[str, int] = {}
    shape = answers.get_shape(pod)
    if shape is None:
        return Verdicts({}, weights)
    answers.boards.refresh(shape)
    rows = diagnosis.list_rows(cluster)
    bits = answers.find_refusals(shape, rows)
    why = _collect_reasons(
        diagnosis.gather_refusals(cluster, shape, answers.boards.get_world(shape), rows, bits)
    )
    result: dict[str, dict[str, Any]] = {}
    for i in np.argsort(cluster.nodes.columns.rank[rows]).tolist():
        status, reasons = why.get(i, _FITS)
        result[cluster.nodes.find_name(int(rows[i]))] = {
            "feasible": i not in why,
            "status": status,
            "reasons": reasons,
            **make_scores(list_points(cluster, shape, int(rows[i])), weights),
        }
    return Verdicts(result, weights)


def _collect_reasons(judged: Judged) -> dict[int, tuple[str, list[str]]]:
    """Collect status and reasons of the rows that do not fit, by their position among the rows."""
    found = {}
    for positions, told in table.tell_reasons(judged):
        for i, which, unresolvable in zip(
            positions.tolist(), told.which, told.unresolvable.tolist(), strict=True
        ):
            status = "unresolvable" if unresolvable else "unschedulable"
            found[i] = status, [told.texts[k] for k in np.flatnonzero(which)]
    return found


def list_points(cluster: Cluster, shape: Shape, row: int) -> list[Points]:
    """List the points of a row by every rule that scores, on an up-to-date board; none if the pod does not fit."""
    board = shape.board
    if board.key[row] < 0:
        return []
    points = table.list_points(shape.asked, shape.ask, cluster.nodes.columns, board, row)
    points += shape.static.list_points(board, row, shape.weights) if shape.static else []
    return points + shape.counted.list_points(row)


def make_scores(points: list[Points], weights: dict[str, int]) -> dict[str, Any]:
    """Make the scores of a node by name, and their sum; the weight of each score is added to ``weights``."""
    weights.update((one.name, one.weight) for one in points)
    total = sum(one.weight * one.points for one in points)
    return {
        "raw": {one.name: one.raw for one in points},
        "scores": {one.name: one.points for one in points},
        "weighted": {one.name: round(one.weight * one.points, 6) for one in points},
        "total": round(total, 6) if points else None,
    }
