"""Makes the tables that ``keel`` and ``fgd`` score by, from the demand for one family of devices.

The tables are made from shapes k that were seen n_k times. Shapes are pods that request devices of the family, if
nothing else is said. The tables hold:

- carved: how much of each size of parts of a card still fits (``modes/carved_tables.py``).
- values: the dual prices of cutting cards into the seen shares, for each kind of card (``kernels/modes/cutting.py``).
- price(node) = min(1, need)^(3.5 − 2 D), need = C / demand · Σ over shapes k that the empty node can host of
  d_k · (1 − S_k / C) / S_k; d_k: milli-GPU that the shape requests, S_k: capacity of all nodes that can host the
  shape, C: capacity of all nodes, D: departures per arrival. The filters that place a pod also decide which nodes can
  host it. Pods that fit everywhere raise no price.
- typical pods of ``keel``: shapes of a share among the most frequent shapes that make 95 % of pods, and every shape of
  several cards, weighted by cards. Pods of one whole card are left out.
- typical pods of ``fgd``, as published: the most frequent (cpu, cards, share, models) that make 95 % of all pods,
  including pods without GPU; ties by larger CPU, share, cards, models.
- what a milli-GPU counts that lacks CPU, memory or an extended resource. It counts 0.3 if nodes with GPUs have 1.25
  times as much of each resource as pods would request with all their GPUs. It falls to 0 if the nodes have just as much
  of a resource: then GPUs are left over in any case. The rest up to 0.3 is what a CPU counts that is left on a node and,
  if another resource runs out, what a GPU counts that is left there.
- the milli-GPU that one unit of a resource serves: 1 / (0.85 κ), κ: the median of the requested amount per requested
  GPU, weighted by GPU. A resource that most pods do not request limits nothing.

Shapes that no node could host even if it were empty do not count.

Before 60 pods are seen, an assumed demand is used (but not for prices): without a demand, nothing keeps runs of cards
together. In clusters of fewer than 1,000 cards these 60 pods are a large part of all pods, so best fit counts too. For
cards that are cut the assumed demand says nothing; there the first 8 pods are enough.

docs/placement-figures.md lists what else was tried, with results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from scheduler.kernels.modes import cutting, keel
from scheduler.modes import carved_tables
from scheduler.modes.empty_nodes import EmptyNodes
from scheduler.schema import columns as c
from scheduler.schema import places
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

Counts = Mapping[DemandShape, float]
Pick = tuple[DemandShape, float]
# What pods of each shape request of one resource, in base units.
Asked = Mapping[DemandShape, int]

_COVERED = 0.95
_CPU_SLACK, _MARGIN = 0.85, 0.25
_PRICE_EXPONENT, _EXPONENT_FALL = 3.5, 2.0
# The most typical pods; every node is evaluated for each of them.
_TYPICAL_MAX = 64
_FGD_TYPICAL_MAX = 128
# The most shapes from which prices are made, the heaviest first.
_PRICED_MAX = 256
# The most sizes of shares into which cards are cut, the heaviest first: each size makes the linear programme larger.
_SIZES_MAX = 32
# Weights are whole numbers in parts of this number, so that equal nodes get equal scores.
_PARTS = 1 << 20
_NEVER = 1 << 40
# (pods, cards, percent of each) of the assumed demand, each with 0.75 of the cluster's CPU per GPU.
_ASSUMED = ((10, 1, 50), (14, 1, 100), (2, 2, 100), (2, 4, 100), (2, 8, 100))
_ASSUMED_CPU = 0.75
# So many pods show which parts of cards are requested.
_CUTTING_LEAST = 8
# In clusters of fewer cards, a large part of all pods is placed by the assumed demand.
_FEW_CARDS = 1000


def make_tables(
    nodes: EmptyNodes,
    counts: Counts,
    departures: float,
    hosts: dict[DemandShape, c.Flags],
    *,
    assume: bool,
) -> c.Demand:
    """Make the tables for a demand; while too few pods are seen, for the assumed demand.

    Args:
        nodes: the empty nodes, for one family.
        counts: the seen pods of each shape; pods that request another family do not count.
        departures: departures per arrival, 0..1.
        hosts: the nodes [N] that can host each shape; kept from one call to the next.
        assume: whether to use the assumed demand instead of ``counts``.
    """
    largest = int(nodes.count.max(initial=1))
    # A pod that requests more cards than any node has, most often a typing error, would outweigh all other pods. The
    # shapes are sorted, because sums of floats must not depend on the order in which pods came.
    expected = _make_assumed(nodes) if assume else _select_family(nodes, counts)
    asking = {
        shape: expected[shape]
        for shape in sorted(expected, key=_make_sort_key)
        if 0 < shape.cards <= largest
    }
    judged = _drop_unhosted(nodes, asking, hosts)
    by_cpu = {shape: shape.cpu for shape in judged}
    others = _list_others(nodes, judged)
    serving = {
        r: rate for r, asked in others.items() if (rate := _compute_milli(nodes, judged, asked))
    }
    # Only resources that most pods request count: a resource that few pods request limits few pods.
    beside = min(
        _measure_plenty(nodes, judged, others[r], nodes.columns.allocatable[r])
        for r in {c.MEMORY, *serving}
    )
    plenty = min(beside, _measure_plenty(nodes, judged, by_cpu, nodes.cpu))
    if assume and nodes.count.sum() < _FEW_CARDS:
        left, left_cpu = 1.0, 1.0
    else:
        left, left_cpu = 1 - beside, 1 - plenty
    rates = np.zeros(c.N_RATES)
    rates[c.RATE_CPU] = _compute_milli(nodes, judged, by_cpu)
    rates[c.RATE_SHORT] = keel.LEFT_WEIGHT * plenty
    rates[c.RATE_LEFT] = keel.LEFT_WEIGHT * left
    rates[c.RATE_LEFT_CPU] = (
        keel.LEFT_WEIGHT * left_cpu * _compute_milli_of_cpu(nodes, rates[c.RATE_CPU])
    )
    rates[c.RATE_DEPARTURES] = departures
    rates[c.RATE_KEEL] = rates[c.RATE_FGD] = _PARTS
    rates[c.RATE_MOST_CPU] = nodes.cpu.max(initial=1)
    rates[c.RATE_MOST_GPU] = largest * c.WHOLE
    typical = _make_typical(nodes, _pick_for_keel(nodes, judged), everywhere=True)
    return c.Demand(
        price=np.ones(nodes.cpu.size)
        if assume
        else _compute_prices(nodes, judged, hosts, departures),
        value=_compute_values(nodes, judged),
        carved=carved_tables.compute_fitting(
            nodes.cards.carvings,
            _select_cutting(nodes, counts) if assume else judged,
            0.0 if assume else departures,
            is_early=assume,
        ),
        keel=typical,
        close=np.stack([_compute_reciprocals(typical.cards), _compute_reciprocals(typical.cpu)]),
        fgd=_make_typical(nodes, _pick_for_fgd(nodes, expected), everywhere=False),
        rates=rates,
        serving=np.array(list(serving), np.int64),
        served=np.array(list(serving.values())),
        places=places.make_empty(),
        single=places.make_empty(),
    )


def _select_family(nodes: EmptyNodes, counts: Counts) -> Counts:
    return {
        shape: n for shape, n in counts.items() if not shape.cards or shape.family == nodes.family
    }


def _select_cutting(nodes: EmptyNodes, counts: Counts) -> Counts:
    """Select what pods request of cards that are cut, while the assumed demand counts; nothing of too few pods."""
    asking = {shape: n for shape, n in _select_family(nodes, counts).items() if shape.cards}
    return asking if sum(asking.values()) >= _CUTTING_LEAST else {}


def _drop_unhosted(
    nodes: EmptyNodes, counts: Counts, hosts: dict[DemandShape, c.Flags]
) -> dict[DemandShape, float]:
    """Drop the shapes that no node could host even if it were empty; for the lightest shapes only amounts are compared."""
    heaviest = _find_heaviest(nodes, counts)
    for forgotten in hosts.keys() - set(heaviest):
        del hosts[forgotten]
    for shape in heaviest:
        if shape not in hosts:
            hosts[shape] = nodes.find_hosts(shape)
    cpu, memory = nodes.cpu.max(initial=0), nodes.memory.max(initial=0)

    def fits(shape: DemandShape) -> bool:
        if shape in hosts:
            return bool(hosts[shape].any())
        return bool(shape.cpu <= cpu and shape.memory <= memory)

    return {shape: n for shape, n in counts.items() if fits(shape)}


def _find_heaviest(nodes: EmptyNodes, counts: Counts) -> list[DemandShape]:
    return sorted(counts, key=lambda shape: -counts[shape] * nodes.measure_request(shape))[
        :_PRICED_MAX
    ]


def _make_assumed(nodes: EmptyNodes) -> Counts:
    """Make the assumed demand: shares, single cards and a few pods of several cards, with this cluster's CPU per GPU."""
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


