"""The requested cross-dimensional balance scores: lambda-g and its later hybrid, lambda-g-v3.

Formulas: the KAI-Scheduler proposal #1373/#1374 and the five-scenario benchmark of its author,
both exact to 1e-9. A dimension without capacity is left out. Lanes of a block run side by side in
short branch-free loops over one flat array, at offsets that are constants to the compiler, with a
polynomial logarithm: so LLVM proves that nothing overlaps, and vectorises.
"""

from __future__ import annotations

import math

import numpy as np

from scheduler.kernels._jit import kernel, part
from scheduler.schema import columns as c

PHI = 1.618033988749895
_TINY = 1e-10
_GATE, _GATED = 0.10, 0.5
_LEAK, _LEAK_FREE, _LEAK_ASKED = 0.15, 0.70, 0.10
_HEADROOM = 0.3
_SCALE, _TOP = 9.0 / 4.0, 9.0

# FDLIBM's e_log coefficients (Sun Microsystems, freely redistributable): error below one ulp.
_LN2 = 0.6931471805599453
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = (
    0.6666666666666735130,
    0.3999999999940941908,
    0.2857142874366239149,
    0.2222219843214978396,
    0.1818357216161805012,
    0.1531383769920937332,
    0.1479819860511658591,
)
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD

# Offsets in Scratch.lanes beyond cap, used and ask; six rows each for the first two.
_L = c.BLOCK
_CAP, _USED, _ASK, _OUT = c.LANES_CAP, c.LANES_USED, c.LANES_ASK, c.LANES_OUT
_FREE, _AFTER = c.LANES_WORK, c.LANES_WORK + 6 * _L
_SUMS = _AFTER + 6 * _L
_DOT, _FREE2, _ASK2, _AFTER2, _FREE1, _AFTER1 = (_SUMS + i * _L for i in range(6))
_LEAKS, _FIRST, _SECOND, _KEPT, _FITS, _LEVEL = (_SUMS + i * _L for i in range(6, 12))
_FREE_SCALE, _AFTER_SCALE = _SUMS + 12 * _L, _SUMS + 13 * _L
_USED1, _HIGH, _LOW, _PRESSURE = _AFTER2, _LEAKS, _FIRST, _SECOND


