"""From the demand to what a node's places are worth: prices, typical pods and the best filling.

All in units: an average node is worth 1,000 of them.

- price_r: of demand ÷ capacity, ρ_r, s_r = clip(1 − (1 − ρ_r / max ρ) / 0.25, 0, 1); then
  price_r = 1000 · s_r / Σ s / the mean node's r. A resource with 25 % slack against the scarcest is free, and so is
  one that fewer than a quarter of the pods request. Before pods are seen CPU and memory count
  alike.
- typical pods: the shapes seen, in bins where they are more than 64, beside 45 assumed ones of 1/2, 1/4, 1/8 and
  1/16 of the mean node; of them the 32 with the most at stake.
- worth_k = share_k · val_k · C / S_k: the demand for k by value, times what one place of it is of all that the
  empty cluster has (S_k: value of all pods k that it can hold, C: its own).
- value_r(x): the most that pods of the shapes seen are worth that share x of one resource.

Shapes that no node holds even when it is empty count for nothing. How scarce places are at a time:
``modes/scarcity.py``. What else was tried: docs/placement-figures.md.
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
# Of a pod, by resource.
Amounts = Mapping[int, float]

_UNITS, _SLACK = 1000.0, 0.25
# Pods are binned by the rounded logarithm of each amount, to the first base that leaves few enough bins.
_SHAPES_MAX, _BINS_MAX = 64, 128
_BASES = (1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 4.0)
_ASSUMED = ((0.5, 3), (0.25, 6), (0.125, 12), (0.0625, 24))
# Sizes of a filling, and cells of its table where these are all whole in so many.
_SIZES_MAX, _CELLS_MAX = 32, 1920
# Pods that are seen before a filling of them is believed.
ENOUGH = 60
# What counts whoever asks it; a resource that a smaller part of the pods asks has no price, and one that fewer of the
# nodes have is not assumed to be asked.
_USUAL, _COMMON, _MOST = (c.CPU, c.MEMORY, c.PODS), 0.25, 0.5
# Of whole places, what makes up for the last bit of a quotient; of worth, for that of a sum.
_LAST_BIT, _AS_MUCH = 1e-7, 1 - 1e-9


class Nodes(NamedTuple):
    """Nodes of one sort when they are empty. B resources, n rows."""

    rows: c.Ints  # [n]
    resources: c.Ints  # [B] as in Places
    there: c.Floats  # [B, n]
    largest: (
        c.Floats
    )  # [B] the most that any node has that is judged by them, also one that does not count


class Pods(NamedTuple):
    """Pods that come to them, by shape."""

    amounts: c.Floats  # [m, B] base units
    counts: c.Floats  # [m]


class Learnt(NamedTuple):
    """What is known of one sort of nodes, and what scarcity is judged by."""

    rows: c.Ints  # [n]
    places: Places  # every place as expensive as it can be
    val: c.Floats  # [K] units of a typical pod
    above: c.Floats  # [K] share of the demand, by value, of pods that are worth at least as much
    mean: float  # units of a pod
    new: float  # of the pods the part whose size is one of a kind, in what has a price


def asked(
    cluster: Cluster, nodes: Nodes, told: Mapping[DemandShape, Amounts], counts: Counts
) -> Pods:
    """Shapes as amounts, in an order that does not depend on which came first.

    Args:
        cluster: knows the resources by their names.
        nodes: what the amounts are of; what no node offers fits nowhere.
        told: by shape what it asks but for ``others``, by resource as in ``Places``.
        counts: how many there are of each.
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


def others(cluster: Cluster, counts: Counts, told: Iterable[int]) -> list[int]:
    """The resources that pods ask beside those told, of which any node has some."""
    names = {name for shape in counts for name, _ in shape.others}
    asked = {cluster.nodes.find_row_asked(name) for name in names}
    return sorted(asked - {c.UNKNOWN, *told})


def learnt(nodes: Nodes, pods: Pods, *, believed: bool) -> Learnt | None:
    """What follows from the demand; None where there are no nodes, or most of them have nothing.

    Args:
        nodes: the nodes.
        pods: the pods seen.
        believed: enough of them for a filling.
    """
    if not nodes.rows.size or not nodes.there.any():
        return None
    pods = _that_fit(nodes.there, pods)
    mean_node = nodes.there.mean(axis=1)
    assumed = _assumed(nodes, mean_node)
    use = _use(nodes, pods)
    if not use.any():
        # Nothing is asked that nodes have.
        use = _use(nodes, assumed)
    if not use.any():
        return None
    usual = np.isin(nodes.resources, _USUAL)
    kept = np.argsort(np.where(usual & (use > 0), -np.inf, -use), kind="stable")
    kept = np.sort(kept[use[kept] > 0][: p.RESOURCES_MAX])
    scarce = _scarce(use[kept], (usual | _are_common(nodes, pods))[kept])
    price = _UNITS * scarce / scarce.sum() / mean_node[kept]
    there = nodes.there[kept]
    seen = Pods(pods.amounts[:, kept], pods.counts)
    assumed = Pods(assumed.amounts[:, kept], assumed.counts)
    binned = _binned(seen)
    typical = Pods(
        np.concatenate((binned.amounts, assumed.amounts)),
        np.concatenate((binned.counts, assumed.counts)),
    )
    val = typical.amounts @ price
    share = typical.counts * val
    share = share / share.sum()
    most = np.argsort(-share * val, kind="stable")[: p.TYPICAL_MAX]
    above = np.array([share[val >= one * _AS_MUCH].sum() for one in val[most]])
    value, cell = _fillings(binned, price, there.max(axis=1), believed=believed)
    with np.errstate(divide="ignore"):
        per = np.where(typical.amounts[most] > 0, 1 / typical.amounts[most], 0.0).T
    # Arrays that lie otherwise are of another type to kernels.
    per = np.ascontiguousarray(per)
    beyond = np.ascontiguousarray(np.where(per > 0, _LAST_BIT, p.ANY))
    holds = np.zeros(most.size)
    rooms.count(np.ascontiguousarray(there), per, beyond, holds)
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
        level=_level(nodes.resources[kept]),
        value=value,
        cell=cell,
        most=np.zeros((kept.size, 0)),
        wide=p.CELLS / np.maximum(nodes.largest[kept], 1.0),
        weights=weights,
    )
    counts = typical.counts.sum()
    mean = float((typical.counts * val).sum() / counts)
    return Learnt(nodes.rows, places, val[most], above, mean, _newness(seen, price))


