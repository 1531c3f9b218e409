"""The mode's score, in the place of kube-scheduler's NodeResourcesFit and NodeResourcesBalancedAllocation.

Mode ``kube-scheduler`` uses these two, each with its own weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from scheduler.api import names
from scheduler.api.placement import PACK, SPREAD, Mode
from scheduler.api.pods.gpus import SIZES
from scheduler.devices import card_order
from scheduler.kernels import parts
from scheduler.kernels.devices import gpus, pools
from scheduler.kernels.modes import aware, score
from scheduler.plugins import kube_scores
from scheduler.plugins.contract import Asked, Compiled, Points, Row, Rule
from scheduler.schema import choice_scores, empty, shared
from scheduler.schema import columns as c
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
# In so many steps of a point, no two different float32 scores of a node policy become equal.
_STEPS = 1 << 26
# How finely keel distinguishes nodes on which a pod has almost the same loss.
_SECOND_STEPS = 1 << 10
_MILLI_POINTS = 100_000
# The name of the points for links between cards.
_LINKS = "links"
_OBJECTIVES = {SPREAD: c.SPREAD_NODES, PACK: c.PACK_NODES}
_NODE_POLICIES = {"binpack": score.NODE_BINPACK, "spread": score.NODE_SPREAD}
# Modes that read the demand that was learnt.
_LEARNING = frozenset(
    {aware.KEEL, aware.FGD, aware.BEST_FIT, aware.DOT_PRODUCT, aware.CLUSTERING, aware.RANDOM}
)


def _is_learning(ask: c.Ask) -> bool:
    return int(ask.prefers.mode.aware) in _LEARNING


def _draws_lots(asked: Asked) -> bool:
    return asked.placement.mode == Mode.RANDOM


def _compile_request(asked: Asked, cluster: Cluster) -> Compiled:
    is_kube, amounts = asked.placement.is_kube, dict(asked.template.requests.amounts)
    return Compiled(
        {
            "kube": kube_scores.compile_term(asked, cluster.nodes)
            if is_kube
            else empty.make_kube_term(),
            "dim_amounts": np.array(
                [amounts.get(one or "", 0) for one in _list_dims(asked)], np.int64
            ),
        }
    )


def _compile_preferences(asked: Asked, cluster: Cluster) -> Mapping[str, Any]:
    placement, row_asked = asked.placement, cluster.nodes.find_row_asked
    dims = [-1 if name is None else row_asked(name) for name in _list_dims(asked)]
    return {
        "mode": _compile_mode(asked),
        "weights": shared.make_ints(*placement.weights),
        "dims": shared.make_ints(*dims),
        "curve": shared.make_curve(
            placement.kube.fit.shape if placement.is_kube else placement.curve
        ),
        "sizes": shared.make_ints(*map(row_asked, _list_totals(asked))),
    }


def _list_dims(asked: Asked) -> tuple[str | None, ...]:
    """List the resource of each dimension; None for dimensions of GPUs, whose amounts depend on the chosen cards."""
    placement = asked.placement
    return (
        names.CPU, names.MEMORY, None, None, placement.iops_resource, placement.network_resource
    )  # fmt: skip


def _list_totals(asked: Asked) -> tuple[str, ...]:
    return SIZES if AWARE.get(asked.placement.mode) == aware.CLUSTERING else ()


def _compile_mode(asked: Asked) -> c.ModeTerm:
    """Compile the mode's term; a node policy replaces the mode."""
    placement = asked.placement
    policy, weight, unit = placement.node_policy, placement.mode_weight, _compute_unit(asked)
    if policy:
        scorer = _find_scorer(asked)
        extra = choice_scores.MOST[scorer]
        return _term(
            _NODE_POLICIES[policy], weight, -1, c.NO_OBJECTIVE, unit, scorer=scorer, extra=extra
        )
    blind, aware_mode = BLIND.get(placement.mode, score.MOST), AWARE.get(placement.mode, -1)
    none = choice_scores.NO_SCORE
    return _term(blind, weight, aware_mode, _choose_objective(asked), unit, scorer=none, extra=0)