def assume_demand(cluster: Cluster, pool: int) -> Counts:
    """Return the demand for a family that is assumed before pods are seen: shapes, and how many pods of each."""
    return _make_assumed(EmptyNodes(cluster, pool))


def _list_others(nodes: EmptyNodes, counts: Counts) -> Mapping[int, Asked]:
    """List what the pods request besides CPU: by row of the resource, then by shape."""
    found: dict[int, dict[DemandShape, int]] = {c.MEMORY: {shape: shape.memory for shape in counts}}
    for shape in counts:
        for name, amount in shape.others:
            row = nodes.table.find_row_asked(name)
            if row >= 0:
                found.setdefault(row, dict.fromkeys(counts, 0))[shape] = amount
    return dict(sorted(found.items()))


def _compute_milli(nodes: EmptyNodes, counts: Counts, amounts: Asked) -> float:
    """Compute 1 / (0.85 κ): the milli-GPU that one unit of a resource serves; 0 if most pods request none of it.

    ``amounts`` is what a pod of each shape requests of the resource.
    """
    pairs = sorted(
        (amounts[shape] / nodes.measure_request(shape), n * nodes.measure_request(shape))
        for shape, n in counts.items()
    )
    if not pairs:
        return 0.0
    weights = np.cumsum([weight for _, weight in pairs])
    kappa = pairs[int(np.searchsorted(weights, weights[-1] / 2))][0]
    return 1 / (_CPU_SLACK * kappa) if kappa > 0 else 0.0


