"""From the demand for a family of devices to the tables that ``keel`` and ``fgd`` score by.

What is in them, of shapes k seen n_k times (pods that ask devices of the family, unless said otherwise):

- values: the dual prices of cutting cards into the shares seen, for each kind of card (``kernels/modes/cutting.py``).
- price(node) = min(1, need)^(3.5 − 2 D), need = C / demand · Σ over shapes k that the empty node can host of
  d_k · (1 − S_k / C) / S_k; d_k: milli-GPU asked by the shape, S_k: capacity of all nodes that can host it,
  C: that of all, D: departures per arrival. Where a pod may go is asked of the same filters that place it.
  Pods that fit everywhere raise no price.
- typical pods of ``keel``: the share shapes among the most frequent ones that make 95 % of pods, and every
  shape of several cards, weighed by cards; pods of one whole card are left out.
- typical pods of ``fgd``, as published: the most frequent (cpu, cards, share, models) that make 95 % of all
  pods, those without GPU among them; ties by larger CPU, share, cards, models.
- what a milli-GPU counts that is short of CPU, memory or an extended resource: 0.3 where nodes with GPUs have
  1.25 times as much of each as their GPUs would be asked with, falling to 0 where they have just as much of any:
  there GPUs are left over whatever one does. The rest up to 0.3 is what a CPU counts that is left on a node and,
  where another resource runs out, what a GPU counts that is left there.
- milli-GPU that one of a resource serves: 1 / (0.85 κ), κ the median of what is asked of it per GPU asked, weighed
  by GPU. A resource that most do not ask limits nothing.

Shapes that no node holds even when it is empty count for nothing.

Before 60 pods are seen an assumed demand stands in (not for prices): without any, nothing keeps runs of cards
together. In clusters of fewer than 1,000 cards those 60 are a large part of all, so best fit counts beside it.

What else was tried, and what came of it: docs/placement-figures.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from scheduler.kernels.modes import cutting, keel
from scheduler.modes.empty_nodes import EmptyNodes
from scheduler.schema import columns as c
from scheduler.schema import places
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

Counts = Mapping[DemandShape, float]
Pick = tuple[DemandShape, float]
# What pods of each shape ask of one resource, in base units.
Asked = Mapping[DemandShape, int]

_COVERED = 0.95
_CPU_SLACK, _MARGIN = 0.85, 0.25
_PRICE_EXPONENT, _EXPONENT_FALL = 3.5, 2.0
# The most typical pods: every node is measured for each.
_TYPICAL_MAX = 64
_FGD_TYPICAL_MAX = 128
# The most shapes that prices are made of, the heaviest first.
_PRICED_MAX = 256
# The most sizes of shares that cards are cut into, the heaviest first: each makes the linear programme larger.
_SIZES_MAX = 32
# Weights are whole numbers in parts of this, so that equal nodes have equal measures.
_PARTS = 1 << 20
_NEVER = 1 << 40
# (pods, cards, percent of each) of the assumed demand, each with 0.75 of the cluster's CPU per GPU.
_ASSUMED = ((10, 1, 50), (14, 1, 100), (2, 2, 100), (2, 4, 100), (2, 8, 100))
_ASSUMED_CPU = 0.75
# In clusters of fewer cards a large part of all is placed by the assumed demand.
_FEW_CARDS = 1000


def make_tables(
    nodes: EmptyNodes,
    counts: Counts,
    departures: float,
    hosts: dict[DemandShape, c.Flags],
    *,
    assume: bool,
) -> c.Demand:
    """The tables for a demand; while it is too small to be believed, for the assumed one.

    Args:
        nodes: the cluster, as far as the family goes.
        counts: pods seen of each shape; those that ask another family count for nothing.
        departures: per arrival, 0..1.
        hosts: what is known of where shapes can go; kept from one call to the next.
        assume: ``counts`` are not to be believed yet.
    """
    largest = int(nodes.count.max(initial=1))
    # A pod for which no node has cards, most often a typing error, would outweigh all others. The shapes are
    # sorted, because sums of floats must not depend on which pod came first.
    expected = _assumed(nodes) if assume else _of_family(nodes, counts)
    asking = {
        shape: expected[shape]
        for shape in sorted(expected, key=_order)
        if 0 < shape.cards <= largest
    }
    judged = _hosted(nodes, asking, hosts)
    by_cpu = {shape: shape.cpu for shape in judged}
    others = _others(nodes, judged)
    serving = {r: rate for r, asked in others.items() if (rate := _milli_per(nodes, judged, asked))}
    # What few ask limits few, however little there is of it.
    beside = min(
        _plenty(nodes, judged, others[r], nodes.columns.allocatable[r])
        for r in {c.MEMORY, *serving}
    )
    plenty = min(beside, _plenty(nodes, judged, by_cpu, nodes.cpu))
    if assume and nodes.count.sum() < _FEW_CARDS:
        left, left_cpu = 1.0, 1.0
    else:
        left, left_cpu = 1 - beside, 1 - plenty
    rates = np.zeros(c.N_RATES)
    rates[c.RATE_CPU] = _milli_per(nodes, judged, by_cpu)
    rates[c.RATE_SHORT] = keel.LEFT_WEIGHT * plenty
    rates[c.RATE_LEFT] = keel.LEFT_WEIGHT * left
    rates[c.RATE_LEFT_CPU] = (
        keel.LEFT_WEIGHT * left_cpu * _milli_per_free_cpu(nodes, rates[c.RATE_CPU])
    )
    rates[c.RATE_DEPARTURES] = departures
    rates[c.RATE_KEEL] = rates[c.RATE_FGD] = _PARTS
    rates[c.RATE_MOST_CPU] = nodes.cpu.max(initial=1)
    rates[c.RATE_MOST_GPU] = largest * c.WHOLE
    typical = _typical(nodes, _keel_typical(nodes, judged), everywhere=True)
    return c.Demand(
        price=np.ones(nodes.cpu.size) if assume else _prices(nodes, judged, hosts, departures),
        value=_values(nodes, judged),
        keel=typical,
        close=np.stack([_reciprocal(typical.cards), _reciprocal(typical.cpu)]),
        fgd=_typical(nodes, _fgd_typical(nodes, expected), everywhere=False),
        rates=rates,
        serving=np.array(list(serving), np.int64),
        served=np.array(list(serving.values())),
        places=places.empty(),
        single=places.empty(),
    )


def _of_family(nodes: EmptyNodes, counts: Counts) -> Counts:
    return {
        shape: n for shape, n in counts.items() if not shape.cards or shape.family == nodes.family
    }


def _hosted(
    nodes: EmptyNodes, counts: Counts, hosts: dict[DemandShape, c.Flags]
) -> dict[DemandShape, float]:
    """The counts without shapes that no node can hold even when it is empty; of the lightest only amounts are compared."""
    heaviest = _heaviest(nodes, counts)
    for forgotten in hosts.keys() - set(heaviest):
        del hosts[forgotten]
    for shape in heaviest:
        if shape not in hosts:
            hosts[shape] = nodes.hosts(shape)
    cpu, memory = nodes.cpu.max(initial=0), nodes.memory.max(initial=0)

    def fits(shape: DemandShape) -> bool:
        if shape in hosts:
            return bool(hosts[shape].any())
        return bool(shape.cpu <= cpu and shape.memory <= memory)

    return {shape: n for shape, n in counts.items() if fits(shape)}


def _heaviest(nodes: EmptyNodes, counts: Counts) -> list[DemandShape]:
    return sorted(counts, key=lambda shape: -counts[shape] * nodes.asked(shape))[:_PRICED_MAX]


def _assumed(nodes: EmptyNodes) -> Counts:
    """Shares, single cards and a few of several, with CPU as this cluster has it."""
    has = nodes.count > 0
    per_gpu = float(np.median(nodes.cpu[has] / nodes.count[has])) if has.any() else 0.0
    return {
        DemandShape(
            int(_ASSUMED_CPU * per_gpu * cards * percent / 100),
            cards=cards,
            percent=percent,
            cores=percent,
            family=nodes.family,
        ): float(n)
        for n, cards, percent in _ASSUMED
    }


def assumed_demand(cluster: Cluster, pool: int) -> Counts:
    """The demand for a family that is assumed before one was seen: shapes, and how many of each."""
    return _assumed(EmptyNodes(cluster, pool))


def _others(nodes: EmptyNodes, counts: Counts) -> Mapping[int, Asked]:
    """What else than CPU the pods ask, by row of the resource and shape."""
    found: dict[int, dict[DemandShape, int]] = {c.MEMORY: {shape: shape.memory for shape in counts}}
    for shape in counts:
        for name, amount in shape.others:
            row = nodes.table.find_row_asked(name)
            if row >= 0:
                found.setdefault(row, dict.fromkeys(counts, 0))[shape] = amount
    return dict(sorted(found.items()))


def _milli_per(nodes: EmptyNodes, counts: Counts, amounts: Asked) -> float:
    """1 / (0.85 κ) in milli-GPU per unit of what pods ask so much of, 0 when most ask none."""
    pairs = sorted(
        (amounts[shape] / nodes.asked(shape), n * nodes.asked(shape)) for shape, n in counts.items()
    )
    if not pairs:
        return 0.0
    weights = np.cumsum([weight for _, weight in pairs])
    kappa = pairs[int(np.searchsorted(weights, weights[-1] / 2))][0]
    return 1 / (_CPU_SLACK * kappa) if kappa > 0 else 0.0


def _milli_per_free_cpu(nodes: EmptyNodes, rate: float) -> float:
    """Milli-GPU of a milli-CPU that is left: as many as it serves, but no more than twice what there is beside it.

    Where most pods ask next to no CPU and a few much, one could serve a hundred times that.
    """
    cpu = float(nodes.cpu[nodes.count > 0].sum())
    return min(rate, 2 * float(nodes.capacity.sum()) / cpu) if cpu else 0.0


def _plenty(nodes: EmptyNodes, counts: Counts, amounts: Asked, there: c.Ints) -> float:
    """1 where the nodes have 1.25 times what pods would ask for all their cards, 0 where they lack any."""
    asked = sum(n * amounts[shape] for shape, n in counts.items())
    cards = sum(n * nodes.asked(shape) for shape, n in counts.items())
    has = nodes.count > 0
    if not asked or not has.any():
        return 1.0
    ratio = (there[has].sum(dtype=np.float64) / nodes.capacity[has].sum()) / (asked / cards)
    return float(min(1.0, max(0.0, (ratio - 1) / _MARGIN)))


def _prices(
    nodes: EmptyNodes, counts: Counts, hosts: Mapping[DemandShape, c.Flags], departures: float
) -> c.Floats:
    capacity = float(nodes.capacity.sum())
    asked = {shape: n * nodes.asked(shape) for shape, n in counts.items()}
    demand = sum(asked.values())
    need = np.zeros(nodes.cpu.size)
    for shape in _heaviest(nodes, counts):
        if shape in hosts:
            hosting = float(nodes.capacity[hosts[shape]].sum())
            need[hosts[shape]] += asked[shape] * (1 - hosting / capacity) / hosting
    if demand:
        need *= capacity / demand
    exponent = _PRICE_EXPONENT - _EXPONENT_FALL * min(1.0, departures)
    return np.minimum(1.0, need) ** exponent


def _values(nodes: EmptyNodes, counts: Counts) -> c.Floats:
    """[Q, WHOLE + 1] what a free remainder of a card of each kind can hold."""
    out = np.zeros((len(nodes.kinds), c.WHOLE + 1))
    known: dict[tuple[tuple[int, float], ...], int] = {}
    for kind, (cores, mib) in enumerate(nodes.kinds):
        sizes: dict[int, float] = defaultdict(float)
        for shape, n in counts.items():
            size = max(shape.convert_to_milli(cores, mib))
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


def _keel_typical(nodes: EmptyNodes, counts: Counts) -> list[Pick]:
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


def _fgd_typical(nodes: EmptyNodes, counts: Counts) -> list[Pick]:
    merged = _merged((shape._replace(memory=0, others=()), n) for shape, n in counts.items())
    picked = _most_frequent(nodes, merged)[:_FGD_TYPICAL_MAX]
    covered = sum(n for _, n in picked)
    return [(shape, n / covered) for shape, n in picked]


def _merged(pairs: Iterable[Pick]) -> dict[DemandShape, float]:
    merged: dict[DemandShape, float] = defaultdict(float)
    for shape, n in pairs:
        merged[shape] += n
    return merged


def _most_frequent(nodes: EmptyNodes, counts: Counts) -> list[Pick]:
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


def _typical(nodes: EmptyNodes, picks: list[Pick], *, everywhere: bool) -> c.Typical:
    """As columns. Unless ``everywhere``, nodes that a shape may not go to do not count for it."""
    milli = np.array(
        [[shape.convert_to_milli(*kind) for shape, _ in picks] for kind in nodes.kinds], np.int64
    ).reshape(len(nodes.kinds), len(picks), 2)
    allowed = np.zeros((0, len(picks)), np.bool_)
    if not everywhere:
        by_shape = [nodes.allowed(shape) for shape, _ in picks]
        # An empty array means that every node will do, which is quicker to score.
        if not all(np.array_equal(flags, nodes.columns.valid) for flags in by_shape):
            allowed = np.column_stack(by_shape)
    cpu = np.array([shape.cpu for shape, _ in picks], np.int64)
    cards = np.array([min(shape.cards or _NEVER, _NEVER) for shape, _ in picks], np.int64)
    return c.Typical(
        cpu=cpu,
        cards=cards,
        cores=np.ascontiguousarray(milli[:, :, 0]),
        mib=np.ascontiguousarray(milli[:, :, 1]),
        weight=np.array([round(weight * _PARTS) for _, weight in picks], np.int64),
        allowed=allowed,
    )


def _reciprocal(asked: c.Ints) -> c.Ints:
    per_one: c.Ints = -(-(c.PER_WHOLE << c.PER_SHIFT) // np.maximum(asked, 1))
    return np.where(asked > 0, per_one, 0)
