"""What every node says of one pod: fits or not, why, and its scores; for explanations only."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.api.reasons import UNRESOLVABLE, WORDS, Refusal
from scheduler.cycle import diagnosis
from scheduler.cycle.boards import Shape
from scheduler.cycle.schedule import Cycle
from scheduler.kernels import board as kernel
from scheduler.kernels import parts
from scheduler.kernels.devices import gpus
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


def all_nodes(cluster: Cluster, cycle: Cycle, pod: PodRecord) -> dict[str, dict[str, Any]]:
    """Per node name: feasible, status, reasons, scores by name, total; in name order.

    Scores are points 0..100 as kube-scheduler counts them (HAMi's node score 0..30); the total is
    their weighted sum as the cycle compares it. Nodes that do not fit have no scores.
    """
    shape = cycle.shape_of(pod)
    if shape is None:
        return {}
    cycle.boards.refresh(shape)
    rows, verdict, short, codes = diagnosis.of_rows(
        cluster, shape, cycle.boards.scratch, diagnosis.all_rows(cluster)
    )
    beyond = diagnosis.beyond_capacity(cluster, shape, rows, short)
    result: dict[str, dict[str, Any]] = {}
    for i in np.argsort(cluster.nodes.columns.rank[rows]).tolist():
        row, refusal = int(rows[i]), Refusal(int(verdict[i]))
        if refusal == Refusal.NONE:
            status, reasons = "fit", []
        elif refusal == Refusal.RESOURCES:
            status = "unresolvable" if beyond[i] else "unschedulable"
            reasons = [
                diagnosis.resource_reason(shape.resources[k]) for k in np.flatnonzero(short[i])
            ]
        elif refusal == Refusal.CARDS:
            cards = int(diagnosis.n_cards(cluster, rows[i : i + 1])[0])
            status = "unschedulable" if cards > 0 else "unresolvable"
            reasons = [diagnosis.card_reason(codes[i], cards)]
        else:
            status = "unresolvable" if refusal in UNRESOLVABLE else "unschedulable"
            reasons = [WORDS[refusal]]
        result[cluster.nodes.name_of(row)] = {
            "feasible": refusal == Refusal.NONE,
            "status": status,
            "reasons": reasons,
            **_scores(cluster, shape, row),
        }
    return result


def _scores(cluster: Cluster, shape: Shape, row: int) -> dict[str, Any]:
    board = shape.board
    if board.part[row] < 0:
        return {"scores": {}, "total": None}
    affinity, taints = kernel.normalised(board, row)
    if shape.placement.node_policy:
        mode = f"hami-{shape.placement.node_policy}"
        points = float(gpus.node_score(cluster.nodes.columns, row))
        weighted = float(board.part[row]) / parts.HAMI_UNIT / 1000
    else:
        mode = str(shape.mode_on(has_gpu=bool(cluster.nodes.columns.has_gpu[row])))
        points = float(board.part[row]) / int(shape.ask.mode[1]) / 1000
        weighted = float(board.part[row]) / 1000
    scores = {mode: points, "TaintToleration": taints, "NodeAffinity": affinity}
    if shape.ask.card_rules[c.RULE_AVOID_GPU] and not cluster.nodes.columns.has_gpu[row]:
        scores["KeepsGpuNodesFree"] = 1
    total = weighted + kernel.TAINT_WEIGHT * taints + kernel.AFFINITY_WEIGHT * affinity
    return {"scores": scores, "total": round(total, 6)}
