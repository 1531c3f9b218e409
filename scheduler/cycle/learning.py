"""From the demand seen to the tables that ``keel`` and ``fgd`` score by; between batches, never within.

What is learnt, of shapes k seen n_k times (pods that ask GPUs, unless said otherwise):

- values: the dual prices of cutting cards into the shares seen, for each kind of card (``kernels/cutting.py``).
- price(node) = min(1, need)^(3.5 − 2 D), need = C / demand · Σ over shapes k that the empty node can host of
  d_k · (1 − S_k / C) / S_k; d_k: milli-GPU asked by the shape, S_k: capacity of all nodes that can host it,
  C: that of all, D: departures per arrival. Where a pod may go is asked of the same filters that place it.
  Pods that fit everywhere raise no price.
- typical pods of ``keel``: the share shapes among the most frequent ones that make 95 % of pods, and every
  shape of several cards, weighed by cards; pods of one whole card are left out.
- typical pods of ``fgd``, as published: the most frequent (cpu, cards, share, models) that make 95 % of all
  pods, those without GPU among them; ties by larger CPU, share, cards, models.
- what a milli-GPU short of CPU counts: 0.3 where nodes with GPUs have 1.25 times the CPU that their GPUs would
  be asked with, falling to 0 where they have just as much: there GPUs are left over whatever one does.
- milli-GPU that a milli-CPU serves: 1 / (0.85 κ), κ the median of CPU asked per GPU asked, weighed by GPU.

Before 300 pods are seen an assumed demand stands in (not for prices): without any, nothing keeps runs of
cards together. Clusters of fewer than 64 cards, where the odd big pod decides, also start with 0.05 departures
per arrival: on 5 to 10 nodes of openb and multigpu50 that is 1 point, without which it would be below best fit;
on 1,213 nodes and gpuspec33 it would cost 1.

What was tried on openb's training draws (seeds 1000..1006; allocated GPU %, demand seen), against what is here
(fill at 100/130: gpuspec33 95.1/95.7, cpu250 93.7/94.0; churn: gpuspec33 91.8, multigpu50 94.8, default 95.1):

- a price exponent of 4 whatever D: churn gpuspec33 −1.4, cpu250 −0.1; of 2: fill gpuspec33 −0.2, churn
  gpuspec33 +0.2. Constraints are worth more where pods leave, for what is wrongly taken stays taken longer than
  what is wrongly kept stays free; hence the exponent that falls with D. Down to 0.9 at D = 1 nothing changes.
- with an exponent of 4, F weighing 1.5 times as much: churn gpuspec33 −0.8; 0.7 times: +0.3, and multigpu50 −0.1.
- 1.0 for 0.85 of κ: gpuspec33 −0.5/+0.2, churn default −0.1; 0.75: cpu250 +0.3, multigpu50 −0.2, default −0.1.
- prices by the assumed demand before pods are seen, in whole or by half: within 0.2 of none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from scheduler import devices
from scheduler.kernels import columns as c
from scheduler.kernels import cutting, keel
from scheduler.plugins import node_affinity, taints
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

Counts = Mapping[DemandShape, float]
Pick = tuple[DemandShape, float]

# Pods seen until their demand is believed.
ENOUGH = 300
_COVERED = 0.95
_CPU_SLACK, _CPU_MARGIN = 0.85, 0.25
# Pods seen until it is believed how scarce CPU is, in general and in clusters of few cards.
_TOLD, _TOLD_SMALL = 60, 15
_PRICE_EXPONENT, _EXPONENT_FALL = 3.5, 2.0
# Typical pods at most: a measure is taken of every node for each.
_TYPICAL_MAX = 64
_FGD_TYPICAL_MAX = 128
# Shapes that prices are made of at most, the heaviest first.
_PRICED_MAX = 256
# Sizes of shares that cards are thought to be cut into, likewise: each makes the programme longer.
_SIZES_MAX = 32
# Weights are whole numbers in parts of this, so that equal nodes have equal measures.
_PARTS = 1 << 20
_NEVER = 1 << 40
# (pods, cards, percent of each) of the assumed demand, each with 0.75 of the cluster's CPU per GPU.
_ASSUMED = ((10, 1, 50), (14, 1, 100), (2, 2, 100), (2, 4, 100), (2, 8, 100))
_ASSUMED_CPU = 0.75
_SMALL_CARDS, _SMALL_DEPARTURES = 64, 0.05
# Learn again when so many more have been seen, in parts of those before, and at least and at most.
_MORE, _MORE_LEAST, _MORE_MOST = 0.3, 50, 5000
# The used value of departures per arrival moves when it is off by more.
_DEPARTURES_STEP = 0.1


class Learner:
    """Keeps the tables.

    Attributes:
        tables: what kernels read.
        generation: rises with every change of the tables, after which all nodes must be scored again.
    """

    def __init__(self, cluster: Cluster, known: Counts | None = None) -> None:
        """With ``known`` the demand is not learnt but given; departures are counted all the same."""
        self._cluster = cluster
        self._known = known
        self._next = 0
        self._described = -1
        self._departures = 0.0
        self._hosts: dict[DemandShape, c.Flags] = {}
        self.generation = 0
        self.tables = _tables(_Nodes(cluster), {}, 0.0, {}, assume=True)

    def learn(self, *, anew: bool = False) -> bool:
        """Make the tables anew if enough has changed, or ``anew``; whether they changed."""
        demand = self._cluster.demand
        departures = demand.departures
        described = self._cluster.described.position
        if (
            not anew
            and demand.seen < self._next
            and described == self._described
            and self.fits_nodes()
            and abs(departures - self._departures) <= _DEPARTURES_STEP
        ):
            return False
        if abs(departures - self._departures) > _DEPARTURES_STEP:
            self._departures = departures
        if described != self._described:
            self._hosts.clear()
            self._described = described
        counts = demand.counts() if self._known is None else self._known
        enough = self._known is not None or demand.seen >= ENOUGH
        nodes = _Nodes(self._cluster)
        departures = self._departures
        if not enough and nodes.are_few:
            departures = max(departures, _SMALL_DEPARTURES)
        tables = _tables(nodes, counts, departures, self._hosts, assume=not enough)
        more = max(_MORE_LEAST, min(_MORE_MOST, int(demand.seen * _MORE)))
        soon = min(ENOUGH, max(nodes.told, 2 * demand.seen))
        self._next = soon if not enough else demand.seen + more if self._known is None else _NEVER
        if _same(tables, self.tables):
            return False
        self.tables = tables
        self.generation += 1
        return True

    def fits_nodes(self) -> bool:
        """Whether the tables have a figure for every node row and every kind of cards."""
        tables, cluster = self.tables, self._cluster
        return (tables.price.size, len(tables.value)) == (
            cluster.nodes.capacity,
            len(cluster.cards.kinds),
        )


def _same(a: c.Demand, b: c.Demand) -> bool:
    return all(map(np.array_equal, _columns(a), _columns(b)))


def _columns(tables: c.Demand) -> tuple[c.Ints | c.Flags | c.Floats, ...]:
    return (*tables.keel, *tables.fgd, tables.price, tables.value, tables.rates)


class _Nodes:
    """What the nodes have when they are empty. [N] each, 0 where there is no usable node."""

    def __init__(self, cluster: Cluster) -> None:
        nodes, cards = cluster.nodes.columns, cluster.cards
        self.table, self.cards, self.columns = cluster.nodes, cards, nodes
        kind_mib = np.array([mib for _, mib in cards.kinds.values])[nodes.kind]
        # A card without memory can be given to nobody.
        of_hami = np.where(kind_mib > 0, nodes.card_count, 0)
        count = np.where(nodes.managed, of_hami, nodes.allocatable[c.GPU])
        self.count = np.where(nodes.valid, count, 0)
        self.cpu, self.memory = nodes.allocatable[c.CPU], nodes.allocatable[c.MEMORY]
        self.capacity = self.count * c.WHOLE
        self.are_few = bool(self.count.sum() < _SMALL_CARDS)
        self.told = _TOLD_SMALL if self.are_few else _TOLD
        self.model = np.where(
            nodes.managed & (nodes.card_count > 0), cards.columns.model[nodes.card_start], -1
        )
        self.kinds = cards.kinds.values
        with_memory = self.capacity * (kind_mib > 0)
        self.mean_mib = float((with_memory * kind_mib).sum() / max(1, with_memory.sum()))

    def asked(self, shape: DemandShape) -> int:
        """Milli-GPU that a pod asks; MiB count as parts of the cluster's mean card."""
        memory = int(shape.mib * c.WHOLE / self.mean_mib) if self.mean_mib else 0
        share = max(shape.cores * 10, shape.percent * 10, memory, 1)
        return min(share, c.WHOLE) * shape.cards

    def hosts(self, shape: DemandShape) -> c.Flags:
        """[N] where a pod of the shape could go if the node were empty."""
        fitting: c.Flags = (
            (self.count >= max(1, shape.cards))
            & (self.cpu >= shape.cpu)
            & (self.memory >= shape.memory)
        )
        milli = [shape.milli(*kind) for kind in self.kinds]
        fitting &= np.array([max(figures) <= c.WHOLE for figures in milli])[self.columns.kind]
        if min(milli[0]) < c.WHOLE:
            fitting &= self.columns.managed
        fitting &= self.allowed(shape)
        return fitting

    def allowed(self, shape: DemandShape) -> c.Flags:
        """[N] where a pod of the shape may go by its words and the node's.

        Cordons and ports come and go: what the node is counts.
        """
        flags: c.Flags = self.columns.valid.copy()
        if shape.use_types or shape.nouse_types:
            accepted = np.append(devices.models_ok(shape, self.cards), np.True_)
            flags &= accepted[self.model]
        rows = np.flatnonzero(flags)
        for refuses in (taints.refuses, node_affinity.refuses):
            if rows.size:
                flags[rows[refuses(shape, self.table, rows)]] = False
        return flags