@part
def ln(x: float) -> float:
    """Natural logarithm of a positive, normal number; error below 1e-15 relative, no branches."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = np.int64(bits - (exponent << 52)).view(np.float64)
    f = mantissa - 1.0
    z = f / (2.0 + f)
    w = z * z
    series = w * (_L1 + w * (_L2 + w * (_L3 + w * (_L4 + w * (_L5 + w * (_L6 + w * _L7))))))
    half = 0.5 * f * f
    return float(exponent * _LN2 + (f - (half - z * (half + series))))


@kernel
def score_lambda_g(s: c.Scratch, lanes: int) -> None:
    """Write the score 0..9 of each lane to ``s.out``.

    With shares of the node n (free), p (asked), a = max(0, n − p): infeasible 0; cpu or memory below
    0.10 free 0.5; else clamp(9/4 · (φ·cos(n, p) + φ·(H(n) − H(a)) + (|n| − |a|)/|n| − 0.15·leaks +
    0.3·mean free cpu, memory), 0, 9).
    """
    w = s.lanes
    for row in range(_SUMS, _FREE_SCALE, _L):
        for lane in range(lanes):
            w[row + lane] = 0.0
    for d in range(c.N_DIMS):
        o = d * _L
        for lane in range(lanes):
            cap = w[_CAP + o + lane]
            on = cap > 0.0
            safe = cap if on else 1.0
            n = (cap - w[_USED + o + lane]) / safe
            n = n if (n > 0.0) & on else 0.0
            p = w[_ASK + o + lane] / safe
            p = p if p < 1.0 else 1.0
            p = p if on else 0.0
            a = n - p
            w[_FITS + lane] += 1.0 if a < 0.0 else 0.0
            a = a if a > 0.0 else 0.0
            w[_FREE + o + lane] = n
            w[_AFTER + o + lane] = a
            w[_DOT + lane] += n * p
            w[_FREE2 + lane] += n * n
            w[_ASK2 + lane] += p * p
            w[_AFTER2 + lane] += a * a
            w[_FREE1 + lane] += n
            w[_AFTER1 + lane] += a
            w[_LEAKS + lane] += 1.0 if (a > _LEAK_FREE) & (p < _LEAK_ASKED) & on else 0.0
            kept = w[_KEPT + lane]
            w[_FIRST + lane] += n if on & (kept == 0.0) else 0.0
            w[_SECOND + lane] += n if on & (kept == 1.0) else 0.0
            w[_KEPT + lane] = kept + (1.0 if on else 0.0)
    for lane in range(lanes):
        free, after = w[_FREE1 + lane], w[_AFTER1 + lane]
        w[_FREE_SCALE + lane] = 1.0 / free if free >= _TINY else 0.0
        w[_AFTER_SCALE + lane] = 1.0 / after if after >= _TINY else 0.0
    for d in range(c.N_DIMS):
        o = d * _L
        for lane in range(lanes):
            q = w[_FREE + o + lane] * w[_FREE_SCALE + lane]
            q = q if q > _TINY else 1.0
            r = w[_AFTER + o + lane] * w[_AFTER_SCALE + lane]
            r = r if r > _TINY else 1.0
            w[_LEVEL + lane] += r * ln(r) - q * ln(q)
    for lane in range(lanes):
        n_norm = math.sqrt(w[_FREE2 + lane])
        p_norm = math.sqrt(w[_ASK2 + lane])
        a_norm = math.sqrt(w[_AFTER2 + lane])
        flat = (n_norm < _TINY) | (p_norm < _TINY)
        cosine = 0.0 if flat else w[_DOT + lane] / (n_norm * p_norm)
        cosine = cosine if cosine < 1.0 else 1.0
        shrink = (n_norm - a_norm) / n_norm if n_norm > _TINY else 0.0
        pair = w[_KEPT + lane] >= 2.0
        headroom = (w[_FIRST + lane] + w[_SECOND + lane]) / 2.0 if pair else 0.0
        raw = PHI * cosine + (PHI * w[_LEVEL + lane] + shrink)
        raw = raw - _LEAK * w[_LEAKS + lane] + _HEADROOM * headroom
        score = raw * _SCALE
        score = score if score > 0.0 else 0.0
        score = score if score < _TOP else _TOP
        gated = pair & ((w[_FIRST + lane] < _GATE) | (w[_SECOND + lane] < _GATE))
        score = _GATED if gated else score
        w[_OUT + lane] = score if (w[_FITS + lane] == 0.0) & (w[_KEPT + lane] > 0.0) else 0.0


@kernel
def score_lambda_g_v3(s: c.Scratch, lanes: int) -> None:
    """Write the score 0..100 of the hybrid's benchmark form for each lane to ``s.out``; -1 where the pod does not fit.

    0.6·variance score + 0.2·100·cos(free, asked) + 0.1·100·mean free − pressure − 15 per pair of a
    dimension used above 0.80 with one below 0.20, clamped to 0..100.
    """
    w = s.lanes
    for row in range(_SUMS, _FREE_SCALE, _L):
        for lane in range(lanes):
            w[row + lane] = 0.0
    for d in range(c.N_DIMS):
        o = d * _L
        for lane in range(lanes):
            cap = w[_CAP + o + lane]
            on = cap > 0.0
            safe = cap if on else 1.0
            asked = w[_ASK + o + lane]
            after = w[_USED + o + lane] + asked
            # Of a dimension over its capacity nothing is free; that refuses only who asks some of it.
            left = cap - w[_USED + o + lane]
            left = left if left > 0.0 else 0.0
            n = left / safe if on else 0.0
            p = asked / safe if on else 0.0
            u = after / safe if on else 0.0
            w[_FREE + o + lane] = u
            w[_FITS + lane] += 1.0 if on & (asked > left) else 0.0
            w[_KEPT + lane] += 1.0 if on else 0.0
            w[_DOT + lane] += n * p
            w[_FREE2 + lane] += n * n
            w[_ASK2 + lane] += p * p
            w[_FREE1 + lane] += n
            w[_USED1 + lane] += u
            w[_HIGH + lane] += 1.0 if (u > 0.80) & on else 0.0
            w[_LOW + lane] += 1.0 if (u < 0.20) & on else 0.0
            mild = 50.0 * (u - 0.85) if u > 0.85 else 0.0
            w[_PRESSURE + lane] += 500.0 * (u - 0.92) if u > 0.92 else mild
    for d in range(c.N_DIMS):
        o = d * _L
        for lane in range(lanes):
            kept = w[_KEPT + lane]
            mean = w[_USED1 + lane] / (kept if kept > 0.0 else 1.0)
            gap = w[_FREE + o + lane] - mean if w[_CAP + o + lane] > 0.0 else 0.0
            w[_LEVEL + lane] += gap * gap
    for lane in range(lanes):
        kept = w[_KEPT + lane]
        count = kept if kept > 0.0 else 1.0
        even = 100.0 * (1.0 - 4.0 * (w[_LEVEL + lane] / count))
        even = even if even > 0.0 else 0.0
        n_norm, p_norm = math.sqrt(w[_FREE2 + lane]), math.sqrt(w[_ASK2 + lane])
        flat = (n_norm < _TINY) | (p_norm < _TINY)
        cosine = 0.0 if flat else w[_DOT + lane] / (n_norm * p_norm)
        cosine = cosine if cosine < 1.0 else 1.0
        score = 0.6 * even + 0.2 * 100.0 * cosine + 0.1 * 100.0 * (w[_FREE1 + lane] / count)
        score = score - w[_PRESSURE + lane] - 15.0 * w[_HIGH + lane] * w[_LOW + lane]
        score = score if score > 0.0 else 0.0
        score = score if score < 100.0 else 100.0
        score = score if kept > 0.0 else 0.0
        w[_OUT + lane] = score if w[_FITS + lane] == 0.0 else -1.0
