"""Shapes, and the board of each: its scores and refusals on every node.

A shape is a template, a placement and a view, which is what rules about other pods read from a pod. These three decide
where a pod goes. The board of a shape is computed once; afterwards only the rows of nodes that changed are computed
again. So a thousand nodes cost nothing until one of them changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from scheduler.api.cards import SLOTS_MAX
from scheduler.api.placement import Placement
from scheduler.api.pods.templates import PodTemplate
from scheduler.errors import BrokenInvariant
from scheduler.kernels import diagnose
from scheduler.kernels import place as kernel
from scheduler.modes.learning import Learner
from scheduler.plugins import table
from scheduler.plugins.claims import answering, compiling
from scheduler.plugins.compiled_asks import AskCompiler
from scheduler.plugins.contract import Asked
from scheduler.plugins.refusal import Refusal
from scheduler.plugins.rules import dynamic_resources, named_nodes
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.schema import empty
from scheduler.schema.world import World
from scheduler.shapes.caches import IsThere, TemplateSizes
from scheduler.shapes.counted import Counted
from scheduler.shapes.device_states import DeviceStates
from scheduler.shapes.scratches import Sizes, fit_scratch
from scheduler.shapes.statics import NODE_BYTES, Static, Statics
from scheduler.shapes.topologies import Topologies
from scheduler.shapes.views import View
from scheduler.shapes.withheld import Withheld
from scheduler.state.cluster import Cluster
from scheduler.state.structures.recent import Recent

# The most live shapes, and the most bytes they take with their tallies. At 5,000 nodes a board takes about 200 kB.
_SHAPES_MAX, _SHAPES_BYTES_MAX = 512, 160 << 20
# The bytes that a board takes for each node.
_BOARD_BYTES = 48
# The most tallies of all live shapes. Every pod that comes or goes is compared with each tally, so shapes with more
# tallies than usual workloads have share a smaller number.
_TALLIES_MAX, _USUAL_TALLIES, _TALLIES_OF_UNUSUAL_MAX = 2048, 4, 512


class Key(NamedTuple):
    """Everything that decides where a pod goes.

    ``yields`` stands for the room that is promised to other pods and that this pod may not take: pods that may not take
    the same room have equal values. It is None if the pod may take all room.
    """

    template: PodTemplate
    placement: Placement
    view: View
    yields: Hashable = None

    @property
    def refusal(self) -> Refusal | None:
        """Why claims keep such a pod off all nodes; None if they do not, or if the template does so first."""
        storage, claims = self.view.storage, self.view.claims
        if storage is None and claims is None:
            return None
        says_before = named_nodes.CONTRADICTION.name not in self.placement.kube.not_asked
        if self.template.node_names == () and says_before:
            return None
        refusal = storage.refusal if storage is not None else None
        return refusal or (claims.refusal if claims is not None else None)


@dataclass(slots=True, eq=False)
class Shape:
    """One shape, its compiled request and its board.

    Attributes:
        key: what all pods of the shape have in common.
        asked: the same, as rules read it.
        ask: the request as kernels read it.
        static: what static rules say about nodes.
        judged: the generation of ``static`` that the board has taken over.
        counted: the tallies of the shape.
        moved: the position in the state's log of moved rows up to which the board has read.
        learnt: the tables by which the board was scored.
        most_picks: the most cards that a pod of the shape can get, at least 1.
        most_devices, most_held: the most devices that its claims can get, and the most rows of holds that these take.
        words: the versions of cards and resources for which ``ask`` was compiled.
        withheld: the nodes where pods of the shape yield to other pods.
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
    most_devices: int = 0
    most_held: int = 0
    words: tuple[Hashable, ...] = ()
    withheld: Withheld | None = None

    @property
    def view(self) -> View:
        """What rules about other pods read from pods of the shape."""
        return self.key.view

    @property
    def weights(self) -> table.Weights:
        """The weights of scores in the profile of the shape's pods."""
        return table.get_weights(self.asked.placement.kube)