def _tables(
    nodes: _Nodes,
    counts: Counts,
    departures: float,
    hosts: dict[DemandShape, c.Flags],
    *,
    assume: bool,
) -> c.Demand:
    """The tables for a demand; while it is too small to be believed, for the assumed one."""
    largest = int(nodes.count.max(initial=1))
    # What no node has cards for, a typing error more often than not, would outweigh all that can be. In
    # an order of their own: sums of floats must not depend on which pod came first.
    asking = {
        shape: counts[shape] for shape in sorted(counts, key=_order) if 0 < shape.cards <= largest
    }
    judged = _assumed(nodes) if assume else asking
    rates = np.zeros(c.N_RATES)
    rates[c.RATE_CPU] = _milli_per_cpu(nodes, judged)
    # How scarce CPU is shows early, long before shapes can be told.
    told = asking if round(sum(asking.values())) >= nodes.told else judged
    rates[c.RATE_SHORT] = keel.SHORT_WEIGHT * _cpu_plenty(nodes, told)
    rates[c.RATE_DEPARTURES] = departures
    rates[c.RATE_KEEL] = rates[c.RATE_FGD] = _PARTS
    rates[c.RATE_MOST_CPU] = nodes.cpu.max(initial=1)
    rates[c.RATE_MOST_GPU] = largest * c.WHOLE
    return c.Demand(
        price=np.ones(nodes.cpu.size) if assume else _prices(nodes, asking, hosts, departures),
        value=_values(nodes, judged),
        keel=_typical(nodes, _keel_typical(nodes, judged), everywhere=True),
        fgd=_typical(nodes, _fgd_typical(nodes, judged if assume else counts), everywhere=False),
        rates=rates,
    )


