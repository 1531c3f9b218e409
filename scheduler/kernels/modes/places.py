"""What a placement costs a node as a whole: places for typical pods, and the value of the best filling.

    lost = H(before) − H(after) + rest · val(after) + used · U(before) + uneven · var(after) + square · U(after)²
    H(s) = full · Σ_k worth_k · (⌊n_k⌋ + part · (n_k − ⌊n_k⌋)³) + mix · min_r v_r(s_r)

- n_k: how many pods of typical shape k fit in what is free, s: the least over resources of s_r / asked.
- v_r(x): the most that pods of the sizes seen are worth that share x of one resource (a knapsack).
- val(s) = Σ_r price_r · s_r; U: the mean of used shares, var: their variance, over resources that bind.

Where it is to be packed, ``packed`` stands in for ``rest``, and used shares count for nothing. What the pod itself
is worth is the same on all nodes, and left out. Figures that are learnt: ``modes/places.py``.
"""

from __future__ import annotations

import math

from scheduler.kernels._jit import kernel, part, tiny
from scheduler.kernels.devices import pools
from scheduler.schema import columns as c
from scheduler.schema import places as p
from scheduler.schema.handles import Floats1, Ints1
from scheduler.schema.places import Places

# Losses beyond so many steps are told apart in coarser ones: what is left of a mode's range has room for more.
_FINE, _COARSE, _STEP_POINTS, _MIDDLE = 4000, 16, 10, 50_000
_EPSILON = 1e-9
_BY_PODS = 0.1


@tiny
def score_loss(lost: float, step: float) -> int:
    """Return the milli-points of a loss: 10 less for every step, 10 / 16 less beyond 4,000 steps; within 0..100,000."""
    steps = int(max(-1e6, min(1e6, math.floor(-lost / step + _EPSILON))))
    found = max(-_FINE, min(_FINE, steps))
    beyond = steps - found
    found = _MIDDLE + _STEP_POINTS * found + _STEP_POINTS * beyond // _COARSE
    return max(0, min(2 * _MIDDLE, found))


@tiny
def read_node(nodes: c.Nodes, places: Places, pool: int, row: int, s: c.Scratch) -> None:
    """Write to ``s.room`` what is free of each resource on the node, and the share in use.

    The share counts what kube-scheduler assumes for pods that request nothing, because many such pods do fill a node.
    """
    for b in range(places.resources.size):
        r = places.resources[b]
        if r >= 0:
            there, used = nodes.allocatable[r, row], nodes.requested[r, row]
        else:
            figure = c.CORES if r == p.OF_CORES else c.MIB
            there, used = nodes.pools.total[figure, pool], nodes.pools.used[figure, pool]
            if not nodes.pools.managed[pool]:
                there = nodes.allocatable[nodes.pools.resource[pool], row] * pools.WHOLE_CORES
                used = pools.count_devices(nodes, pool, row) * pools.WHOLE_CORES
                # Of devices that are only counted memory is not known: it is used as they are.
        inverse = 1.0 / there if there > 0 else 0.0
        s.room[0, b] = max(0, there - used)
        if r in (c.CPU, c.MEMORY):
            used = nodes.nonzero[r, row]
        s.room[1, b] = min(1.0, used * inverse) if there > 0 else 1.0
        s.room[2, b] = inverse


@part
def write_ask(ask: c.Ask, places: Places, taken: tuple[int, int], s: c.Scratch, at: int) -> None:
    """Write to row ``at`` of ``s.room`` what the pod asks of each resource; of cards ``taken``, in percent and MiB."""
    for b in range(places.resources.size):
        r = places.resources[b]
        amount = 0
        if r == p.OF_CORES:
            amount = taken[0]
        elif r == p.OF_MIB:
            amount = taken[1]
        else:
            for i in range(ask.resources.size):
                if ask.resources[i] == r:
                    amount = ask.amounts[i]
        s.room[at, b] = amount
        s.room[at + 1, b] = ask.nonzero[r] if r in (c.CPU, c.MEMORY) else amount


@tiny
def take_ask(places: Places, s: c.Scratch, at: int) -> None:
    """Take from what is free in ``s.room`` what stands in its row ``at``."""
    for b in range(places.resources.size):
        s.room[0, b] = max(0.0, s.room[0, b] - s.room[at, b])
        s.room[1, b] = min(1.0, s.room[1, b] + s.room[at + 1, b] * s.room[2, b])


