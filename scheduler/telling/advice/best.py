"""The best nodes for a pod, compared as the cycle compares them, with all scores and the usage after placement."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler.api import names
from scheduler.api.placement import PACK, SPREAD
from scheduler.schema import columns as c
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Shape
from scheduler.state.pods import PodRecord
from scheduler.telling import verdicts
from scheduler.telling.advice import losses
from scheduler.telling.advice.asking import Asking
from scheduler.telling.advice.losses import Loss

_OBJECTIVES = {c.NO_OBJECTIVE: "", c.SPREAD_NODES: SPREAD, c.PACK_NODES: PACK}


class Usage(NamedTuple):
    """How much of a resource would be in use on a node with the pod; in base units."""

    resource: str
    used: int
    total: int


class Scored(NamedTuple):
    """A node that takes the pod.

    Attributes:
        place: the node's rank; the pod would go to the node of place 1.
        preference: decides by the objective among nodes with equal scores; the highest comes first.
        scores: as ``verdicts.make_scores`` makes them.
        loss: the loss by mode ``keel``, None for another mode.
        after: the usage of CPU and memory, and of every other resource that the pod requests.
    """

    row: int
    place: int
    preference: int
    scores: dict[str, Any]
    loss: Loss | None
    after: tuple[Usage, ...]


class Best(NamedTuple):
    """The best nodes, the number of nodes that fit, the weight of each score, and the objective for equal scores."""

    nodes: tuple[Scored, ...]
    n_fitting: int
    weights: dict[str, int]
    objective: str


def find_best(asking: Asking, pod: PodRecord, most: int, also: int = -1) -> Best:
    """Find the best ``most`` nodes that take a pod, the best first, and the node of the row ``also`` if it takes it."""
    shape = asking.answers.get_shape(pod)
    if shape is None:
        return Best((), 0, {}, "")
    asking.answers.boards.refresh(shape)
    rows = diagnosis.list_rows(asking.cluster)
    key = shape.board.key[rows]
    n_fitting = int((key >= 0).sum())
    # Of equal nodes the first by name comes first, because rows come in the order of names.
    order = rows[np.argsort(-key, kind="stable")[:n_fitting]].tolist()
    weights: dict[str, int] = {}
    told = [(i, row) for i, row in enumerate(order, 1) if i <= most or row == also]
    nodes = tuple(
        Scored(
            row,
            place,
            int(shape.board.part[row]) % shape.ask.prefers.mode.unit,
            verdicts.make_scores(verdicts.list_points(asking.cluster, shape, row), weights),
            losses.measure_loss(asking, shape, row),
            tuple(_list_usage(asking, shape, row)),
        )
        for place, row in told
    )
    return Best(nodes, n_fitting, weights, _OBJECTIVES[shape.ask.prefers.mode.objective])


def _list_usage(asking: Asking, shape: Shape, row: int) -> list[Usage]:
    nodes = asking.cluster.nodes.columns
    asked = dict(shape.asked.template.requests.amounts)
    by_cards = asking.cluster.registers.find_driver(shape.ask.family, row) is not None
    found = []
    for resource in dict.fromkeys([names.CPU, names.MEMORY, *asked]):
        at = asking.cluster.nodes.find_row_asked(resource)
        total = int(nodes.allocatable[at, row])
        # The node counts how many pods may share its cards, which does not measure the usage of cards.
        if total and not (by_cards and resource == shape.asked.template.family):
            used = int(nodes.requested[at, row]) + asked.get(resource, 0)
            found.append(Usage(resource, used, total))
    return found