def _assumed(nodes: _Nodes) -> Counts:
    """Shares, single cards and a few of several, with CPU as this cluster has it."""
    has = nodes.count > 0
    per_gpu = float(np.median(nodes.cpu[has] / nodes.count[has])) if has.any() else 0.0
    return {
        DemandShape(
            int(_ASSUMED_CPU * per_gpu * cards * percent / 100), 0, cards, 0, percent, percent
        ): float(n)
        for n, cards, percent in _ASSUMED
    }


def assumed_demand(cluster: Cluster) -> Counts:
    """The demand that stands in for one that was not seen: shapes that ask GPUs, and how many of each."""
    return _assumed(_Nodes(cluster))


def _milli_per_cpu(nodes: _Nodes, counts: Counts) -> float:
    """1 / (0.85 κ) in milli-GPU per milli-CPU, 0 when the pods ask no CPU."""
    pairs = sorted(
        (shape.cpu / nodes.asked(shape), n * nodes.asked(shape)) for shape, n in counts.items()
    )
    if not pairs:
        return 0.0
    weights = np.cumsum([weight for _, weight in pairs])
    kappa = pairs[int(np.searchsorted(weights, weights[-1] / 2))][0]
    return 1 / (_CPU_SLACK * kappa) if kappa > 0 else 0.0


def _cpu_plenty(nodes: _Nodes, counts: Counts) -> float:
    """1 where the nodes have 1.25 times the CPU that pods ask for all their cards, 0 where they lack any."""
    asked = sum(n * shape.cpu for shape, n in counts.items())
    cards = sum(n * nodes.asked(shape) for shape, n in counts.items())
    has = nodes.count > 0
    if not asked or not has.any():
        return 1.0
    ratio = (nodes.cpu[has].sum() / nodes.capacity[has].sum()) / (asked / cards)
    return float(min(1.0, max(0.0, (ratio - 1) / _CPU_MARGIN)))


def _prices(
    nodes: _Nodes, counts: Counts, hosts: dict[DemandShape, c.Flags], departures: float
) -> c.Floats:
    capacity = float(nodes.capacity.sum())
    asked = {shape: n * nodes.asked(shape) for shape, n in counts.items()}
    demand = sum(asked.values())
    need = np.zeros(nodes.cpu.size)
    heaviest = sorted(asked, key=lambda shape: -asked[shape])[:_PRICED_MAX]
    for forgotten in hosts.keys() - set(heaviest):
        del hosts[forgotten]
    for shape in heaviest:
        if shape not in hosts:
            hosts[shape] = nodes.hosts(shape)
        hosting = float(nodes.capacity[hosts[shape]].sum())
        if hosting:
            need[hosts[shape]] += asked[shape] * (1 - hosting / capacity) / hosting
    if demand:
        need *= capacity / demand
    exponent = _PRICE_EXPONENT - _EXPONENT_FALL * min(1.0, departures)
    return np.minimum(1.0, need) ** exponent


