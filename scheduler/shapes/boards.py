"""Shapes and what is known of each on every node.

A shape is a template with a placement and what rules about other pods see of a pod: all that decides where
a pod goes. Its board is computed once and then kept up with the rows that changed, so a thousand nodes cost
nothing until one of them moves.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from scheduler.api.placement import Placement
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import BrokenInvariant
from scheduler.kernels import diagnose
from scheduler.kernels import place as kernel
from scheduler.modes.learning import Learner
from scheduler.plugins import table
from scheduler.plugins.compiled_asks import AskCompiler
from scheduler.plugins.contract import Asked
from scheduler.plugins.rules import named_nodes
from scheduler.plugins.volumes.refusals import Refusal
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.schema.world import World
from scheduler.shapes.caches import IsThere, TemplateSizes
from scheduler.shapes.counted import Counted
from scheduler.shapes.statics import NODE_BYTES, Static, Statics
from scheduler.shapes.topologies import Topologies
from scheduler.shapes.views import View
from scheduler.shapes.withheld import Withheld
from scheduler.state.cluster import Cluster
from scheduler.state.structures.recent import Recent

# Live shapes at most, with all that they count. At 5,000 nodes a board is about 200 kB.
_SHAPES_MAX, _SHAPES_BYTES_MAX = 512, 160 << 20
# What a board takes for a node.
_BOARD_BYTES = 48
# Tallies of all live shapes at most. Every pod that comes or goes is compared with each tally, so shapes that have
# more tallies than usual workloads share a smaller number.
_TALLIES_MAX, _USUAL_TALLIES, _TALLIES_OF_UNUSUAL_MAX = 2048, 4, 512


class Key(NamedTuple):
    """All that decides where a pod goes.

    ``yields`` is None unless room is promised to others that it may not take: equal for pods that may not take
    the same.
    """

    template: PodTemplate
    placement: Placement
    view: View
    yields: Hashable = None

    @property
    def refusal(self) -> Refusal | None:
        """Why such a pod cannot go anywhere, whatever nodes there are; unless the template says so before."""
        storage = self.view.storage
        if storage is None:
            return None
        says_before = named_nodes.CONTRADICTION.name not in self.placement.kube.not_asked
        if self.template.node_names == () and says_before:
            return None
        return storage.refusal


@dataclass(slots=True, eq=False)
class Shape:
    """One shape, its compiled request and its board.

    ``key`` is what its pods are alike in; ``moved`` is the position in the state's log up to which the board has read, ``learnt`` the
    tables it was scored by, ``judged`` that of ``static``, what static rules say; ``most_picks`` the most
    cards that a pod of the shape can be given, at least 1; ``withheld`` says where it yields to others.
    """

    key: Key
    asked: Asked
    ask: c.Ask
    board: c.Board
    static: Static | None = None
    judged: int = -1
    counted: Counted = field(default_factory=Counted)
    moved: int = -1
    learnt: c.Demand | None = None
    most_picks: int = 1
    words: tuple[int, ...] = ()
    withheld: Withheld | None = None

    @property
    def view(self) -> View:
        """What rules about other pods need of its pods."""
        return self.key.view

    @property
    def weights(self) -> table.Weights:
        """What scores weigh in the profile of its pods."""
        return table.weights(self.asked.placement.kube)


class Boards:
    """The live shapes of one cluster.

    Attributes:
        statics: what static rules say of nodes, for shapes and beside.
        sizes: how much memory templates take.
    """

    def __init__(self, cluster: Cluster, learner: Learner) -> None:
        self._cluster = cluster
        self._learner = learner
        self.sizes = TemplateSizes()
        self._shapes: Recent[Key, Shape] = Recent(_SHAPES_MAX, _SHAPES_BYTES_MAX, self._size_of)
        self.statics = Statics(cluster, self.sizes)
        self._topologies = Topologies(cluster)
        # Tallies that were made since there was room for them: of usual shapes, and of those with more.
        self._n_tallied = [0, 0]
        self._world = World(cluster.ledger.tables, learner.tables, empty.scratch(1, 1, 1))
        self._no_run = empty.run()
        self._compiler = AskCompiler(cluster)

    def shape(self, key: Key) -> Shape:
        """The shape of pods that are alike in all that decides where they go."""
        return self._shapes.get(key) or self._shapes.put(key, self._new(key))

    def forget(self, is_there: IsThere) -> None:
        """Forget the shapes of pods that are gone, with all that they count."""
        self._shapes.keep(lambda key, _: is_there(key.template))
        self.statics.forget(is_there)

    def _size_of(self, key: Key, shape: Shape) -> int:
        # A shape may be the last that has what static rules say.
        capacity = self._cluster.nodes.capacity
        of_nodes = (_BOARD_BYTES + NODE_BYTES) * capacity + shape.counted.estimate_bytes(capacity)
        return 2 * self.sizes.estimate(key.template) + of_nodes

    def has(self, key: Key) -> bool:
        """Whether the shape is live: its next decision looks only at rows that changed."""
        return key in self._shapes

    def _new(self, key: Key) -> Shape:
        asked = Asked(key.template, key.placement, key.view.storage)
        return Shape(key, asked, _NO_ASK, _NO_BOARD)

    def unscored(self, key: Key) -> Shape:
        """A shape with its compiled request and no board, to ask what fits; it displaces no live one."""
        shape = self._new(key)
        self._compile_request(shape)
        self._fit_scratch(shape)
        return shape

    def world(self, shape: Shape) -> World:
        """What kernels read and write beside a pod of a shape; until the next call."""
        world = self._world
        world.demand = self._learner.get_tables(shape.ask.pool)
        return world

    def refusals(self, shape: Shape, rows: c.Ints) -> c.Ints:
        """[W, n] refusal bits of some rows, for a shape without an up-to-date board; 0 where the pod fits."""
        bits = np.zeros((table.words_of_bits(shape.asked.template), rows.size), np.int64)
        diagnose.judge(self.world(shape), shape.ask, rows, bits)
        self.count(shape)
        bits[0] |= self.statics.refusals(shape.asked, rows) | shape.counted.refusals(rows)
        return bits

    def count(self, shape: Shape) -> None:
        """Bring what a shape counts in domains up to date."""
        shape.counted.refresh(self._cluster, self._topologies)

    def refresh(self, shape: Shape) -> None:
        """Bring a shape's board up to date with the columns and with what was learnt."""
        rows = self.stale(shape)
        if rows.size:
            self._no_run.moved = rows
            kernel.place_run(self.world(shape), shape.ask, shape.board, self._no_run)
        self._scored(shape)

    def stale(self, shape: Shape) -> c.Ints:
        """The rows that a kernel has to score again before a shape's board is up to date; none when it is.

        All else that the shape is judged by is up to date then, as is the scratch.

        Raises:
            BrokenInvariant: ranks or tables are of other nodes (``Cycle`` brings them up to date when it is called), or
                a quiet trial is open, of which a board would keep what the trial has changed.
        """
        cluster = self._cluster
        if cluster.is_quiet:
            raise BrokenInvariant("a board is brought up to date in a quiet trial")
        if not self._learner.fits_nodes() or cluster.nodes.ranks_are_stale:
            raise BrokenInvariant("a shape is judged by ranks or tables of other nodes")
        moved = self._moved_rows(shape)
        words = (*cluster.cards.words, cluster.nodes.resources.generation)
        if moved is None or shape.words != words:
            shape.words = words
            self._compile_request(shape)
        stale = shape.learnt is not self._learner.get_tables(shape.ask.pool) and table.is_learning(
            shape.ask
        )
        counted = shape.counted.refresh(cluster, self._topologies)
        if moved is not None and shape.withheld is not None:
            moved = np.union1d(moved, shape.withheld.changed)
        if moved is not None and moved.size == 0 and not (stale or counted):
            return moved
        if moved is None:
            template = shape.asked.template
            shape.board = empty.board(cluster.nodes.capacity, table.words_of_bits(template))
            shape.judged = -1
        # Volumes that are in use or allocated elsewhere are counted on rows that have not moved.
        is_elsewhere = counted and shape.view.storage is not None
        if self._judge(shape) or stale or moved is None or is_elsewhere:
            moved = np.arange(cluster.nodes.capacity)
        if shape.board.domains is not shape.counted.arrays:
            shape.board.domains = shape.counted.arrays
        self._fit_scratch(shape)
        # What is counted in domains is judged anew with any row.
        return moved if moved.size else _ONE_ROW

    def restrict(self, shape: Shape, among: c.Flags) -> tuple[c.Board | None, c.Ints]:
        """An up-to-date board as it is ``among`` some rows, and the rows that are to be looked at again on it.

        None where the shape's own board tells which of them is best: no score of a node hangs on other nodes.
        """
        board, domains = shape.board, shape.board.domains
        is_relative = shape.static is not None and shape.static.is_relative
        if not is_relative and not (domains.scores.size and domains.figures[c.FIGURE_WIDE]):
            return None, _NO_ROWS
        norms = board.norms.copy()
        norms[:, c.NORM_MOST] = -1
        written = "tallies", "counts", "figures", "raw", "points", "seen"
        restricted = board.replace(
            static=np.where(among, board.static, 1),
            norms=norms,
            domains=domains.replace(**{name: getattr(domains, name).copy() for name in written}),
            refused=board.refused.copy(),
            part=np.where(among, board.part, -1),
            key=board.key.copy(),
            best=board.best.copy(),
        )
        return restricted, _ONE_ROW

    def draw(self, shape: Shape, number: int) -> None:
        """A decision of the mode that draws lots: every node's lot is drawn anew."""
        self.refresh(shape)
        shape.ask.rules = shape.ask.rules.replace(draw=number)
        shape.learnt = None

    def placed(self, shape: Shape) -> None:
        """The placing kernel has scored the rows that were stale, and those that it changed, the last that moved."""
        self._scored(shape)
        if not shape.view.is_single:
            shape.counted.catch_up()

    def _scored(self, shape: Shape) -> None:
        shape.moved = self._cluster.moved.position
        shape.learnt = self._learner.get_tables(shape.ask.pool)
        if shape.withheld is not None:
            shape.withheld.read()

    def _moved_rows(self, shape: Shape) -> c.Ints | None:
        if shape.moved < 0 or shape.board.part.size != self._cluster.nodes.capacity:
            return None
        return self._cluster.moved.list_since(shape.moved)

    def _judge(self, shape: Shape) -> bool:
        """Bring in what static rules say; whether every node has to be looked at again."""
        static = shape.static = shape.static or self.statics.get_static(shape.asked)
        static.refresh(self._cluster)
        is_new = shape.judged != static.generation
        if is_new:
            shape.judged = static.generation
            board = shape.board
            board.static, board.scores = static.refused, static.scores
            board.norms = static.norms(shape.weights)
            board.base[0] = static.base(shape.weights)
        if shape.withheld is not None:
            shape.board.static = static.refused | shape.withheld.bits[0]
        return is_new

    def _fit_scratch(self, shape: Shape) -> None:
        cards = self._cluster.cards.most_on_a_node
        picks = shape.most_picks
        tables = self._learner.get_tables(shape.ask.pool)
        typical = max(tables.keel.weight.size, tables.fgd.weight.size)
        s = self._world.scratch
        if s.order.size < cards or s.picks.size < picks or s.fits.size < typical:
            self._world.scratch = empty.scratch(
                max(cards, s.order.size), max(picks, s.picks.size), max(typical, s.fits.size)
            )

    def _compile_request(self, shape: Shape) -> None:
        self._cluster.keep_totals(table.totals(shape.asked))
        shape.ask = self._compiler.compile_ask(shape.asked)
        shape.counted = Counted(table.list_tallies(shape.view.needs, self._cluster), shape.weights)
        self._shapes.weigh(shape.key)
        self._make_room(shape)
        # No node has more cards than exist.
        most = self._cluster.cards.most_on_a_node
        wanted = shape.ask.containers[c.N_CARDS].tolist()
        shape.most_picks = max(1, sum(min(cards, most) for cards in wanted))

    def _make_room(self, new: Shape) -> None:
        """Let shapes go that were used longest ago, when there may be too many tallies."""
        is_unusual = len(new.counted) > _USUAL_TALLIES
        self._n_tallied[is_unusual] += len(new.counted)
        most = (_TALLIES_OF_UNUSUAL_MAX if is_unusual else _TALLIES_MAX) // 2
        if self._n_tallied[is_unusual] <= most:
            return
        self._n_tallied[is_unusual] = 0
        counting = [
            (key, one)
            for key, one in self._shapes.items()
            if len(one.counted) and (len(one.counted) > _USUAL_TALLIES) == is_unusual
        ]
        n_tallies = sum(len(one.counted) for _, one in counting)
        for key, one in counting:
            if n_tallies <= most:
                return
            if one is not new:
                self._shapes.drop(key)
                n_tallies -= len(one.counted)


# Of shapes that have not been compiled and scored yet.
_NO_ASK, _NO_BOARD = empty.ask(), empty.board(0)
_ONE_ROW: c.Ints = np.zeros(1, np.int64)
_NO_ROWS: c.Ints = np.zeros(0, np.int64)
