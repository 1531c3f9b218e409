"""Shapes and what is known of each on every node.

A shape is a template with a placement: all that decides where a pod goes. Its board is computed once
and then kept up with the rows that changed, so a thousand nodes cost nothing until one of them moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.api import names
from scheduler.api.placement import Mode, Placement
from scheduler.api.templates import PodTemplate
from scheduler.config import Config
from scheduler.devices import nvidia as devices
from scheduler.kernels import board as kernel
from scheduler.kernels.modes import aware, score
from scheduler.modes.learning import Learner
from scheduler.plugins import FILTERS, node_affinity, taints
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.state.cluster import Cluster

# Live shapes; the least recently used goes first. At 5,000 nodes a board is about 170 kB.
_SHAPES_MAX = 512

_MODES = {
    Mode.LEAST_ALLOCATED: score.LEAST,
    Mode.MOST_ALLOCATED: score.MOST,
    Mode.BALANCED_ALLOCATION: score.BALANCED,
    Mode.REQUESTED_TO_CAPACITY_RATIO: score.RATIO,
    Mode.LAMBDA_G: score.LAMBDA_G,
    Mode.LAMBDA_G_V3: score.LAMBDA_G_V3,
}


_NODE_POLICIES = {"binpack": score.HAMI_BINPACK, "spread": score.HAMI_SPREAD}
_AWARE = {
    Mode.KEEL: aware.KEEL,
    Mode.FGD: aware.FGD,
    Mode.BEST_FIT: aware.BEST_FIT,
    Mode.FIRST_FIT: aware.FIRST_FIT,
    Mode.DOT_PRODUCT: aware.DOT_PRODUCT,
    Mode.GPU_PACKING: aware.PACKING,
    Mode.GPU_CLUSTERING: aware.CLUSTERING,
    Mode.RANDOM: aware.RANDOM,
}
# Modes that read what was learnt of the demand.
_LEARNING = frozenset(
    {aware.KEEL, aware.FGD, aware.BEST_FIT, aware.DOT_PRODUCT, aware.CLUSTERING, aware.RANDOM}
)


@dataclass(slots=True, eq=False)
class Shape:
    """One shape, its compiled request and its board.

    ``moved`` and ``described`` are the positions in the state's logs up to which the board has read,
    ``learnt`` is the generation of the tables it was scored by, ``most_picks`` the most cards that a
    pod of the shape can be given, at least 1.
    """

    template: PodTemplate
    placement: Placement
    ask: c.Ask
    board: c.Board
    moved: int = -1
    described: int = -1
    learnt: int = -1
    most_picks: int = 1
    words: tuple[int, ...] = ()

    def mode_on(self, *, has_gpu: bool) -> Mode:
        """The mode that scores it on nodes with GPUs, or on those without: keel is for the former only."""
        if self.placement.mode is None and has_gpu:
            return Mode.KEEL
        return Mode.MOST_ALLOCATED if self.mode == Mode.KEEL and not has_gpu else self.mode

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of what it asks, in the order of ``ask.resources``."""
        return (names.PODS, *(resource for resource, _ in self.template.requests.amounts))

    @property
    def is_learning(self) -> bool:
        """Whether its scores depend on what was learnt."""
        return int(self.ask.mode[2]) in _LEARNING

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        if self.placement.mode is not None:
            return self.placement.mode
        return Mode.KEEL if self.template.gpu else Mode.LEAST_ALLOCATED


