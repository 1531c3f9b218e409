"""Learns from the demand what a node's places are worth: prices, typical pods and the best filling.

Worth is counted in units; an average node is worth 1,000 units.

- price_r of a resource r: ρ_r is demand ÷ capacity, s_r = clip(1 − (1 − ρ_r / max ρ) / 0.25, 0, 1), and
  price_r = 1000 · s_r / Σ s / the mean node's r. A resource with 25 % slack against the scarcest resource has no price,
  nor has a resource that fewer than a quarter of the pods request. Before pods are seen, CPU and memory count equally.
- typical pods: the seen shapes, in bins if there are more than 64 shapes, and 45 assumed pods of 1/2, 1/4, 1/8 and
  1/16 of the mean node. Of these, the 32 with the largest share of the demand times worth.
- worth_k = share_k · val_k · C / S_k, the worth of one place for pod k: share_k is k's part of the demand by value,
  val_k the value of one pod k, S_k the value of all pods k that the empty cluster can hold, C that of the cluster.
- value_r(x): the most that pods of the seen shapes are worth which together take x of one resource.

Shapes that no node could hold even if it were empty do not count. ``modes/scarcity.py`` measures how scarce places are
at a time. docs/placement-figures.md lists what else was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from scheduler.kernels.modes import filling, rooms
from scheduler.schema import columns as c
from scheduler.schema import places as p
from scheduler.schema.places import Places
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

Counts = Mapping[DemandShape, float]
# The amounts that a pod requests, by resource.
Amounts = Mapping[int, float]

_UNITS, _SLACK = 1000.0, 0.25
# Pods are binned by the rounded logarithm of each amount. The base is the first one that makes few enough bins.
_SHAPES_MAX, _BINS_MAX = 64, 128
_BASES = (1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 4.0)
_ASSUMED = ((0.5, 3), (0.25, 6), (0.125, 12), (0.0625, 24))
# The most sizes in a filling, and the most cells of its table if every size is a whole number of cells.
_SIZES_MAX, _CELLS_MAX = 32, 1920
# How many pods must be seen before a filling is made from them.
ENOUGH = 60
# Resources that always count; a resource that a smaller part of the pods requests has no price; assumed pods do not
# request a resource that a smaller part of the nodes has.
_USUAL, _COMMON, _MOST = (c.CPU, c.MEMORY, c.PODS), 0.25, 0.5
# Tolerances for rounding errors: added to a number of places, and a factor for worth.
_LAST_BIT, _AS_MUCH = 1e-7, 1 - 1e-9


class Nodes(NamedTuple):
    """The empty nodes of one sort. B resources, n rows."""

    rows: c.Ints  # [n]
    resources: c.Ints  # [B] as in Places
    there: c.Floats  # [B, n] allocatable amounts, base units
    largest: (
        c.Floats
    )  # [B] the most that any node has that is judged by them, also one that does not count


class Pods(NamedTuple):
    """The pods that come to such nodes, by m shapes."""

    amounts: c.Floats  # [m, B] base units
    counts: c.Floats  # [m]


class Learnt(NamedTuple):
    """What is known about one sort of nodes, and from which scarcity is measured."""

    rows: c.Ints  # [n]
    places: Places  # with every place as scarce as it can be
    val: c.Floats  # [K] units of a typical pod
    above: c.Floats  # [K] share of the demand, by value, of pods that are worth at least as much
    mean: float  # mean units of a pod
    new: float  # distinct sizes per pod, by the resources with a price


def gather_pods(
    cluster: Cluster, nodes: Nodes, told: Mapping[DemandShape, Amounts], counts: Counts
) -> Pods:
    """Gather the amounts of shapes, in an order that does not depend on the order in which pods came.

    Args:
        cluster: maps the names of resources to rows.
        nodes: has the resources of the amounts; a shape that requests another resource fits nowhere.
        told: what each shape requests except ``others``, by resource as in ``Places``.
        counts: how many pods of each shape there are.
    """
    at = {int(row): b for b, row in enumerate(nodes.resources)}
    column: dict[str, int | None] = {}
    rows = []
    for shape, amounts_told in told.items():
        row = [0.0] * nodes.resources.size
        for resource, amount in amounts_told.items():
            row[at[resource]] = amount
        for name, amount in shape.others:
            if name not in column:
                column[name] = at.get(cluster.nodes.find_row_asked(name))
            b = column[name]
            if b is not None:
                row[b] = amount
            elif amount:
                row[0] = math.inf
        rows.append(row)
    amounts = np.array(rows, np.float64).reshape(len(rows), nodes.resources.size)
    number = np.array([counts[shape] for shape in told])
    order = np.lexsort((number, *amounts.T[::-1]))
    return Pods(np.ascontiguousarray(amounts[order]), number[order])


def list_others(cluster: Cluster, counts: Counts, told: Iterable[int]) -> list[int]:
    """List the known resources that pods request, except those in ``told``."""
    names = {name for shape in counts for name, _ in shape.others}
    asked = {cluster.nodes.find_row_asked(name) for name in names}
    return sorted(asked - {c.UNKNOWN, *told})


def learn_places(nodes: Nodes, pods: Pods, *, believed: bool) -> Learnt | None:
    """Learn places from the demand; None if there are no nodes, or if nodes or pods give no resource a price.

    Args:
        nodes: the nodes.
        pods: the seen pods.
        believed: whether enough pods were seen for a filling.
    """
    if not nodes.rows.size or not nodes.there.any():
        return None
    pods = _keep_fitting(nodes.there, pods)
    mean_node = nodes.there.mean(axis=1)
    assumed = _assume_pods(nodes, mean_node)
    use = _measure_use(nodes, pods)
    if not use.any():
        # Pods request nothing that the nodes have.
        use = _measure_use(nodes, assumed)
    if not use.any():
        return None
    usual = np.isin(nodes.resources, _USUAL)
    kept = np.argsort(np.where(usual & (use > 0), -np.inf, -use), kind="stable")
    kept = np.sort(kept[use[kept] > 0][: p.RESOURCES_MAX])
    scarce = _measure_scarcity(use[kept], (usual | _find_common(nodes, pods))[kept])
    price = _UNITS * scarce / scarce.sum() / mean_node[kept]
    there = nodes.there[kept]
    seen = Pods(pods.amounts[:, kept], pods.counts)
    assumed = Pods(assumed.amounts[:, kept], assumed.counts)
    binned = _bin_pods(seen)
    typical = Pods(
        np.concatenate((binned.amounts, assumed.amounts)),
        np.concatenate((binned.counts, assumed.counts)),
    )
    val = typical.amounts @ price
    share = typical.counts * val
    share = share / share.sum()
    most = np.argsort(-share * val, kind="stable")[: p.TYPICAL_MAX]
    above = np.array([share[val >= one * _AS_MUCH].sum() for one in val[most]])
    value, cell = _compute_fillings(binned, price, there.max(axis=1), believed=believed)
    with np.errstate(divide="ignore"):
        per = np.where(typical.amounts[most] > 0, 1 / typical.amounts[most], 0.0).T
    # Kernels are compiled for contiguous arrays; an array with other strides has another type.
    per = np.ascontiguousarray(per)
    beyond = np.ascontiguousarray(np.where(per > 0, _LAST_BIT, p.ANY))
    holds = np.zeros(most.size)
    rooms.count_rooms(np.ascontiguousarray(there), per, beyond, holds)
    whole = float(price @ there.sum(axis=1))
    worth = np.where(holds > 0, share[most] * whole / np.maximum(holds, 1), 0.0)
    weights = np.zeros(p.N_WEIGHTS)
    weights[p.STEP] = weights[p.FULL] = 1.0
    places = Places(
        resources=nodes.resources[kept],
        per=per,
        beyond=beyond,
        worth=worth,
        price=price,
        level=_make_levels(nodes.resources[kept]),
        value=value,
        cell=cell,
        most=np.zeros((kept.size, 0)),
        wide=p.CELLS / np.maximum(nodes.largest[kept], 1.0),
        weights=weights,
    )
    counts = typical.counts.sum()
    mean = float((typical.counts * val).sum() / counts)
    return Learnt(nodes.rows, places, val[most], above, mean, _measure_newness(seen, price))


def _measure_newness(pods: Pods, price: c.Floats) -> float:
    """Measure how many distinct sizes there are per pod; resources without a price do not count, they may be noise."""
    if not pods.counts.size:
        return 0.0
    sizes = np.unique(pods.amounts[:, price > 0], axis=0)
    return float(len(sizes) / pods.counts.sum())


def _find_common(nodes: Nodes, pods: Pods) -> c.Flags:
    """Find the resources [B] that enough pods request: a rare resource must not set the prices of all others."""
    total = pods.counts.sum()
    if not total:
        return np.ones(nodes.resources.size, np.bool_)
    found: c.Flags = pods.counts @ (pods.amounts > 0) >= _COMMON * total
    return found


def _measure_scarcity(use: c.Floats, common: c.Flags) -> c.Floats:
    """Measure [B] how close the use of each resource is to the most used resource, 0..1."""
    most = use[common].max(initial=0.0)
    if not most:
        common, most = np.ones_like(common), use.max()
    return np.where(common, np.clip(1 - (1 - use / most) / _SLACK, 0, 1), 0.0)


def _measure_use(nodes: Nodes, pods: Pods) -> c.Floats:
    """Measure [B] how much of each resource pods request, in parts of the nodes' amount; 0 if the nodes have none."""
    there = nodes.there.sum(axis=1)
    asked = pods.counts @ pods.amounts
    found: c.Floats = np.divide(asked, there, out=np.zeros_like(there), where=there > 0)
    return found


