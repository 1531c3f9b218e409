"""Decisions for pods of a shape that has no board: one pod at a time, and their scores are not kept.

A board pays off only if pods of its shape come again. Before that, a decision uses what all shapes share: which nodes
are alike, what is free on each node, and which pods static rules let in.
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
from scheduler.shapes.device_states import DeviceStates
from scheduler.shapes.statics import Static, Statics
from scheduler.shapes.views import View
from scheduler.state.cluster import Cluster

# How many pods of a template are placed without a board. A board costs as much as about ten such decisions.
_LIKE = 4
_Counts = WeakKeyDictionary[PodTemplate, int]


@dataclass(slots=True)
class _Kept:
    """What is kept for one family of devices.

    Attributes:
        figures: the arrays of the kernel.
        moved: the position in the state's log of moved rows up to which ``figures`` have read.
        tables: the learnt tables from which ``figures`` were computed.
        sizes: for how many rows and cards ``figures`` were made, and whether for cards that can be cut.
    """

    figures: schema.Cold = field(default_factory=lambda: schema.make_empty(0, 0))
    moved: int = -1
    tables: c.Demand | None = None
    sizes: tuple[int, int, bool] = (0, 0, False)


class Cold:
    """Places pods of shapes without a board; keeps what such decisions share."""

    def __init__(
        self, cluster: Cluster, learner: Learner, statics: Statics, states: DeviceStates
    ) -> None:
        self._cluster, self._learner, self._statics = cluster, learner, statics
        self._states = states
        # By family: pods that request another family see other cards and are scored by another demand.
        self._kept: defaultdict[int, _Kept] = defaultdict(_Kept)
        # How many pods of a template were placed without a board; an entry ends with the last pod of the template.
        self._came: _Counts = WeakKeyDictionary()
        # The same of templates whose pods have claims, for claims that request the same.
        self._with_claims: WeakKeyDictionary[View, _Counts] = WeakKeyDictionary()

    def count_taken(self, shape: Shape, n: int) -> int:
        """Count how many of n pods of a shape without a board ``place`` should place; the others are worth a board."""
        if not self._can_place(shape):
            return 0
        came = self._find_counts(shape).get(shape.asked.template, 0)
        if came + n <= _LIKE:
            return n
        # The first pod shows whether there is room at all: no board is made for pods that fit nowhere.
        return 1 if came == 0 else 0

    def place(self, shape: Shape, world: World, placed: Run) -> bool:
        """Place one pod of a shape that ``count_taken`` takes, as the first pod of ``placed``; return whether it fits.

        Ranks and the world must be up to date.
        """
        cluster = self._cluster
        self._states.refresh()
        of_family = self._kept[shape.ask.family]
        moved = self._find_changed_rows(of_family, shape.ask.family)
        static = self._get_static(shape)
        kept = of_family.figures
        kept.refused, kept.scores, kept.moved = static.refused, static.scores, moved
        if placed.among.size:
            kept.refused = np.where(placed.among, static.refused, 1)
        if static.told or kept.weights.size:
            kept.weights = static.make_norms(shape.weights)[:, c.NORM_WEIGHT].copy()
        fits = choose.place_one(world, shape.ask, kept, placed)
        of_family.moved = cluster.moved.position
        if fits:
            template, counts = shape.asked.template, self._find_counts(shape)
            counts[template] = 1 + counts.get(template, 0)
        return fits

    def _find_counts(self, shape: Shape) -> _Counts:
        """Find by which count of templates pods of a shape are counted."""
        if shape.view.claims is None:
            return self._came
        return self._with_claims.setdefault(shape.view, WeakKeyDictionary())

    def _can_place(self, shape: Shape) -> bool:
        """Whether ``place`` can place a shape: like nodes must score alike, whatever other nodes there are.

        A mode that draws lots, tallies, and annotations that name cards make like nodes score differently.
        """
        gpu = shape.asked.template.gpu
        if shape.ask.more:
            # Classes compare the cards of one family.
            return False
        if shape.ask.claims.is_ranked or not shape.ask.claims.by_state:
            # Alternatives of claims are scored beside those of all nodes, and like nodes have single devices that differ.
            return False
        if gpu is not None and (gpu.use_uuids or gpu.nouse_uuids):
            return False
        if gpu is not None and (gpu.any_idle or any(one.core_percent for one in gpu.containers)):
            # What is kept of cards knows no percentage of their cores, and no mode that idle cards lose; devices that are
            # counted have neither.
            managed = self._cluster.nodes.pools.list_managed_families()
            if shape.ask.family in managed:
                return False
        if len(shape.counted) or table.draws_lots(shape.asked):
            return False
        return not self._get_static(shape).is_relative

    def _get_static(self, shape: Shape) -> Static:
        static = shape.static = shape.static or self._statics.get_static(shape.asked)
        static.refresh(self._cluster)
        return static

    def _find_changed_rows(self, kept: _Kept, family: int) -> c.Ints:
        """Find the rows that moved since the last decision; all rows if every figure is to be computed again."""
        cluster, tables = self._cluster, self._learner.get_tables(family)
        # Pods that request no devices may go to nodes with cards of any family.
        has_cards = family < 0 or family in cluster.nodes.pools.list_managed_families()
        n_cards = cluster.cards.columns.numa.size if has_cards else 0
        has_parts = has_cards and cluster.cards.has_parts
        sizes = cluster.nodes.capacity, n_cards, has_parts
        moved = cluster.moved.list_since(kept.moved) if kept.moved >= 0 else None
        if (
            moved is None
            or (kept.tables is not tables and not _differ_in_places(kept.tables, tables))
            or sizes != kept.sizes
        ):
            kept.figures = schema.make_empty(*sizes[:2], has_parts=has_parts)
            kept.sizes = sizes
            moved = np.arange(cluster.nodes.capacity)
        elif kept.tables is not tables:
            # Nodes that were alike are still alike; only their scores are not fresh.
            kept.figures.known.fresh[:] = False
        kept.tables = tables
        return moved


def _differ_in_places(before: c.Demand | None, now: c.Demand) -> bool:
    """Whether two tables differ only in the places of nodes."""
    return before is not None and before.price is now.price and before.fgd is now.fgd