class Boards:
    """The live shapes of one cluster."""

    def __init__(self, cluster: Cluster, config: Config, learner: Learner) -> None:
        self._cluster = cluster
        self._learner = learner
        self._config = config
        self._shapes: dict[tuple[PodTemplate, Placement], Shape] = {}
        self.scratch = empty.scratch(1, 1, 1)

    def shape(self, template: PodTemplate, placement: Placement) -> Shape:
        """The shape of a template under a placement."""
        key = (template, placement)
        shape = self._shapes.pop(key, None)
        if shape is None:
            if len(self._shapes) >= _SHAPES_MAX:
                del self._shapes[next(iter(self._shapes))]
            shape = Shape(template, placement, _NO_ASK, _NO_BOARD)
        self._shapes[key] = shape
        return shape

    def has(self, template: PodTemplate, placement: Placement) -> bool:
        """Whether the shape is live: its next decision looks only at rows that changed."""
        return (template, placement) in self._shapes

    def unscored(self, template: PodTemplate, placement: Placement) -> Shape:
        """A shape with its compiled request and no board, to ask what fits; it displaces no live one."""
        shape = Shape(template, placement, _NO_ASK, _NO_BOARD)
        self._compile_request(shape)
        self._fit_scratch(shape)
        return shape

    def refresh(self, shape: Shape) -> None:
        """Bring a shape's board up to date with the columns and with what was learnt."""
        cluster = self._cluster
        cluster.nodes.refresh_ranks()
        if not self._learner.fits_nodes():
            self._learner.learn()
        moved = self._moved_rows(shape)
        stale = shape.is_learning and shape.learnt != self._learner.generation
        if moved is not None and moved.size == 0 and not stale:
            return
        words = (*cluster.cards.words, len(cluster.nodes.resources))
        if moved is None or shape.words != words:
            shape.words = words
            self._compile_request(shape)
        described = None if moved is None else cluster.described.since(shape.described)
        if moved is None or described is None:
            moved = described = np.arange(cluster.nodes.capacity)
            shape.board = empty.board(cluster.nodes.capacity)
        if shape.template.ports:
            # A host port may have come or gone with any pod that moved.
            described = moved
        if stale:
            moved = np.arange(cluster.nodes.capacity)
        if described.size:
            self._judge(shape, described)
            self._note_preferences(shape)
        self._fit_scratch(shape)
        kernel.rescore(
            cluster.nodes.columns,
            cluster.cards.columns,
            shape.ask,
            self._learner.tables,
            shape.board,
            moved,
            self.scratch,
        )
        shape.moved = cluster.moved.position
        shape.described = cluster.described.position
        shape.learnt = self._learner.generation

    def draw(self, shape: Shape, number: int) -> None:
        """A decision of the mode that draws lots: every node's lot is drawn anew."""
        self.refresh(shape)
        shape.ask.card_rules[c.RULE_DRAW] = number
        shape.learnt = -1

    def placed(self, shape: Shape, rows: c.Ints) -> None:
        """The placing kernel changed these rows and has scored them on this shape's board.

        Host ports it does not know: their mask is made again at the next refresh.
        """
        self._cluster.moved.add_many(rows)
        if not shape.template.ports:
            shape.moved = self._cluster.moved.position

    def _moved_rows(self, shape: Shape) -> c.Ints | None:
        if shape.moved < 0 or shape.board.part.size != self._cluster.nodes.capacity:
            return None
        return self._cluster.moved.since(shape.moved)

    def _judge(self, shape: Shape, rows: c.Ints) -> None:
        """Static filters and raw preferences of some rows."""
        if rows.size == 0:
            return
        nodes, template, board = self._cluster.nodes, shape.template, shape.board
        allowed = np.ones(rows.size, np.bool_)
        for _, refuses in FILTERS:
            allowed &= ~refuses(template, nodes, rows)
        board.allowed[rows] = allowed
        board.affinity[rows] = node_affinity.preference(template, nodes, rows)
        board.taints[rows] = taints.soft_count(template, nodes, rows)

    def _note_preferences(self, shape: Shape) -> None:
        """Only shapes with preferences need their scores normalised over all nodes."""
        board = shape.board
        prefers = bool(board.affinity.any() or board.taints.any())
        shape.ask.card_rules[c.RULE_PREFERS] = prefers
        if not prefers:
            board.maxima[:] = 0

    def _fit_scratch(self, shape: Shape) -> None:
        cards = self._cluster.cards.most_on_a_node
        picks = shape.most_picks
        tables = self._learner.tables
        typical = max(tables.keel.weight.size, tables.fgd.weight.size)
        s = self.scratch
        if s.order.size < cards or s.picks.size < picks or s.fits.size < typical:
            self.scratch = empty.scratch(
                max(cards, s.order.size), max(picks, s.picks.size), max(typical, s.fits.size)
            )

    def _compile_request(self, shape: Shape) -> None:
        shape.ask = self._compile(shape)
        # No node has more cards than exist.
        most = self._cluster.cards.most_on_a_node
        wanted = np.minimum(shape.ask.containers[c.N_CARDS], most)
        shape.most_picks = max(1, int(wanted.sum()))

    def _compile(self, shape: Shape) -> c.Ask:
        template, placement, nodes = shape.template, shape.placement, self._cluster.nodes
        rows, amounts = self._cluster.charge_of(template)
        asked = dict(template.requests.amounts)
        gpu = template.gpu
        dims = {
            0: names.CPU, 1: names.MEMORY, 4: placement.iops_resource, 5: placement.network_resource
        }  # fmt: skip
        return c.Ask(
            resources=np.array(rows, np.int64),
            amounts=np.array(amounts, np.int64),
            hami_only=np.array(
                [resource in names.HAMI_ONLY for resource in shape.resources], np.bool_
            ),
            nonzero=np.array(
                [template.requests.nonzero_cpu, template.requests.nonzero_memory], np.int64
            ),
            dim_amounts=np.array(
                [asked.get(dims.get(d, ""), 0) for d in range(c.N_DIMS)], np.int64
            ),
            containers=devices.containers(gpu),
            card_rules=_card_rules(shape, asked.get(names.GPU, 0)),
            sort_keys=devices.sort_keys(
                placement.gpu_policy, numa_bind=bool(gpu and gpu.numa_bind)
            ),
            model_ok=devices.models_ok(gpu, self._cluster.cards),
            mode_ok=devices.modes_ok(gpu, self._cluster.cards),
            uuid_ok=devices.uuids_ok(gpu, self._cluster.cards),
            mode=self._mode(shape),
            weights=np.array(placement.weights, np.int64),
            dims=np.array(
                [nodes.row_asked(dims[d]) if d in dims else -1 for d in range(c.N_DIMS)],
                np.int64,
            ),
            curve=np.ascontiguousarray((np.array(placement.curve, np.int64) * (1, 10)).T),
        )

    def _mode(self, shape: Shape) -> c.Ints:
        """``Ask.mode``: a node policy takes the mode's place; keel is for nodes with GPUs only."""
        policy, gpu, mode = shape.placement.node_policy, shape.template.gpu, shape.mode
        aware_mode, everywhere = _AWARE.get(mode, -1), mode != Mode.KEEL
        blind = _MODES.get(mode, score.MOST)
        if policy:
            blind, aware_mode = _NODE_POLICIES[policy], -1
        elif shape.placement.mode is None and gpu is None:
            aware_mode, everywhere = aware.KEEL, False
        return np.array([blind, self._config.mode_weight, aware_mode, everywhere], np.int64)


def _card_rules(shape: Shape, whole_gpus: int) -> c.Ints:
    gpu, placement = shape.template.gpu, shape.placement
    rules = np.zeros(c.N_RULES, np.int64)
    asking = [i for i, slot in enumerate(gpu.containers) if slot.cards] if gpu else []
    rules[c.RULE_NUMA_BIND] = bool(gpu and gpu.numa_bind)
    rules[c.RULE_MUTEX] = devices.is_mutex(placement)
    rules[[c.RULE_SLOT, c.RULE_CORE, c.RULE_MEMORY]] = placement.device_weights
    rules[c.RULE_AVOID_GPU] = gpu is None
    rules[c.RULE_WHOLE_GPUS] = whole_gpus
    rules[c.RULE_WALK] = bool(placement.gpu_policy or len(asking) > 1 or rules[c.RULE_NUMA_BIND])
    rules[c.RULE_ONLY] = asking[0] if asking else -1
    rules[c.RULE_SIZE] = shape.template.size
    return rules


_NO_BOARD = empty.board(0)
_NO_ASK = c.Ask(*(np.full(4, -1, np.int64) for _ in c.Ask._fields))  # type: ignore[arg-type]