def _newness(pods: Pods, price: c.Floats) -> float:
    """How many sizes there are for each pod. What costs nothing does not tell sizes apart: it may be noise."""
    if not pods.counts.size:
        return 0.0
    sizes = np.unique(pods.amounts[:, price > 0], axis=0)
    return float(len(sizes) / pods.counts.sum())


def _are_common(nodes: Nodes, pods: Pods) -> c.Flags:
    """[B] whether enough pods ask a resource for it to be what runs out; few may wait for what hardly any node has."""
    total = pods.counts.sum()
    if not total:
        return np.ones(nodes.resources.size, np.bool_)
    found: c.Flags = pods.counts @ (pods.amounts > 0) >= _COMMON * total
    return found


def _scarce(use: c.Floats, common: c.Flags) -> c.Floats:
    """[B] how near a resource is to what runs out first, 0..1."""
    most = use[common].max(initial=0.0)
    if not most:
        common, most = np.ones_like(common), use.max()
    return np.where(common, np.clip(1 - (1 - use / most) / _SLACK, 0, 1), 0.0)


def _use(nodes: Nodes, pods: Pods) -> c.Floats:
    """[B] how much of each resource pods ask, in parts of what there is; of what there is none of, 0."""
    there = nodes.there.sum(axis=1)
    asked = pods.counts @ pods.amounts
    found: c.Floats = np.divide(asked, there, out=np.zeros_like(there), where=there > 0)
    return found


def weighed(places: Places, worth: c.Floats, weights: c.Floats) -> Places:
    """Places at another worth and other weights, of those typical pods that matter; the bounds that follow."""
    kept = np.flatnonzero(worth > 0)
    found = places.replace(
        per=np.ascontiguousarray(places.per[:, kept]),
        beyond=np.ascontiguousarray(places.beyond[:, kept]),
        worth=worth[kept],
        weights=weights,
    )
    return found.replace(most=_most(found))


def _most(places: Places) -> c.Floats:
    """[B, C + 1] the most that typical pods and the filling come to, by one resource."""
    weights = places.weights
    filled = _value_at(places, places.resources.size)
    out = np.zeros((places.resources.size, p.CELLS + 1))
    for b in range(places.resources.size):
        room = np.arange(p.CELLS + 1) / places.wide[b]
        fits = room[:, None] * places.per[b] + places.beyond[b]
        whole = np.floor(fits)
        held = (whole + weights[p.PART] * (fits - whole) ** 3) @ places.worth
        out[b] = weights[p.FULL] * held + weights[p.MIX] * filled[b]
    return out


def _value_at(places: Places, n: int) -> c.Floats:
    """[B, C + 1] the filling's value in the cells of ``most``, where a resource has no price that of all."""
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


def _that_fit(there: c.Floats, pods: Pods) -> Pods:
    """Without those that no empty node holds."""
    fits = np.zeros(pods.counts.size, np.bool_)
    rooms.fitting(np.ascontiguousarray(there.T), there.max(axis=1), pods.amounts, fits)
    return Pods(pods.amounts[fits], pods.counts[fits])


def _assumed(nodes: Nodes, mean_node: c.Floats) -> Pods:
    """Pods that look like most nodes."""
    shares = np.array([share for share, _ in _ASSUMED])
    most_have = (nodes.there > 0).mean(axis=1) >= _MOST
    amounts = np.where(nodes.resources == c.PODS, 1.0, shares[:, None] * mean_node * most_have)
    return Pods(amounts, np.array([float(n) for _, n in _ASSUMED]))


def _level(resources: c.Ints) -> c.Floats:
    """Alike for all resources: whatever binds now, what is left uneven is stranded. Pods are no amount of anything."""
    counts = (resources != c.PODS).astype(np.float64)
    found: c.Floats = counts / max(1.0, counts.sum())
    return found


def _binned(pods: Pods) -> Pods:
    """Shapes as they are while there are few; else bins of about as large ones, each with its mean."""
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


def _fillings(
    pods: Pods, price: c.Floats, there: c.Floats, *, believed: bool
) -> tuple[c.Floats, c.Floats]:
    """``Places.value`` and ``Places.cell``."""
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
        filling.fill(cells, val[heaviest], table)
        tables.append(table)
        cell[b] = 1 / unit
    longest = max(map(len, tables))
    out = np.array([np.pad(one, (0, longest - len(one)), mode="edge") for one in tables])
    return out, cell
