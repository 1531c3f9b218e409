"""The modes: what a placement is worth, in milli-points 0..100,000, for a block of nodes at once.

Input of every mode is ``Scratch.cap``, ``.used`` and ``.ask`` [6, lanes]: capacity, use before and
request in base units, one column per node, filled by ``kernels/board.py``. Floats hold them exactly
up to 2^53 (9 PB, in bytes). Output is ``Scratch.points`` [lanes].
"""

from __future__ import annotations

import math

from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c

# Ask.mode.blind. The last two are the score of a node policy, which stands in the mode's place.
LEAST, MOST, BALANCED, RATIO, LAMBDA_G, LAMBDA_G_V3, KUBE, NODE_BINPACK, NODE_SPREAD = range(9)

_FULL = 100
_MILLI = 1000
# Dimensions from here on are extended resources: they count only for pods that ask for them.
_FIRST_SCALAR = 2


@part
def uses_nonzero(mode: int) -> bool:
    """Whether the mode counts kube-scheduler's stand-ins for containers that ask nothing."""
    return mode in (LEAST, MOST, RATIO)


@kernel
def score_fit(ask: c.Ask, s: c.Scratch, lanes: int) -> None:
    """Score NodeResourcesFit: least-allocated, most-allocated, requested-to-capacity-ratio.

    Source: kubernetes 1.37 ``plugins/noderesources``; integer arithmetic, truncating.
    """
    mode = ask.prefers.mode.blind
    for lane in range(lanes):
        total, weights = 0, 0
        for d in range(c.N_DIMS):
            cap, asked = int(s.cap[d, lane]), int(s.ask[d, lane])
            weight = ask.prefers.weights[d]
            if weight == 0 or cap <= 0 or (d >= _FIRST_SCALAR and asked == 0):
                continue
            use = int(s.used[d, lane]) + asked
            if mode == LEAST:
                points = 0 if use > cap else (cap - use) * _FULL // cap
            elif mode == MOST:
                points = min(use, cap) * _FULL // cap
            else:
                points = read_curve(ask.prefers.curve, _FULL if use > cap else use * _FULL // cap)
                if points == 0:
                    continue
            total += points * weight
            weights += weight
        if weights == 0:
            s.points[lane] = 0
        elif mode == RATIO:
            s.points[lane] = math.floor(total / weights + 0.5) * _MILLI
        else:
            s.points[lane] = total // weights * _MILLI


@part
def read_curve(curve: c.Ints, percent: int) -> int:
    """Return the points at a utilization on a curve [2, points]: piecewise linear in integers, truncating toward zero as Go does."""
    for i in range(curve.shape[1]):
        if percent <= curve[0, i]:
            if i == 0:
                return int(curve[1, 0])
            rise = (curve[1, i] - curve[1, i - 1]) * (percent - curve[0, i - 1])
            run = curve[0, i] - curve[0, i - 1]
            step = abs(rise) // run
            return int(curve[1, i - 1] + (step if rise >= 0 else -step))
    return int(curve[1, curve.shape[1] - 1])


@kernel
def score_balance(ask: c.Ask, s: c.Scratch, lanes: int) -> None:
    """Score NodeResourcesBalancedAllocation of Kubernetes 1.37: 50 + (50 + B(with) − B(without)) / 2.

    B = int((1 − deviation) · 100); deviation of the used shares, population, halved gap for two.
    """
    for lane in range(lanes):
        asks = 0
        for d in range(c.N_DIMS):
            if ask.prefers.weights[d] > 0:
                asks += int(s.ask[d, lane])
        if asks == 0:
            s.points[lane] = 0
            continue
        after = _measure_evenness(ask, s, lane, 1)
        before = _measure_evenness(ask, s, lane, 0)
        s.points[lane] = (50 + (50 + after - before) // 2) * _MILLI


@part
def _measure_evenness(ask: c.Ask, s: c.Scratch, lane: int, with_pod: int) -> int:
    n, first, second, total = 0, 0.0, 0.0, 0.0
    for d in range(c.N_DIMS):
        cap = s.cap[d, lane]
        if ask.prefers.weights[d] == 0 or cap <= 0 or (d >= _FIRST_SCALAR and s.ask[d, lane] == 0):
            continue
        share = min(1.0, (s.used[d, lane] + with_pod * s.ask[d, lane]) / cap)
        second = share if n == 1 else second
        first = share if n == 0 else first
        total += share
        n += 1
    deviation = 0.0
    if n == 2:
        deviation = abs(first - second) / 2
    elif n > 2:
        mean = total / n
        squares = 0.0
        for d in range(c.N_DIMS):
            cap = s.cap[d, lane]
            if (
                ask.prefers.weights[d] == 0
                or cap <= 0
                or (d >= _FIRST_SCALAR and s.ask[d, lane] == 0)
            ):
                continue
            share = min(1.0, (s.used[d, lane] + with_pod * s.ask[d, lane]) / cap)
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / n)
    return int((1 - deviation) * _FULL)
