"""The strategies of the Lambda-G author's benchmark, in plain Python: what was published, to the digit.

A pod goes to the node with the highest score that has room, ties to the first; a score of 0 is refused, so
a pod may stay pending though it fits. ``any-score`` strategies are without this rule.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.lambda_g_metrics import variance
from bench.lambda_g_workload import Vector, Workload
from tests.oracles import lambda_g

# Capacity, use before and request of a node with room, to a score.
Score = Callable[[Vector, Vector, Vector], float]


def least(capacity: Vector, used: Vector, _: Vector) -> float:
    """LeastAllocated as he has it: the mean free share before the pod, in percent."""
    return 100 - most(capacity, used, _)


def most(capacity: Vector, used: Vector, _: Vector) -> float:
    """MostAllocated as he has it: the mean used share before the pod, in percent."""
    shares = [taken / has for has, taken in zip(capacity, used, strict=True) if has > 0]
    return 100 * sum(shares) / len(shares)


def balanced(capacity: Vector, used: Vector, request: Vector) -> float:
    """BalancedAllocation as he has it: 100 · (1 − 4 · variance of the used shares with the pod)."""
    return max(0.0, 100 * (1 - 4 * variance(_after(capacity, used, request))))


def dominant(capacity: Vector, used: Vector, request: Vector) -> float:
    """DominantResource: the least free share with the pod, in percent."""
    return 100 * (1 - max(_after(capacity, used, request)))


def _after(capacity: Vector, used: Vector, request: Vector) -> list[float]:
    return [
        (taken + asked) / has
        for has, taken, asked in zip(capacity, used, request, strict=True)
        if has > 0
    ]


STRATEGIES: dict[str, tuple[Score, bool]] = {
    "upstream-least": (least, True),
    "upstream-most": (most, True),
    "upstream-balanced": (balanced, True),
    "upstream-dominant": (dominant, True),
    "upstream-v3": (lambda_g.lambda_g_v3, True),
    "upstream-v3-any-score": (lambda_g.lambda_g_v3, False),
}


def place(workload: Workload, score: Score, *, above_zero: bool) -> list[int]:
    """The node of every pod in order of arrival, -1 where it stays pending."""
    capacities = workload.capacities
    used: list[Vector] = [(0.0,) * len(capacity) for capacity in capacities]
    placement = []
    for pod in workload.pods:
        best, found = 0.0 if above_zero else -1.0, -1
        # Like nodes with like use score alike: many are empty at first.
        known: dict[tuple[str, Vector], float] = {}
        for node, capacity in enumerate(capacities):
            if not _fits(capacity, used[node], pod):
                continue
            key = workload.nodes[node], used[node]
            if key not in known:
                known[key] = score(capacity, used[node], pod)
            if known[key] > best:
                best, found = known[key], node
        placement.append(found)
        if found >= 0:
            used[found] = tuple(
                taken + asked for taken, asked in zip(used[found], pod, strict=True)
            )
    return placement


def _fits(capacity: Vector, used: Vector | list[float], pod: Vector) -> bool:
    return all(
        max(0.0, has - taken) >= asked
        for has, taken, asked in zip(capacity, used, pod, strict=True)
    )