def _compute_milli_of_cpu(nodes: EmptyNodes, rate: float) -> float:
    """Compute the milli-GPU that a free milli-CPU counts as: what it serves, but at most twice the nodes' GPU per CPU.

    If most pods request almost no CPU and a few pods request much, it could serve a hundred times as much.
    """
    cpu = float(nodes.cpu[nodes.count > 0].sum())
    return min(rate, 2 * float(nodes.capacity.sum()) / cpu) if cpu else 0.0


def _measure_plenty(nodes: EmptyNodes, counts: Counts, amounts: Asked, there: c.Ints) -> float:
    """Measure how plentiful a resource is, 0..1.

    1: the nodes have at least 1.25 times what pods would request with all cards. 0: the nodes have just as much, or less.
    """
    asked = sum(n * amounts[shape] for shape, n in counts.items())
    cards = sum(n * nodes.measure_request(shape) for shape, n in counts.items())
    has = nodes.count > 0
    if not asked or not has.any():
        return 1.0
    ratio = (there[has].sum(dtype=np.float64) / nodes.capacity[has].sum()) / (asked / cards)
    return float(min(1.0, max(0.0, (ratio - 1) / _MARGIN)))


def _compute_prices(
    nodes: EmptyNodes, counts: Counts, hosts: Mapping[DemandShape, c.Flags], departures: float
) -> c.Floats:
    capacity = float(nodes.capacity.sum())
    asked = {shape: n * nodes.measure_request(shape) for shape, n in counts.items()}
    demand = sum(asked.values())
    need = np.zeros(nodes.cpu.size)
    for shape in _find_heaviest(nodes, counts):
        if shape in hosts:
            hosting = float(nodes.capacity[hosts[shape]].sum())
            need[hosts[shape]] += asked[shape] * (1 - hosting / capacity) / hosting
    if demand:
        need *= capacity / demand
    exponent = _PRICE_EXPONENT - _EXPONENT_FALL * min(1.0, departures)
    return np.minimum(1.0, need) ** exponent