class Boards:
    """The live shapes of one cluster.

    Attributes:
        statics: what static rules say about nodes, also for pods without a live shape.
        sizes: the memory that templates take.
        states: which nodes have devices for claims that are alike.
    """

    def __init__(self, cluster: Cluster, learner: Learner) -> None:
        self._cluster = cluster
        self.states = DeviceStates(cluster)
        self._learner = learner
        self.sizes = TemplateSizes()
        self._shapes: Recent[Key, Shape] = Recent(
            _SHAPES_MAX, _SHAPES_BYTES_MAX, self._estimate_size
        )
        self.statics = Statics(cluster, self.sizes)
        self._topologies = Topologies(cluster)
        # How many tallies were made since shapes were dropped last: tallies of usual shapes, then of unusual ones.
        self._n_tallied = [0, 0]
        self._world = World(cluster.ledger.tables, learner.tables, empty.make_scratch(1, 1, 1))
        self._no_run = empty.make_run()
        self._compiler = AskCompiler(cluster)

    def get_shape(self, key: Key) -> Shape:
        """Return the live shape of a key; make one if there is none."""
        return self._shapes.get(key) or self._shapes.put(key, self._make_shape(key))

    def forget(self, is_there: IsThere) -> None:
        """Forget the shapes of pods that are gone, and their tallies."""
        self._shapes.keep(lambda key, _: is_there(key.template))
        self.statics.forget(is_there)

    def _estimate_size(self, key: Key, shape: Shape) -> int:
        # The shape may be the last one that uses its results of static rules, so these count too.
        capacity = self._cluster.nodes.capacity
        of_nodes = (_BOARD_BYTES + NODE_BYTES) * capacity + shape.counted.estimate_bytes(capacity)
        return 2 * self.sizes.estimate(key.template) + of_nodes

    def has(self, key: Key) -> bool:
        """Whether the shape is live: its next decision then reads only the rows that changed."""
        return key in self._shapes

    def _make_shape(self, key: Key) -> Shape:
        asked = Asked(key.template, key.placement, key.view.storage, key.view.claims)
        return Shape(key, asked, _NO_ASK, _NO_BOARD)

    def make_unscored(self, key: Key) -> Shape:
        """Make a shape with a compiled request and without a board, to ask where it fits; it replaces no live shape."""
        shape = self._make_shape(key)
        self._compile_request(shape)
        self._fit_scratch(shape)
        return shape

    def get_world(self, shape: Shape) -> World:
        """Return what kernels read and write besides the shape; the result is valid until the next call."""
        world = self._world
        world.demand = self._learner.get_tables(shape.ask.family)
        return world

    def find_refusals(self, shape: Shape, rows: c.Ints) -> c.Ints:
        """Find the refusal bits [W, n] of n rows without using the shape's board; 0 where a pod of the shape fits."""
        self._fit_scratch(shape)
        bits = np.zeros((table.count_words(shape.asked.template), rows.size), np.int64)
        diagnose.judge_rows(self.get_world(shape), shape.ask, rows, bits)
        self.refresh_counts(shape)
        bits[0] |= self.statics.find_refusals(shape.asked, rows) | shape.counted.find_refusals(rows)
        return bits

    def refresh_counts(self, shape: Shape) -> None:
        """Bring the tallies of a shape up to date."""
        shape.counted.refresh(self._cluster, self._topologies)

    def refresh(self, shape: Shape) -> None:
        """Bring a shape's board up to date with the columns and with the learnt tables."""
        rows = self.find_stale_rows(shape)
        if rows.size:
            self._no_run.moved = rows
            kernel.place_run(self.get_world(shape), shape.ask, shape.board, self._no_run)
        self._note_scored(shape)

    def find_stale_rows(self, shape: Shape) -> c.Ints:
        """Find the rows that a kernel must score again to bring the shape's board up to date; none if it is up to date.

        The request, the tallies, the static rules and the scratch arrays are up to date when this returns.

        Raises:
            BrokenInvariant: ranks or tables belong to other nodes (``Cycle`` brings them up to date when it is called), or
                a quiet trial is open: the board would keep the changes of the trial.
        """
        cluster = self._cluster
        if cluster.is_quiet:
            raise BrokenInvariant("a board is brought up to date in a quiet trial")
        if not self._learner.fits_nodes() or cluster.nodes.ranks_are_stale:
            raise BrokenInvariant("a shape is judged by ranks or tables of other nodes")
        moved = self._find_moved_rows(shape)
        by_card = cluster.nodes.pools.list_managed_families()
        n_families = len(cluster.nodes.devices.families)
        words = (*cluster.cards.words, cluster.nodes.resources.generation, n_families, by_card)
        if shape.view.claims is not None:
            words += compiling.list_versions(shape.ask.claims, cluster.claims)
            self.states.refresh()
        if moved is None or shape.words != words:
            shape.words = words
            self._compile_request(shape)
        stale = shape.learnt is not self._learner.get_tables(
            shape.ask.family
        ) and table.is_learning(shape.ask)
        counted = shape.counted.refresh(cluster, self._topologies)
        if moved is not None and shape.withheld is not None:
            moved = np.union1d(moved, shape.withheld.changed)
        if moved is not None and moved.size == 0 and not (stale or counted):
            return moved
        if moved is None:
            template = shape.asked.template
            shape.board = empty.make_board(
                cluster.nodes.capacity,
                table.count_words(template),
                linked=bool(shape.ask.rules.linked),
                ranked=bool(shape.ask.claims.is_ranked),
            )
            weight = dynamic_resources.find_weight(shape.asked)
            shape.board.choice_norm[:] = c.OF_MOST, weight, -1
            shape.judged = -1
        # A pod with storage counts volumes that pods of other nodes use, so rows that have not moved may change.
        is_elsewhere = counted and shape.view.storage is not None
        if self._read_static(shape) or stale or moved is None or is_elsewhere:
            moved = np.arange(cluster.nodes.capacity)
        if shape.board.domains is not shape.counted.arrays:
            shape.board.domains = shape.counted.arrays
        self._fit_scratch(shape)
        # A kernel evaluates the tallies again whenever it scores a row, so it needs at least one row.
        return moved if moved.size else _ONE_ROW

    def restrict(self, shape: Shape, among: c.Flags) -> tuple[c.Board | None, c.Ints]:
        """Copy an up-to-date board for the rows ``among`` alone; return the copy and the rows to score again on the copy.

        The copy is None if no score of a node depends on other nodes: then the shape's own board tells which row is best.
        """
        board, domains = shape.board, shape.board.domains
        is_relative = shape.static is not None and shape.static.is_relative
        if (
            not is_relative
            and not board.choices.size
            and not (domains.scores.size and domains.figures[of_domains.FIGURE_WIDE])
        ):
            return None, _NO_ROWS
        norms = board.norms.copy()
        norms[:, c.NORM_MOST] = -1
        choice_norm = board.choice_norm.copy()
        choice_norm[c.NORM_MOST] = -1
        written = "tallies", "counts", "figures", "raw", "points", "seen"
        restricted = board.replace(
            static=np.where(among, board.static, 1),
            norms=norms,
            choices=board.choices.copy(),
            choice_norm=choice_norm,
            domains=domains.replace(**{name: getattr(domains, name).copy() for name in written}),
            refused=board.refused.copy(),
            part=np.where(among, board.part, -1),
            links=board.links.copy(),
            key=board.key.copy(),
            best=board.best.copy(),
        )
        return restricted, _ONE_ROW

    def draw_lots(self, shape: Shape, number: int) -> None:
        """Draw new lots for all nodes, for one decision of the mode that draws lots."""
        self.refresh(shape)
        shape.ask.rules = shape.ask.rules.replace(draw=number)
        shape.learnt = None

    def note_placed(self, shape: Shape) -> None:
        """Note that the placing kernel has scored the stale rows and all rows that it changed itself."""
        self._note_scored(shape)
        if not shape.view.is_single:
            shape.counted.catch_up()

    def _note_scored(self, shape: Shape) -> None:
        shape.moved = self._cluster.moved.position
        shape.learnt = self._learner.get_tables(shape.ask.family)
        if shape.withheld is not None:
            shape.withheld.mark_read()

    def _find_moved_rows(self, shape: Shape) -> c.Ints | None:
        if shape.moved < 0 or shape.board.part.size != self._cluster.nodes.capacity:
            return None
        return self._cluster.moved.list_since(shape.moved)

    def _read_static(self, shape: Shape) -> bool:
        """Take over what static rules say; return whether every node must be scored again."""
        static = shape.static = shape.static or self.statics.get_static(shape.asked)
        static.refresh(self._cluster)
        is_new = shape.judged != static.generation
        if is_new:
            shape.judged = static.generation
            board = shape.board
            board.static, board.scores = static.refused, static.scores
            board.norms = static.make_norms(shape.weights)
            board.base[0] = static.sum_idle_points(shape.weights)
        if shape.withheld is not None:
            shape.board.static = static.refused | shape.withheld.bits[0]
        return is_new

    def _fit_scratch(self, shape: Shape) -> None:
        tables = self._learner.get_tables(shape.ask.family)
        typical = max(tables.keel.weight.size, tables.fgd.weight.size)
        has_claims = shape.view.claims is not None
        needs = Sizes(shape.most_picks, typical, shape.most_devices, shape.most_held, has_claims)
        self._world.scratch = fit_scratch(self._world.scratch, self._cluster, needs)

    def _compile_request(self, shape: Shape) -> None:
        self._cluster.keep_totals(table.list_totals(shape.asked))
        shape.ask = self._compiler.compile_ask(shape.asked)
        shape.counted = Counted(table.list_tallies(shape.view.needs, self._cluster), shape.weights)
        self._shapes.weigh(shape.key)
        self._make_room(shape)
        # No node has more cards than exist.
        most = self._cluster.cards.most_on_a_node
        if self._cluster.cards.has_parts:
            # Several parts of one card may serve one container.
            most *= SLOTS_MAX
        asks = (shape.ask, *shape.ask.more)
        wanted = [cards for ask in asks for cards in ask.containers[c.N_CARDS].tolist()]
        shape.most_picks = max(1, sum(min(cards, most) for cards in wanted))
        if shape.view.claims is not None:
            most = self._cluster.claims.table.most
            shape.most_devices, shape.most_held = answering.count_most(shape.ask.claims, most)

    def _make_room(self, new: Shape) -> None:
        """Drop the shapes that were used longest ago, if there may be too many tallies."""
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


# The request and the board of shapes that are not compiled and scored yet.
_NO_ASK, _NO_BOARD = empty.make_ask(), empty.make_board(0)
_ONE_ROW: c.Ints = np.zeros(1, np.int64)
_NO_ROWS: c.Ints = np.zeros(0, np.int64)
