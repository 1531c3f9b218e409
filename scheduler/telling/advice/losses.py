"""What a placement by ``keel`` loses, term by term: the kernel computes each term with all other terms set to 0.

A loss is linear in the figures of the tables, so the same kernel chooses nodes and explains the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from scheduler.kernels import parts
from scheduler.kernels.modes import aware
from scheduler.schema import columns as c
from scheduler.schema import places as p
from scheduler.schema.places import Places
from scheduler.shapes.boards import Shape
from scheduler.telling.advice.asking import Asking

MILLI_GPU, MILLI_NODE = "milli-GPU", "thousandths of a node"
PLACES = "places for typical pods"
_OF_NODES: Mapping[str, tuple[int, ...]] = {
    PLACES: (p.FULL, p.PART),
    "the best filling": (p.MIX,),
    "what is left": (p.REST,),
    "what was in use": (p.USED,),
    "unevenness": (p.UNEVEN,),
    "fullness": (p.SQUARE,),
    "what is left, to pack": (p.PACKED,),
}
_OF_RATES: Mapping[str, tuple[int, ...]] = {
    "GPUs left without CPU or memory": (c.RATE_SHORT,),
    "left over on the node": (c.RATE_LEFT, c.RATE_LEFT_CPU),
    "GPU fragments": (c.RATE_DEPARTURES,),
}
_OTHERS, _CUT, _REMAINDER = "GPUs that other pods need", "splitting a card", "left over on the card"
_LISTED = 3
# A smaller figure is no loss but the rounding error of a sum.
_LEAST = 1e-6


class TypicalLoss(NamedTuple):
    """What typical pods of one size lose; amounts in base units, for cards core percent and MiB."""

    requests: dict[str, int]
    lost: float


class Loss(NamedTuple):
    """What a pod loses on a node.

    Attributes:
        unit: ``MILLI_NODE``, 1,000 of which are an average empty node, or ``MILLI_GPU``.
        total: the sum; smaller is better. It may be below 0, because the value of the pod itself, which is equal on all
            nodes, is left out.
        terms: the terms that are not 0, the largest first.
        places: the most expensive places for typical pods that are lost.
    """

    unit: str
    total: float
    terms: dict[str, float]
    places: tuple[TypicalLoss, ...]


def measure_loss(asking: Asking, shape: Shape, row: int) -> Loss | None:
    """Measure what a pod of the shape loses on a node that takes it; None if mode ``keel`` does not score the pod."""
    if shape.ask.prefers.mode.aware != aware.KEEL or shape.asked.placement.node_policy:
        return None
    known = asking.answers.learner.get_tables(shape.ask.family)
    nodes = asking.cluster.nodes.columns
    if nodes.has_gpu[row] and not known.single.resources.size:
        terms = _split_device_loss(asking, shape, row, known)
        return Loss(MILLI_GPU, _compute_loss(asking, shape, row, known), _sort_terms(terms), ())
    is_single = bool(nodes.has_gpu[row])
    places = known.single if is_single else known.places

    def lost(told: Places) -> float:
        told_all = known.replace(single=told) if is_single else known.replace(places=told)
        return _compute_loss(asking, shape, row, told_all)

    terms = {name: lost(_keep_weights(places, weights)) for name, weights in _OF_NODES.items()}
    typical = [] if abs(terms[PLACES]) < _LEAST else _list_typical(asking, places, lost)
    return Loss(MILLI_NODE, lost(places), _sort_terms(terms), tuple(typical[:_LISTED]))


def _compute_loss(asking: Asking, shape: Shape, row: int, told: c.Demand) -> float:
    found = parts.find_loss(asking.answers.boards.get_world(shape), shape.ask, told, row)
    return 0.0 if math.isnan(found) else float(found)


def _keep_weights(places: Places, kept: tuple[int, ...]) -> Places:
    weights = np.zeros_like(places.weights)
    weights[p.STEP] = places.weights[p.STEP]
    weights[list(kept)] = places.weights[list(kept)]
    return places.replace(weights=weights)


def _split_device_loss(asking: Asking, shape: Shape, row: int, known: c.Demand) -> dict[str, float]:
    rates = known.rates.copy()
    for kept in _OF_RATES.values():
        rates[list(kept)] = 0.0
    bare = known.replace(
        price=np.zeros_like(known.price), value=np.zeros_like(known.value), rates=rates
    )
    rest = _compute_loss(asking, shape, row, bare)
    found = {
        _OTHERS: _compute_loss(asking, shape, row, bare.replace(price=known.price)) - rest,
        _CUT: _compute_loss(asking, shape, row, bare.replace(value=known.value)) - rest,
        _REMAINDER: rest,
    }
    for name, kept in _OF_RATES.items():
        with_it = rates.copy()
        with_it[list(kept)] = known.rates[list(kept)]
        found[name] = _compute_loss(asking, shape, row, bare.replace(rates=with_it)) - rest
    return found


def _list_typical(
    asking: Asking, places: Places, lost: Callable[[Places], float]
) -> list[TypicalLoss]:
    """List the loss of each typical pod, the most expensive first."""
    only, found = _keep_weights(places, _OF_NODES[PLACES]), []
    for k in np.flatnonzero(places.worth > 0).tolist():
        worth = np.zeros_like(places.worth)
        worth[k] = places.worth[k]
        if (cost := lost(only.replace(worth=worth))) > _LEAST:
            found.append(TypicalLoss(_name_requests(asking, places, k), cost))
    return sorted(found, key=lambda one: -one.lost)


def _name_requests(asking: Asking, places: Places, k: int) -> dict[str, int]:
    named = {p.OF_CORES: "GPU cores %", p.OF_MIB: "GPU memory MiB"}
    return {
        named.get(row) or asking.cluster.nodes.resources.values[row]: round(1 / per)
        for row, per in zip(places.resources.tolist(), places.per[:, k].tolist(), strict=True)
        if per > 0
    }


def _sort_terms(terms: Mapping[str, float]) -> dict[str, float]:
    kept = {name: lost for name, lost in terms.items() if abs(lost) >= _LEAST}
    return dict(sorted(kept.items(), key=lambda term: -abs(term[1])))