@tiny
def find_held(places: Places, s: c.Scratch) -> float:
    """Return H of what stands in ``s.room``, in units. O(B · K)."""
    n, most = places.resources.size, places.worth.size
    for k in range(most):
        s.places[k] = p.ANY
    for b in range(n):
        room = s.room[0, b]
        for k in range(most):
            fits = room * places.per[b, k] + places.beyond[b, k]
            s.places[k] = fits if fits < s.places[k] else s.places[k]
    total, part = 0.0, places.weights[p.PART]
    for k in range(most):
        whole = math.floor(s.places[k])
        rest = s.places[k] - whole
        total += places.worth[k] * (whole + part * rest * rest * rest)
    total *= places.weights[p.FULL]
    if places.weights[p.MIX] > 0 and places.value.shape[1] > 0:
        total += places.weights[p.MIX] * _find_filling(places, s)
    return float(total)


@tiny
def _find_filling(places: Places, s: c.Scratch) -> float:
    """Find the value of the best filling of what is free, by the resource that bounds it most."""
    found = p.ANY
    for b in range(places.resources.size):
        if places.price[b] > 0:
            at = min(places.value.shape[1] - 1, int(s.room[0, b] * places.cell[b] + _EPSILON))
            found = min(found, places.value[b, at])
    return float(found if found < p.ANY else 0.0)


@tiny
def bound_held(places: Places, s: c.Scratch) -> float:
    """Return a bound that ``find_held`` does not exceed, by one look for each resource."""
    found, last = p.ANY, places.most.shape[1] - 1
    for b in range(places.resources.size):
        # One cell more: what lies between two cells has no more than the higher.
        at = min(last, int(s.room[0, b] * places.wide[b]) + 1)
        found = min(found, places.most[b, at])
    return float(found)


@tiny
def find_used_share(places: Places, s: c.Scratch) -> float:
    """Return the mean share in use of what stands in ``s.room``, 0..1."""
    total = 0.0
    for b in range(places.resources.size):
        total += places.level[b] * s.room[1, b]
    return float(total)


@tiny
def find_other_loss(places: Places, objective: int, was_used: float, s: c.Scratch) -> float:
    """Return all parts of the loss but H, by what stands in ``s.room`` after the pod."""
    weights, worth = places.weights, 0.0
    for b in range(places.resources.size):
        worth += places.price[b] * s.room[0, b]
    if objective == c.PACK_NODES:
        return float(weights[p.PACKED] * worth)
    cost = weights[p.REST] * worth + weights[p.USED] * was_used
    if weights[p.UNEVEN] > 0 or weights[p.SQUARE] > 0:
        mean = find_used_share(places, s)
        cost += (
            weights[p.UNEVEN] * _measure_unevenness(places, mean, s)
            + weights[p.SQUARE] * mean * mean
        )
    return float(cost)


@tiny
def _measure_unevenness(places: Places, mean: float, s: c.Scratch) -> float:
    """Return the variance of used shares, whose mean is given."""
    squares = 0.0
    for b in range(places.resources.size):
        apart = s.room[1, b] - mean
        squares += places.level[b] * apart * apart
    return squares


@tiny
def measure_fullness(nodes: c.Nodes, row: int, was_used: float) -> float:
    """Return how full a node is, 0..1: by the mean share in use and a little by the number of pods, as some request nothing."""
    most = nodes.allocatable[c.PODS, row]
    pods = min(1.0, nodes.requested[c.PODS, row] / most) if most > 0 else 1.0
    return (1.0 - _BY_PODS) * was_used + _BY_PODS * pods


@tiny
def score_second(objective: int, fullness: float, steps: int) -> int:
    """Return a score that orders equal placements, from 0 to below ``steps``: by how full the node was."""
    if objective == c.NO_OBJECTIVE:
        return 0
    share = fullness if objective == c.PACK_NODES else 1.0 - fullness
    return int(share * (steps - 1) + _EPSILON)


@kernel
def count_places(nodes: c.Nodes, places: Places, rows: Ints1, s: c.Scratch, out: Floats1) -> None:
    """Add to ``out`` [2 + K], for each of ``rows``, the units that are free, the units in use, and the whole places."""
    for i in range(rows.size):
        row = rows[i]
        read_node(nodes, places, pools.find_first(nodes, row), row, s)
        for b in range(places.resources.size):
            free = s.room[0, b] * places.price[b]
            out[0] += free
            if s.room[2, b] > 0:
                out[1] += places.price[b] / s.room[2, b] - free
        for k in range(places.worth.size):
            fits = p.ANY
            for b in range(places.resources.size):
                fits = min(fits, s.room[0, b] * places.per[b, k] + places.beyond[b, k])
            out[2 + k] += math.floor(fits)
