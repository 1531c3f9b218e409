"""The mode's term, where kube-scheduler scores by NodeResourcesFit and NodeResourcesBalancedAllocation.

Mode ``kube-scheduler`` is both of them, each with its own weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from scheduler.api import names
from scheduler.api.placement import PACK, SPREAD, Mode, Placement
from scheduler.api.pods.gpus import SIZES
from scheduler.devices import card_order
from scheduler.devices.table import place_of
from scheduler.kernels import parts
from scheduler.kernels.devices import gpus
from scheduler.kernels.modes import aware, score
from scheduler.plugins import kube_scores
from scheduler.plugins.contract import Asked, Compiled, Points, Row, Rule
from scheduler.schema import columns as c
from scheduler.schema import empty, shared
from scheduler.state.cluster import Cluster

BLIND = {
    Mode.LEAST_ALLOCATED: score.LEAST,
    Mode.MOST_ALLOCATED: score.MOST,
    Mode.BALANCED_ALLOCATION: score.BALANCED,
    Mode.REQUESTED_TO_CAPACITY_RATIO: score.RATIO,
    Mode.LAMBDA_G: score.LAMBDA_G,
    Mode.LAMBDA_G_V3: score.LAMBDA_G_V3,
    Mode.KUBE_SCHEDULER: score.KUBE,
}
AWARE = {
    Mode.KEEL: aware.KEEL,
    Mode.FGD: aware.FGD,
    Mode.BEST_FIT: aware.BEST_FIT,
    Mode.FIRST_FIT: aware.FIRST_FIT,
    Mode.DOT_PRODUCT: aware.DOT_PRODUCT,
    Mode.GPU_PACKING: aware.PACKING,
    Mode.GPU_CLUSTERING: aware.CLUSTERING,
    Mode.RANDOM: aware.RANDOM,
}
# In so many steps of a point of a node policy no two float32 scores are the same.
_STEPS = 1 << 26
# How finely keel distinguishes nodes on which a pod has almost the same loss.
_SECOND_STEPS = 1 << 10
_OBJECTIVES = {SPREAD: c.SPREAD_NODES, PACK: c.PACK_NODES}
_NODE_POLICIES = {"binpack": score.NODE_BINPACK, "spread": score.NODE_SPREAD}
# Modes that read what was learnt of the demand.
_LEARNING = frozenset(
    {aware.KEEL, aware.FGD, aware.BEST_FIT, aware.DOT_PRODUCT, aware.CLUSTERING, aware.RANDOM}
)


def _is_learning(ask: c.Ask) -> bool:
    return int(ask.prefers.mode.aware) in _LEARNING


def _draws_lots(asked: Asked) -> bool:
    return asked.placement.mode == Mode.RANDOM


def _compile(asked: Asked, cluster: Cluster) -> Compiled:
    is_kube, amounts = asked.placement.is_kube, dict(asked.template.requests.amounts)
    return Compiled(
        {
            "kube": kube_scores.compile_term(asked, cluster.nodes)
            if is_kube
            else empty.kube_term(),
            "dim_amounts": np.array([amounts.get(one or "", 0) for one in _dims(asked)], np.int64),
        }
    )


def _prefers(asked: Asked, cluster: Cluster) -> Mapping[str, Any]:
    placement, row_asked = asked.placement, cluster.nodes.find_row_asked
    dims = [-1 if name is None else row_asked(name) for name in _dims(asked)]
    return {
        "mode": _mode(asked),
        "weights": shared.ints(*placement.weights),
        "dims": shared.ints(*dims),
        "curve": shared.curve(placement.kube.fit.shape if placement.is_kube else placement.curve),
        "sizes": shared.ints(*map(row_asked, _totals(asked))),
    }


def _dims(asked: Asked) -> tuple[str | None, ...]:
    """The resource of each dimension; None for those of GPUs, whose amounts are known only with the cards."""
    placement = asked.placement
    return (
        names.CPU, names.MEMORY, None, None, placement.iops_resource, placement.network_resource
    )  # fmt: skip


def _totals(asked: Asked) -> tuple[str, ...]:
    return SIZES if AWARE.get(asked.placement.mode) == aware.CLUSTERING else ()


def _mode(asked: Asked) -> c.ModeTerm:
    """A node policy takes the mode's place."""
    placement = asked.placement
    policy, weight, unit = placement.node_policy, placement.mode_weight, _unit(placement)
    if policy:
        return _term(_NODE_POLICIES[policy], weight, -1, c.NO_OBJECTIVE, unit)
    blind, aware_mode = BLIND.get(placement.mode, score.MOST), AWARE.get(placement.mode, -1)
    return _term(blind, weight, aware_mode, _objective(asked), unit)


_term = lru_cache(maxsize=64)(c.ModeTerm)


def _objective(asked: Asked) -> int:
    """Nodes with room on each of them serve pods without devices best; devices are better left whole."""
    placement = asked.placement
    if placement.objective:
        return _OBJECTIVES[placement.objective]
    by_itself = placement.mode == Mode.KEEL and not asked.template.gpu
    return c.SPREAD_NODES if by_itself else c.NO_OBJECTIVE


def _unit(placement: Placement) -> int:
    """The value of a milli-point in a key: in steps of a node policy or of keel's second objective, if keys have room."""
    if placement.node_policy:
        least, steps = parts.POLICY_MOST, _STEPS
    elif placement.mode == Mode.KEEL:
        least, steps = 1, _SECOND_STEPS
    else:
        return 1
    # The most milli-points that all terms add up to.
    most = (placement.kube.weight_most + placement.mode_weight) * 100_000
    while least * steps * (most + 1) >= parts.TIER and steps > 1:
        steps >>= 1
    return least * steps


def _points(
    asked: Asked, ask: c.Ask, nodes: c.Nodes, board: c.Board, row: int
) -> tuple[Points, ...]:
    """A mode counts in points; a node policy counts 0..30, as ``gpus.node_score`` does."""
    placement = asked.placement
    if placement.is_kube:
        return kube_scores.points(asked, nodes, ask, row)
    policy, weight = placement.node_policy, placement.mode_weight
    if policy:
        points = float(board.part[row]) / weight / 1000
        pool = place_of(asked.template.family) if asked.template.gpu else int(nodes.pool[row])
        raw = float(gpus.node_score(nodes, pool, row))
        name = card_order.node_score_name(policy)
        return (Points(name, raw, points / _unit(placement), weight),)
    # Without the second objective, which is less than one of a milli-point.
    points = float(board.part[row] // _unit(placement)) / weight / 1000
    return (Points(str(placement.mode), points, points, weight),)


RULE = Rule(
    name="Mode",
    row=Row(
        compile=_compile,
        prefers=_prefers,
        points=_points,
        is_learning=_is_learning,
        draws_lots=_draws_lots,
        totals=_totals,
    ),
)
