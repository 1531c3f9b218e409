"""The best nodes for a pod, with all scores and the use after placement, compared as the cycle compares them."""

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
    """How much of a resource would be in use on a node once the pod is there; in base units."""

    resource: str
    used: int
    total: int


class Scored(NamedTuple):
    """A node that takes the pod.

    Attributes:
        place: 1 is where the pod would go.
        preference: among nodes that score alike the highest comes first, by the objective.
        scores: as ``verdicts.scores``.
        loss: by mode ``keel``, None by another.
        after: of every resource that the pod asks, and of CPU and memory in any case: what modes score by.
    """

    row: int
    place: int
    preference: int
    scores: dict[str, Any]
    loss: Loss | None
    after: tuple[Usage, ...]


class Best(NamedTuple):
    """The best nodes, how many there are in all, the weight of each score, and which of equals comes first."""

    nodes: tuple[Scored, ...]
    n_fitting: int
    weights: dict[str, int]
    objective: str


def find_best(asking: Asking, pod: PodRecord, most: int, also: int = -1) -> Best:
    """So many of the nodes that take a pod, the best first, and that of the row ``also`` if it is one."""
    shape = asking.answers.get_shape(pod)
    if shape is None:
        return Best((), 0, {}, "")
    asking.answers.boards.refresh(shape)
    rows = diagnosis.all_rows(asking.cluster)
    key = shape.board.key[rows]
    n_fitting = int((key >= 0).sum())
    # Ties go to the first by name, and rows come so.
    order = rows[np.argsort(-key, kind="stable")[:n_fitting]].tolist()
    weights: dict[str, int] = {}
    told = [(i, row) for i, row in enumerate(order, 1) if i <= most or row == also]
    nodes = tuple(
        Scored(
            row,
            place,
            int(shape.board.part[row]) % shape.ask.prefers.mode.unit,
            verdicts.scores(verdicts.points_on(asking.cluster, shape, row), weights),
            losses.measure_loss(asking, shape, row),
            tuple(_after(asking, shape, row)),
        )
        for place, row in told
    )
    return Best(nodes, n_fitting, weights, _OBJECTIVES[shape.ask.prefers.mode.objective])


def _after(asking: Asking, shape: Shape, row: int) -> list[Usage]:
    nodes, pool = asking.cluster.nodes.columns, shape.ask.pool
    asked = dict(shape.asked.template.requests.amounts)
    by_cards = pool >= 0 and bool(nodes.managed[pool, row])
    found = []
    for resource in dict.fromkeys([names.CPU, names.MEMORY, *asked]):
        at = asking.cluster.nodes.find_row_asked(resource)
        total = int(nodes.allocatable[at, row])
        # Of cards the node counts how many pods may share them, which is no measure of what is in use.
        if total and not (by_cards and resource == shape.asked.template.family):
            used = int(nodes.requested[at, row]) + asked.get(resource, 0)
            found.append(Usage(resource, used, total))
    return found