def _values(nodes: _Nodes, counts: Counts) -> c.Floats:
    """[Q, WHOLE + 1] what a free remainder of a card of each kind can hold."""
    out = np.zeros((len(nodes.kinds), c.WHOLE + 1))
    known: dict[tuple[tuple[int, float], ...], int] = {}
    for kind, (cores, mib) in enumerate(nodes.kinds):
        sizes: dict[int, float] = defaultdict(float)
        for shape, n in counts.items():
            size = max(shape.milli(cores, mib))
            if 0 < size < c.WHOLE:
                sizes[size] += n * shape.cards
        heaviest = sorted(sizes.items(), key=lambda item: (-item[0] * item[1], item[0]))
        key = tuple(sorted(heaviest[:_SIZES_MAX]))
        if key in known:
            out[kind] = out[known[key]]
            continue
        known[key] = kind
        if key:
            m = len(key)
            cutting.values(
                np.array([size for size, _ in key], np.int64),
                np.array([n for _, n in key]),
                out[kind],
                np.zeros((m, m)),
                np.zeros((3, m)),
                np.zeros(c.WHOLE + 1, np.int64),
            )
    return out


def _order(shape: DemandShape) -> tuple[object, ...]:
    return tuple(() if field is None else field for field in shape)


def _keel_typical(nodes: _Nodes, counts: Counts) -> list[Pick]:
    merged = _merged(
        (DemandShape(s.cpu, 0, s.cards, s.mib, s.percent, s.cores), n) for s, n in counts.items()
    )
    total = sum(merged.values())
    frequent = {shape for shape, _ in _most_frequent(nodes, merged)}
    typical = [
        (shape, n / total * shape.cards)
        for shape, n in merged.items()
        if shape.cards > 1 or (nodes.asked(shape) < c.WHOLE and shape in frequent)
    ]
    return sorted(typical, key=lambda pick: (-pick[1], _order(pick[0])))[:_TYPICAL_MAX]


def _fgd_typical(nodes: _Nodes, counts: Counts) -> list[Pick]:
    merged = _merged((shape._replace(memory=0), n) for shape, n in counts.items())
    picked = _most_frequent(nodes, merged)[:_FGD_TYPICAL_MAX]
    covered = sum(n for _, n in picked)
    return [(shape, n / covered) for shape, n in picked]


def _merged(pairs: Iterable[Pick]) -> dict[DemandShape, float]:
    merged: dict[DemandShape, float] = defaultdict(float)
    for shape, n in pairs:
        merged[shape] += n
    return merged


def _most_frequent(nodes: _Nodes, counts: Counts) -> list[Pick]:
    """The most frequent shapes that together make 95 %; ties by larger CPU, share, cards."""
    ordered = sorted(
        counts.items(),
        key=lambda pick: (
            -pick[1], -pick[0].cpu, -nodes.asked(pick[0]), -pick[0].cards, _order(pick[0])
        ),
    )  # fmt: skip
    total, covered = sum(counts.values()), 0.0
    picked = []
    for shape, n in ordered:
        if covered >= _COVERED * total:
            break
        covered += n
        picked.append((shape, n))
    return picked


def _typical(nodes: _Nodes, picks: list[Pick], *, everywhere: bool) -> c.Typical:
    """As columns. Unless ``everywhere``, nodes that a shape may not go to by its words do not count for it."""
    milli = np.array(
        [[shape.milli(*kind) for shape, _ in picks] for kind in nodes.kinds], np.int64
    ).reshape(len(nodes.kinds), len(picks), 2)
    allowed = np.zeros((0, len(picks)), np.bool_)
    if not everywhere:
        by_shape = [nodes.allowed(shape) for shape, _ in picks]
        # Without an entry every node will do, which is quicker to score.
        if not all(np.array_equal(flags, nodes.columns.valid) for flags in by_shape):
            allowed = np.column_stack(by_shape)
    return c.Typical(
        cpu=np.array([shape.cpu for shape, _ in picks], np.int64),
        cards=np.array([min(shape.cards or _NEVER, _NEVER) for shape, _ in picks], np.int64),
        cores=np.ascontiguousarray(milli[:, :, 0]),
        mib=np.ascontiguousarray(milli[:, :, 1]),
        weight=np.array([round(weight * _PARTS) for _, weight in picks], np.int64),
        allowed=allowed,
    )
