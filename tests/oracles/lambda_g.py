"""The two Lambda-G formulas, one node and one pod at a time, in plain Python.

Dimensions come in the order cpu, memory, GPU compute, GPU memory, IOPS, network. A dimension that the node
does not have (capacity not above 0) is left out; the others keep their order.
"""

import math
from collections.abc import Sequence

PHI = 1.618033988749895
MOST_DIMENSIONS = 6
TINY = 1e-10

Vector = Sequence[float]


def lambda_g(capacity: Vector, used: Vector, request: Vector) -> float:
    """The first formula: 0 (does not fit, nothing to judge, or clipped) to 9."""
    free: list[float] = []
    asked: list[float] = []
    for total, taken, wanted in zip(capacity, used, request, strict=True):
        if total <= 0 or len(free) == MOST_DIMENSIONS:
            continue
        free.append(max(0.0, (total - taken) / total))
        asked.append(min(1.0, wanted / total))
    if not free:
        return 0.0
    for has, wants in zip(free, asked, strict=True):
        if has < wants:
            return 0.0
    if len(free) >= 2 and (free[0] < 0.10 or free[1] < 0.10):
        return 0.5
    return min(9.0, max(0.0, raw(free, asked) * 9.0 / 4.0))


def raw(free: Vector, asked: Vector) -> float:
    """The sum before scaling and clipping, of shares that fit and pass the gate."""
    after = [max(0.0, has - wants) for has, wants in zip(free, asked, strict=True)]
    headroom = (free[0] + free[1]) / 2 if len(free) >= 2 else 0.0
    exhaustion = PHI * (entropy(free) - entropy(after)) + utilisation(free, after)
    return PHI * alignment(free, asked) + exhaustion - leak(after, asked) + 0.3 * headroom


def norm(vector: Vector) -> float:
    """The Euclidean length."""
    return math.sqrt(sum(value * value for value in vector))


def alignment(free: Vector, asked: Vector) -> float:
    """The cosine of the angle between what is free and what is asked."""
    if norm(free) < TINY or norm(asked) < TINY:
        return 0.0
    dot = sum(has * wants for has, wants in zip(free, asked, strict=True))
    return min(1.0, max(-1.0, dot / (norm(free) * norm(asked))))


def entropy(vector: Vector) -> float:
    """Shannon's entropy of the vector's proportions, natural logarithm."""
    total = sum(vector)
    if total < TINY:
        return 0.0
    shares = [value / total for value in vector]
    return -sum(share * math.log(share) for share in shares if share > TINY)


def utilisation(free: Vector, after: Vector) -> float:
    """By how much of its length the free vector shrinks."""
    if norm(free) <= TINY:
        return 0.0
    return (norm(free) - norm(after)) / norm(free)


def leak(after: Vector, asked: Vector) -> float:
    """The price of dimensions that stay nearly whole because next to nothing of them is asked."""
    return 0.15 * sum(
        1 for left, wants in zip(after, asked, strict=True) if left > 0.70 and wants < 0.10
    )


def lambda_g_v3(capacity: Vector, used: Vector, request: Vector) -> float:
    """The later hybrid in its benchmark form: -1 (does not fit) or 0 to 100."""
    dims = [
        (total, taken, wanted)
        for total, taken, wanted in zip(capacity, used, request, strict=True)
        if total > 0
    ]
    if not dims:
        return 0.0
    if any(max(0.0, total - taken) < wanted for total, taken, wanted in dims):
        return -1.0
    free = [max(0.0, total - taken) / total for total, taken, wanted in dims]
    asked = [wanted / total for total, taken, wanted in dims]
    shares = [(taken + wanted) / total for total, taken, wanted in dims]
    mean = sum(shares) / len(shares)
    variance = sum((share - mean) ** 2 for share in shares) / len(shares)
    level = max(0.0, 100.0 * (1.0 - 4.0 * variance))
    headroom = 100.0 * sum(free) / len(free)
    score = 0.6 * level + 0.2 * 100.0 * alignment(free, asked) + 0.1 * headroom
    return min(100.0, max(0.0, score - pressure(shares) - strand(shares)))


def pressure(shares: Vector) -> float:
    """What nearly full dimensions cost."""
    total = 0.0
    for share in shares:
        if share > 0.92:
            total += 500.0 * (share - 0.92)
        elif share > 0.85:
            total += 50.0 * (share - 0.85)
    return total


def strand(shares: Vector) -> float:
    """15 for each pair of which one is nearly full and the other nearly unused."""
    full = sum(1 for share in shares if share > 0.80)
    unused = sum(1 for share in shares if share < 0.20)
    return 15.0 * full * unused