_term = lru_cache(maxsize=64)(c.ModeTerm)


def _find_scorer(asked: Asked) -> int:
    """Find what the vendor of the pod's devices adds to the score of a node policy."""
    gpu = asked.template.gpu
    return gpu.scorer if gpu is not None else choice_scores.NO_SCORE


def _choose_objective(asked: Asked) -> int:
    """Choose which of two nodes with equal scores comes first.

    Mode ``keel`` spreads pods without devices, because such pods fit best where every node has room left. Pods with
    devices have no such objective, because devices should stay whole.
    """
    placement = asked.placement
    if placement.objective:
        return _OBJECTIVES[placement.objective]
    has_devices = bool(asked.template.gpu or (asked.claims and asked.claims.pending))
    by_itself = placement.mode == Mode.KEEL and not has_devices
    return c.SPREAD_NODES if by_itself else c.NO_OBJECTIVE


def _compute_unit(asked: Asked) -> int:
    """Compute how many steps of a key one milli-point takes.

    A node policy and keel's second objective need steps within a milli-point, as far as keys have room for them.
    """
    placement, own = asked.placement, 1
    if placement.node_policy:
        least, steps = parts.POLICY_MOST, _STEPS
        # What vendors add goes up and down, and takes as much room as so many scores of a node.
        own += -(-2 * choice_scores.MOST[_find_scorer(asked)] // parts.POLICY_MOST)
    elif placement.mode == Mode.KEEL:
        least, steps = 1, _SECOND_STEPS
    else:
        return 1
    # Links between cards have as many points as the mode.
    own += card_order.is_linked(placement)
    # The most milli-points that all terms can add up to.
    most = (placement.kube.weight_most + placement.mode_weight * own) * 100_000
    while least * steps * (most + 1) >= parts.TIER and steps > 1:
        steps >>= 1
    return least * steps


def _list_points(
    asked: Asked, ask: c.Ask, nodes: c.Nodes, board: c.Board, row: int
) -> tuple[Points, ...]:
    """List the points of a row: a mode's raw score is its points, a node policy's is 0..30, and what vendors add.

    What links add to a mode stands in a row of its own; of nodes with equal scores of a node policy they choose one.
    """
    placement = asked.placement
    if placement.is_kube:
        return kube_scores.list_points(asked, nodes, ask, row)
    policy, weight, term = placement.node_policy, placement.mode_weight, ask.prefers.mode
    links = int(board.links[row]) if board.links.size else 0
    if policy:
        steps = (int(board.part[row]) // weight - links) // _MILLI_POINTS
        raw = float(gpus.score_node(nodes, pools.find_pool(nodes, ask, row)))
        if term.scorer or parts.is_by_units(ask):
            # Up to rounding: the part has what the vendor adds in it.
            found = steps * parts.POLICY_MOST / term.unit - term.extra
            raw = round(found if policy == "binpack" else parts.POLICY_MOST - found, 3)
        name = card_order.name_node_score(policy)
        own = (Points(name, raw, 100 * steps / term.unit, weight),)
        return (*own, Points(_LINKS, links / 1000, links / 1000, 0)) if links else own
    # The division drops the second objective, which is less than a milli-point.
    points = (int(board.part[row]) // term.unit / weight - links) / 1000
    own = (Points(str(placement.mode), points, points, weight),)
    return (*own, Points(_LINKS, links / 1000, links / 1000, weight)) if links else own


RULE = Rule(
    name="Mode",
    row=Row(
        compile=_compile_request,
        prefers=_compile_preferences,
        points=_list_points,
        is_learning=_is_learning,
        draws_lots=_draws_lots,
        totals=_list_totals,
    ),
)
