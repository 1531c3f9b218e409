"""kube-scheduler's resource scores (v1.37), one node at a time, in plain Python.

`//` stands where Go divides int64 values that are never negative; where they may be, `truncated`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MAX_NODE_SCORE = 100
DEFAULT_CPU_MILLI = 100
DEFAULT_MEM_BYTES = 200 * 1024 * 1024


@dataclass(frozen=True)
class Resource:
    """One configured resource: what the node has, what its pods ask, what this pod asks.

    `used_nonzero` and `request_nonzero` are cpu's and memory's figures with a container that asks
    nothing counted as 100 milli-CPU or 200 MiB. None for every other resource. `is_core` is what counts
    also for pods that ask none of it, beside these two: ephemeral-storage.
    """

    capacity: int
    used: int
    request: int
    weight: int = 1
    used_nonzero: int | None = None
    request_nonzero: int | None = None
    is_core: bool = False

    @property
    def is_scalar(self) -> bool:
        return self.used_nonzero is None and not self.is_core

    @property
    def is_skipped(self) -> bool:
        return self.capacity == 0 or (self.is_scalar and self.request == 0)

    @property
    def filled(self) -> int:
        """What would be asked of the node with the pod on it, for the fit strategies."""
        if self.used_nonzero is None or self.request_nonzero is None:
            return self.used + self.request
        return self.used_nonzero + self.request_nonzero


def truncated(numerator: int, denominator: int) -> int:
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def least_allocated(resources: Sequence[Resource]) -> int:
    total = weights = 0
    for resource in resources:
        if resource.is_skipped:
            continue
        score = 0
        if resource.filled <= resource.capacity:
            left = resource.capacity - resource.filled
            score = left * MAX_NODE_SCORE // resource.capacity
        total += score * resource.weight
        weights += resource.weight
    return total // weights if weights else 0


def most_allocated(resources: Sequence[Resource]) -> int:
    total = weights = 0
    for resource in resources:
        if resource.is_skipped:
            continue
        filled = min(resource.filled, resource.capacity)
        total += filled * MAX_NODE_SCORE // resource.capacity * resource.weight
        weights += resource.weight
    return total // weights if weights else 0


def requested_to_capacity_ratio(
    resources: Sequence[Resource], shape: Sequence[tuple[int, int]]
) -> int:
    """`shape` is (utilisation 0..100, score 0..10), the utilisation strictly rising."""
    total = weights = 0
    for resource in resources:
        if resource.is_skipped:
            continue
        percent = 100
        if resource.filled <= resource.capacity:
            percent = resource.filled * 100 // resource.capacity
        score = on_shape(percent, shape)
        if score > 0:
            total += score * resource.weight
            weights += resource.weight
    # round() in Go goes half away from zero; nothing here is negative.
    return math.floor(total / weights + 0.5) if weights else 0


def on_shape(percent: int, shape: Sequence[tuple[int, int]]) -> int:
    points = [(utilisation, 10 * score) for utilisation, score in shape]
    for number, (utilisation, score) in enumerate(points):
        if percent > utilisation:
            continue
        if number == 0:
            return score
        before, score_before = points[number - 1]
        rise = (score - score_before) * (percent - before)
        return score_before + truncated(rise, utilisation - before)
    return points[-1][1]


def balanced_allocation(resources: Sequence[Resource]) -> int | None:
    """50 to 100, 75 where the pod changes nothing; None where the plugin steps aside."""
    if all(resource.request == 0 for resource in resources):
        return None
    counted = [resource for resource in resources if not resource.is_skipped]
    before = balance([(resource.used, resource.capacity) for resource in counted])
    after = balance([(resource.used + resource.request, resource.capacity) for resource in counted])
    return 50 + truncated(50 + after - before, 2)


def balance(pairs: Sequence[tuple[int, int]]) -> int:
    fractions = [min(1.0, used / capacity) for used, capacity in pairs]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * MAX_NODE_SCORE)


def default_normalize(scores: Sequence[int], *, reverse: bool) -> list[int]:
    """Node affinity's scores as they are, taints' reversed: the most tainted node gets 0."""
    highest = max(scores, default=0)
    if highest == 0:
        return [MAX_NODE_SCORE if reverse else 0 for _ in scores]
    scaled = [MAX_NODE_SCORE * score // highest for score in scores]
    return [MAX_NODE_SCORE - score for score in scaled] if reverse else scaled
