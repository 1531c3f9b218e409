"""kube-scheduler's scores of resources, as it counts them: over the resources that its configuration names.

Source: kubernetes 1.37 ``plugins/noderesources``; int64, division truncates. A resource counts where the node
has any of it; which are asked at all is settled when a pod is compiled (``plugins/rules/mode.py``).
"""

from __future__ import annotations

import math

from scheduler.kernels._jit import part
from scheduler.kernels.modes import score
from scheduler.schema import columns as c

_FULL, _MILLI = 100, 1000


@part
def score_node(nodes: c.Nodes, ask: c.Ask, row: int) -> int:
    """Return the sum of both scores with their weights, in milli-points. O(resources that they look at)."""
    figures, points = ask.kube.figures, 0
    if figures[c.KUBE_FIT] > 0:
        points += figures[c.KUBE_FIT] * score_fit(nodes, ask, row)
    if figures[c.KUBE_BALANCED] > 0:
        points += figures[c.KUBE_BALANCED] * score_balance(nodes, ask, row)
    return int(points * _MILLI)


@part
def score_fit(nodes: c.Nodes, ask: c.Ask, row: int) -> int:
    """Score NodeResourcesFit: the weighted mean of what the resources are worth with the pod there, 0..100."""
    wanted, strategy = ask.kube.fit, ask.kube.figures[c.KUBE_STRATEGY]
    total, weights = 0, 0
    for i in range(wanted.shape[0]):
        r, nonzero = wanted[i, c.FIT_ROW], wanted[i, c.FIT_NONZERO]
        cap = nodes.allocatable[r, row]
        if cap == 0:
            continue
        there = nodes.nonzero[nonzero, row] if nonzero >= 0 else nodes.requested[r, row]
        use = there + wanted[i, c.FIT_AMOUNT]
        if strategy == score.LEAST:
            points = 0 if use > cap else (cap - use) * _FULL // cap
        elif strategy == score.MOST:
            points = min(use, cap) * _FULL // cap
        else:
            points = score.read_curve(ask.prefers.curve, _FULL if use > cap else use * _FULL // cap)
            if points == 0:
                continue
        total += points * wanted[i, c.FIT_WEIGHT]
        weights += wanted[i, c.FIT_WEIGHT]
    if weights == 0:
        return 0
    return math.floor(total / weights + 0.5) if strategy == score.RATIO else int(total // weights)


@part
def score_balance(nodes: c.Nodes, ask: c.Ask, row: int) -> int:
    """Score NodeResourcesBalancedAllocation: 50 + (50 + evenness with the pod - without it) / 2, 50..100."""
    if ask.kube.balanced.shape[0] == 0:
        return 0
    after, before = _measure_evenness(nodes, ask, row, 1), _measure_evenness(nodes, ask, row, 0)
    return 50 + (50 + after - before) // 2


@part
def _measure_evenness(nodes: c.Nodes, ask: c.Ask, row: int, with_pod: int) -> int:
    """Return 100 less the standard deviation of the used shares in percent; for two shares it is half their gap."""
    n, first, second, total = 0, 0.0, 0.0, 0.0
    for i in range(ask.kube.balanced.shape[0]):
        if nodes.allocatable[ask.kube.balanced[i, 0], row] != 0:
            share = _find_share(nodes, ask, row, i, with_pod)
            second = share if n == 1 else second
            first = share if n == 0 else first
            total += share
            n += 1
    deviation = 0.0
    if n == 2:
        deviation = abs((first - second) / 2)
    elif n > 2:
        mean, squares = total / n, 0.0
        for i in range(ask.kube.balanced.shape[0]):
            if nodes.allocatable[ask.kube.balanced[i, 0], row] != 0:
                away = _find_share(nodes, ask, row, i, with_pod) - mean
                squares += away * away
        deviation = math.sqrt(squares / n)
    return int((1 - deviation) * _FULL)


@part
def _find_share(nodes: c.Nodes, ask: c.Ask, row: int, i: int, with_pod: int) -> float:
    r = ask.kube.balanced[i, 0]
    used = nodes.requested[r, row] + with_pod * ask.kube.balanced[i, 1]
    return float(min(1.0, used / nodes.allocatable[r, row]))