def _compute_values(nodes: EmptyNodes, counts: Counts) -> c.Floats:
    """Compute [Q, WHOLE + 1] the value of each free rest of a card, 0..1000 milli, for each of Q kinds of cards."""
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
            cutting.find_values(
                np.array([size for size, _ in key], np.int64),
                np.array([n for _, n in key]),
                out[kind],
                np.zeros((m, m)),
                np.zeros((3, m)),
                np.zeros(c.WHOLE + 1, np.int64),
            )
    return out


def _make_sort_key(shape: DemandShape) -> tuple[object, ...]:
    return tuple([() if field is None else field for field in shape])


def _pick_for_keel(nodes: EmptyNodes, counts: Counts) -> list[Pick]:
    merged = _merge_counts(
        (
            DemandShape(s.cpu, 0, s.cards, s.mib, s.percent, s.cores, core_percent=s.core_percent),
            n,
        )
        for s, n in counts.items()
    )
    total = sum(merged.values())
    frequent = {shape for shape, _ in _find_most_frequent(nodes, merged)}
    typical = [
        (shape, n / total * shape.cards)
        for shape, n in merged.items()
        if shape.cards > 1 or (nodes.measure_request(shape) < c.WHOLE and shape in frequent)
    ]
    return sorted(typical, key=lambda pick: (-pick[1], _make_sort_key(pick[0])))[:_TYPICAL_MAX]


def _pick_for_fgd(nodes: EmptyNodes, counts: Counts) -> list[Pick]:
    merged = _merge_counts((shape._replace(memory=0, others=()), n) for shape, n in counts.items())
    picked = _find_most_frequent(nodes, merged)[:_FGD_TYPICAL_MAX]
    covered = sum(n for _, n in picked)
    return [(shape, n / covered) for shape, n in picked]


def _merge_counts(pairs: Iterable[Pick]) -> dict[DemandShape, float]:
    merged: dict[DemandShape, float] = defaultdict(float)
    for shape, n in pairs:
        merged[shape] += n
    return merged


def _find_most_frequent(nodes: EmptyNodes, counts: Counts) -> list[Pick]:
    """Find the most frequent shapes that together make 95 % of the pods; ties by larger CPU, share, cards."""
    ordered = sorted(
        counts.items(),
        key=lambda pick: (
            -pick[1], -pick[0].cpu, -nodes.measure_request(pick[0]), -pick[0].cards, _make_sort_key(pick[0])
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


def _make_typical(nodes: EmptyNodes, picks: list[Pick], *, everywhere: bool) -> c.Typical:
    """Make columns of typical pods. Unless ``everywhere``, a shape does not count on nodes that it may not go to."""
    milli = np.array(
        [[shape.convert_to_milli(*kind) for shape, _ in picks] for kind in nodes.kinds], np.int64
    ).reshape(len(nodes.kinds), len(picks), 2)
    allowed = np.zeros((0, len(picks)), np.bool_)
    if not everywhere:
        by_shape = [nodes.find_allowed(shape) for shape, _ in picks]
        # An empty array means that every node counts, and is faster to score.
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


def _compute_reciprocals(asked: c.Ints) -> c.Ints:
    per_one: c.Ints = -(-(c.PER_WHOLE << c.PER_SHIFT) // np.maximum(asked, 1))
    return np.where(asked > 0, per_one, 0)