def weigh_places(places: Places, worth: c.Floats, weights: c.Floats) -> Places:
    """Make places with another worth and other weights; typical pods without worth are dropped, and bounds recomputed."""
    kept = np.flatnonzero(worth > 0)
    found = places.replace(
        per=np.ascontiguousarray(places.per[:, kept]),
        beyond=np.ascontiguousarray(places.beyond[:, kept]),
        worth=worth[kept],
        weights=weights,
    )
    return found.replace(most=_compute_most(found))


def _compute_most(places: Places) -> c.Floats:
    """Compute [B, C + 1] the most that typical pods and the filling are worth in so much of one resource."""
    weights = places.weights
    filled = _sample_filling(places, places.resources.size)
    out = np.zeros((places.resources.size, p.CELLS + 1))
    for b in range(places.resources.size):
        room = np.arange(p.CELLS + 1) / places.wide[b]
        fits = room[:, None] * places.per[b] + places.beyond[b]
        whole = np.floor(fits)
        held = (whole + weights[p.PART] * (fits - whole) ** 3) @ places.worth
        out[b] = weights[p.FULL] * held + weights[p.MIX] * filled[b]
    return out


def _sample_filling(places: Places, n: int) -> c.Floats:
    """Sample [B, C + 1] the value of the filling at the cells of ``most``; without a price, the highest value of all."""
    out = np.zeros((n, p.CELLS + 1))
    if not places.value.shape[1]:
        return out
    last = places.value.shape[1] - 1
    dear = places.price > 0
    highest = float(places.value[dear].max(initial=0.0))
    for b in range(n):
        room = np.arange(p.CELLS + 1) / places.wide[b]
        at = np.minimum(last, np.floor(room * places.cell[b] + 1e-6).astype(np.int64))
        out[b] = places.value[b, at] if dear[b] else highest
    return out


