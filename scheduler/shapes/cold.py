"""Pods of a kind that has no board: they are decided one at a time, and their scores are not kept.

A board pays when pods of its kind come again. Before that, what all kinds have in common is all there is:
which nodes are alike, what is free on them, and whom their words let in.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.api.pods.templates import PodTemplate
from scheduler.kernels.cold import choose
from scheduler.modes.learning import Learner
from scheduler.plugins import table
from scheduler.schema import cold as schema
from scheduler.schema import columns as c
from scheduler.schema.world import Run, World
from scheduler.shapes.boards import Shape
from scheduler.shapes.statics import Static, Statics
from scheduler.state.cluster import Cluster

# A board costs as much as some ten decisions without one.
_LIKE = 4


@dataclass(slots=True)
class _Kept:
    """What is kept for one family, the position up to which it has read, and by which tables."""

    figures: schema.Cold = field(default_factory=lambda: schema.empty(0, 0))
    moved: int = -1
    tables: c.Demand | None = None


class Cold:
    """What is kept of a cluster's nodes for kinds of pods that come for the first time."""

    def __init__(self, cluster: Cluster, learner: Learner, statics: Statics) -> None:
        self._cluster, self._learner, self._statics = cluster, learner, statics
        # By family: pods that ask another one see other cards and are judged by another demand.
        self._kept: defaultdict[int, _Kept] = defaultdict(_Kept)
        # How many pods of a template were placed without a board; it goes with the last of them.
        self._came: WeakKeyDictionary[PodTemplate, int] = WeakKeyDictionary()

    def share(self, shape: Shape, n: int) -> int:
        """How many of n like pods, of a shape that has no board, are best decided without one."""
        if not self._takes(shape):
            return 0
        came = self._came.get(shape.asked.template, 0)
        if came + n <= _LIKE:
            return n
        # The first tells whether there is room at all: for pods that fit nowhere no board is made.
        return 1 if came == 0 else 0

    def place(self, shape: Shape, world: World, placed: Run) -> bool:
        """Place a pod of a shape that ``share`` takes, as the first of ``placed``; whether it fits there anywhere.

        Ranks and the world must be up to date.
        """
        cluster = self._cluster
        of_family = self._kept[shape.ask.pool]
        moved = self._changed(of_family, shape.ask.pool)
        static = self._static(shape)
        kept = of_family.figures
        kept.refused, kept.scores, kept.moved = static.refused, static.scores, moved
        if placed.among.size:
            kept.refused = np.where(placed.among, static.refused, 1)
        if static.told or kept.weights.size:
            kept.weights = static.norms(shape.weights)[:, c.NORM_WEIGHT].copy()
        fits = choose.place_one(world, shape.ask, kept, placed)
        of_family.moved = cluster.moved.position
        if fits:
            template = shape.asked.template
            self._came[template] = 1 + self._came.get(template, 0)
        return fits

    def _takes(self, shape: Shape) -> bool:
        """Not where lots are drawn, or what tells like nodes apart depends on where the pod fits or is counted."""
        gpu = shape.asked.template.gpu
        if gpu is not None and (gpu.use_uuids or gpu.nouse_uuids):
            return False
        if len(shape.counted) or table.draws_lots(shape.asked):
            return False
        return not self._static(shape).is_relative

    def _static(self, shape: Shape) -> Static:
        static = shape.static = shape.static or self._statics.get_static(shape.asked)
        static.refresh(self._cluster)
        return static

    def _changed(self, kept: _Kept, pool: int) -> c.Ints:
        """The rows that moved since the last decision; all, where everything is to be read anew."""
        cluster, tables = self._cluster, self._learner.get_tables(pool)
        # Pods that ask no devices find nodes with cards of any family.
        has_cards = pool < 0 or cluster.registers.find_driver(pool) is not None
        n_cards = cluster.cards.columns.numa.size if has_cards else 0
        sizes = cluster.nodes.capacity, n_cards
        moved = cluster.moved.list_since(kept.moved) if kept.moved >= 0 else None
        if (
            moved is None
            or (kept.tables is not tables and not _only_places(kept.tables, tables))
            or sizes != (kept.figures.known.fresh.size, len(kept.figures.known.card))
        ):
            kept.figures = schema.empty(*sizes)
            moved = np.arange(cluster.nodes.capacity)
        elif kept.tables is not tables:
            # What tells nodes apart is as before.
            kept.figures.known.fresh[:] = False
        kept.tables = tables
        return moved


def _only_places(before: c.Demand | None, now: c.Demand) -> bool:
    """Whether tables differ in the places of nodes alone."""
    return before is not None and before.price is now.price and before.fgd is now.fgd
