"""The requested cross-dimensional balance scores: lambda-g and its later hybrid, lambda-g-v3.

Formulas: the KAI-Scheduler proposal #1373/#1374 and the five-scenario benchmark of its author,
both exact to 1e-9. A dimension without capacity is left out. Lanes of a block run side by side
in branch-free loops with a polynomial logarithm, so that LLVM vectorises them.
"""

from __future__ import annotations

import numpy as np

from scheduler.kernels import columns as c
from scheduler.kernels._jit import kernel

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


@kernel
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
def lambda_g(s: c.Scratch, lanes: int) -> None:
    """Score 0..9 of each lane into ``s.out``.

    With shares of the node n (free), p (asked), a = max(0, n − p): infeasible 0; cpu or memory below
    0.10 free 0.5; else clamp(9/4 · (φ·cos(n, p) + φ·(H(n) − H(a)) + (|n| − |a|)/|n| − 0.15·leaks +
    0.3·mean free cpu, memory), 0, 9).
    """
    for lane in range(lanes):
        kept = 0
        fits = True
        n_first = n_second = 0.0
        dot = nn = pp = aa = n_sum = a_sum = 0.0
        leaks = 0.0
        for d in range(c.N_DIMS):
            cap = s.cap[d, lane]
            on = cap > 0.0
            safe = cap if on else 1.0
            n = max(0.0, (cap - s.used[d, lane]) / safe) if on else 0.0
            p = min(1.0, s.ask[d, lane] / safe) if on else 0.0
            a = max(0.0, n - p)
            fits = fits and n >= p
            n_first = n if on and kept == 0 else n_first
            n_second = n if on and kept == 1 else n_second
            kept += 1 if on else 0
            dot += n * p
            nn += n * n
            pp += p * p
            aa += a * a
            n_sum += n
            a_sum += a
            leaks += 1.0 if a > _LEAK_FREE and p < _LEAK_ASKED and on else 0.0
            s.work[d, lane] = n
            s.work[d + c.N_DIMS, lane] = a
        n_norm, p_norm, a_norm = np.sqrt(nn), np.sqrt(pp), np.sqrt(aa)
        levelness = 0.0
        n_scale = 1.0 / n_sum if n_sum >= _TINY else 0.0
        a_scale = 1.0 / a_sum if a_sum >= _TINY else 0.0
        for d in range(c.N_DIMS):
            q = s.work[d, lane] * n_scale
            safe_q = q if q > _TINY else 1.0
            levelness -= safe_q * ln(safe_q)
            q = s.work[d + c.N_DIMS, lane] * a_scale
            safe_q = q if q > _TINY else 1.0
            levelness += safe_q * ln(safe_q)
        flat = n_norm < _TINY or p_norm < _TINY
        cosine = 0.0 if flat else dot / (n_norm * p_norm if not flat else 1.0)
        cosine = min(1.0, max(-1.0, cosine))
        shrink = (n_norm - a_norm) / n_norm if n_norm > _TINY else 0.0
        headroom = (n_first + n_second) / 2.0 if kept >= 2 else 0.0
        raw = PHI * cosine + (PHI * levelness + shrink) - _LEAK * leaks + _HEADROOM * headroom
        score = min(_TOP, max(0.0, raw * _SCALE))
        gated = kept >= 2 and (n_first < _GATE or n_second < _GATE)
        score = _GATED if gated else score
        s.out[lane] = score if fits and kept > 0 else 0.0


@kernel
def lambda_g_v3(s: c.Scratch, lanes: int) -> None:
    """The hybrid's benchmark form, 0..100 per lane into ``s.out``; -1 where the pod does not fit.

    0.6·variance score + 0.2·100·cos(free, asked) + 0.1·100·mean free − pressure − 15 per pair of a
    dimension used above 0.80 with one below 0.20, clamped to 0..100.
    """
    for lane in range(lanes):
        kept, fits = 0.0, True
        dot = nn = pp = total = squares = free = pressure = 0.0
        high = low = 0.0
        for d in range(c.N_DIMS):
            cap = s.cap[d, lane]
            on = cap > 0.0
            safe = cap if on else 1.0
            n = (cap - s.used[d, lane]) / safe if on else 0.0
            p = s.ask[d, lane] / safe if on else 0.0
            u = (s.used[d, lane] + s.ask[d, lane]) / safe if on else 0.0
            fits = fits and (s.used[d, lane] + s.ask[d, lane] <= cap or not on)
            kept += 1.0 if on else 0.0
            dot += n * p
            nn += n * n
            pp += p * p
            total += u
            free += n
            high += 1.0 if u > 0.80 and on else 0.0
            low += 1.0 if u < 0.20 and on else 0.0
            steep = 500.0 * (u - 0.92) if u > 0.92 else 0.0
            mild = 50.0 * (u - 0.85) if u > 0.85 and u <= 0.92 else 0.0
            pressure += steep + mild
            s.work[d, lane] = u
        count = kept if kept > 0.0 else 1.0
        mean = total / count
        for d in range(c.N_DIMS):
            gap = s.work[d, lane] - mean if s.cap[d, lane] > 0.0 else 0.0
            squares += gap * gap
        even = max(0.0, 100.0 * (1.0 - 4.0 * (squares / count)))
        n_norm, p_norm = np.sqrt(nn), np.sqrt(pp)
        flat = n_norm < _TINY or p_norm < _TINY
        cosine = 0.0 if flat else dot / (n_norm * p_norm if not flat else 1.0)
        cosine = min(1.0, max(-1.0, cosine))
        score = 0.6 * even + 0.2 * 100.0 * cosine + 0.1 * 100.0 * (free / count)
        score = min(100.0, max(0.0, score - pressure - 15.0 * high * low))
        s.out[lane] = (score if kept > 0.0 else 0.0) if fits else -1.0