def _keep_fitting(there: c.Floats, pods: Pods) -> Pods:
    """Keep the pods that fit on at least one empty node."""
    fits = np.zeros(pods.counts.size, np.bool_)
    rooms.find_fitting(np.ascontiguousarray(there.T), there.max(axis=1), pods.amounts, fits)
    return Pods(pods.amounts[fits], pods.counts[fits])


def _assume_pods(nodes: Nodes, mean_node: c.Floats) -> Pods:
    """Make assumed pods that are parts of the mean node."""
    shares = np.array([share for share, _ in _ASSUMED])
    most_have = (nodes.there > 0).mean(axis=1) >= _MOST
    amounts = np.where(nodes.resources == c.PODS, 1.0, shares[:, None] * mean_node * most_have)
    return Pods(amounts, np.array([float(n) for _, n in _ASSUMED]))


def _make_levels(resources: c.Ints) -> c.Floats:
    """Make equal weights [B] for how evenly resources are used; the number of pods gets 0, it is no amount."""
    counts = (resources != c.PODS).astype(np.float64)
    found: c.Floats = counts / max(1.0, counts.sum())
    return found


def _bin_pods(pods: Pods) -> Pods:
    """Return few shapes unchanged; put many shapes into bins of similar sizes, each bin with its mean size."""
    if pods.counts.size <= _SHAPES_MAX:
        return pods
    with np.errstate(divide="ignore"):
        logs = np.where(pods.amounts > 0, np.log(pods.amounts), -1e3)
    for base in _BASES:
        _, bin_of = np.unique(np.rint(logs / np.log(base)), axis=0, return_inverse=True)
        n = int(bin_of.max()) + 1
        if n <= _BINS_MAX:
            break
    bin_of = bin_of.reshape(-1)
    counts = np.bincount(bin_of, pods.counts, n).astype(np.float64)
    sums = [np.bincount(bin_of, pods.counts * amount, n) for amount in pods.amounts.T]
    return Pods(np.stack(sums, axis=1) / counts[:, None], counts)


def _compute_fillings(
    pods: Pods, price: c.Floats, there: c.Floats, *, believed: bool
) -> tuple[c.Floats, c.Floats]:
    """Compute ``Places.value`` and ``Places.cell``."""
    val = pods.amounts @ price
    heaviest = np.argsort(-pods.counts * val, kind="stable")[:_SIZES_MAX]
    heaviest = heaviest[val[heaviest] > 0]
    if not believed or not heaviest.size:
        return np.zeros((price.size, 0)), np.zeros(price.size)
    tables, cell = [], np.zeros(price.size)
    for b in range(price.size):
        sizes = np.ceil(pods.amounts[heaviest, b]).astype(np.int64)
        unit = float(np.gcd.reduce(sizes[sizes > 0])) if sizes.any() else 1.0
        if there[b] / unit > _CELLS_MAX:
            unit = max(1.0, there[b] / p.CELLS)
        cells = np.maximum(1, np.ceil(sizes / unit - 1e-9)).astype(np.int64)
        table = np.zeros(int(there[b] / unit + 1e-9) + 1)
        filling.find_fillings(cells, val[heaviest], table)
        tables.append(table)
        cell[b] = 1 / unit
    longest = max(map(len, tables))
    out = np.array([np.pad(one, (0, longest - len(one)), mode="edge") for one in tables])
    return out, cell
