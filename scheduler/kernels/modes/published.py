"""Policies that others published, to compare with: scores as integers 0..100, truncated like theirs.

Source: the artifact of "Beware of Fragmentation" (USENIX ATC 2023). Its constants 128,000 milli-CPU and
8,000 milli-GPU are its largest node; here they are the largest node of the cluster.
"""

from __future__ import annotations

import math

import numpy as np

from scheduler.kernels._jit import part
from scheduler.schema import columns as c

_FULL = 100
_TENTH = 10
_QUARTER, _THIRD, _HALF = _FULL // 4, _FULL // 3, _FULL // 2


@part
def score_best_fit(demand: c.Demand, cpu: int, idle: int) -> int:
    """Return 100 · (1 − (CPU left + GPU left) / 2), each over the largest node's; what is left with the pod."""
    cpu_left = cpu / demand.rates[c.RATE_MOST_CPU]
    gpu_left = idle / demand.rates[c.RATE_MOST_GPU]
    return int(_FULL * (1 - (0.5 * cpu_left + 0.5 * gpu_left)))


@part
def score_dot_product(demand: c.Demand, cpu: int, asked_cpu: int, idle: int, asked_gpu: int) -> int:
    """Return 100 · (1 − alignment / 2): free before, times asked, over the largest node's, CPU and GPU."""
    most_cpu, most_gpu = demand.rates[c.RATE_MOST_CPU], demand.rates[c.RATE_MOST_GPU]
    alignment = cpu / most_cpu * (asked_cpu / most_cpu) + idle / most_gpu * (asked_gpu / most_gpu)
    return int(_FULL * (1 - alignment / 2))


@part
def score_packing(nodes: c.Nodes, pool: int, row: int, n: int, s: c.Scratch, wanted: int) -> int:
    """Prefer shares on used cards (100..50), then free cards of used nodes (50..33), then free nodes."""
    whole = 0
    for i in range(n):
        if s.states[0, i] == c.WHOLE and s.states[1, i] == c.WHOLE:
            whole += s.states[2, i]
    total = nodes.allocatable[nodes.pools.resource[pool], row]
    if nodes.pools.managed[pool]:
        total = nodes.pools.count[pool]
    if whole == total:
        return int(max(_THIRD - whole, whole))
    if not nodes.pools.managed[pool]:
        return int(max(_HALF - wanted, _THIRD))
    opened, left = 0, 0
    for j in range(nodes.pools.count[pool]):
        if s.peak[c.SLOTS, j] > 0:
            idle = min(s.free[0, j], s.free[1, j])
            left += idle // _TENTH
            opened += 1 if idle == c.WHOLE else 0
    if opened > 0:
        return int(max(_HALF - opened, _THIRD))
    return int(max(_FULL - left // _TENTH, _HALF))


@part
def score_clustering(nodes: c.Nodes, ask: c.Ask, demand: c.Demand, row: int, idle: int) -> int:
    """Prefer nodes that hold only pods of the same size, then nodes that hold such pods too, then idle nodes, then others."""
    most = int(demand.rates[c.RATE_MOST_GPU])
    score = _QUARTER * (most - idle) // most
    kinds = 0
    for i in range(ask.prefers.sizes.size):
        kinds += 1 if nodes.requested[ask.prefers.sizes[i], row] > 0 else 0
    if nodes.requested[ask.prefers.sizes[ask.rules.size], row] > 0:
        return int(score + (3 * _QUARTER if kinds == 1 else 2 * _QUARTER))
    return int(score + (_QUARTER if kinds == 0 else 0))


@part
def score_fgd(before: int, after: int, weights: float) -> int:
    """Return 100 · sigmoid of the fragments that vanish, in GPUs; the two measures in weight · milli-GPU."""
    return int(_FULL / (1 + math.exp((after - before) / weights / c.WHOLE)))


@part
def draw_lot(number: int, place: int) -> int:
    """Draw a lot for a place in a decision, 0..2^31: SplitMix64 of both. Vigna, public domain."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(place)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((z ^ (z >> np.uint64(31))) >> np.uint64(33))
