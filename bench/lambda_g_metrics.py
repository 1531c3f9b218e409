"""What the Lambda-G author's benchmark measures of a finished placement, and two figures of our own.

Facts of github.com/0x-auth/lambda-g-auditor, ``benchmark.py``; his, with its rounding: balance, stranded,
waste, scheduled share, pending. Ours: pods placed, and how much of all GPU compute was given away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.lambda_g_workload import GPU_COMPUTE, Vector, Workload

# Dollars a month per unit: cores, GB, GPU compute, GB on the card, IOPS, network.
PRICES = (34.50, 4.31, 150, 50, 0.10, 2.0)
_FULL, _UNUSED = 0.70, 0.30


class Figures(NamedTuple):
    """Of one scenario; of several, the mean of balance and of both percentages, and the sum of the rest."""

    balance: float
    stranded: float
    waste: float
    sched_pct: float
    pending: float
    placed: float
    gpu_compute_pct: float


# These are averaged over scenarios; the others are summed.
MEANS = ("balance", "sched_pct", "gpu_compute_pct")


def measure(workload: Workload, placement: Sequence[int]) -> Figures:
    """The figures of a placement: for each pod the index of its node, or -1 for pending.

    Balance is 0.7 · max(0, 100 − 400 · imbalance) + 30 · scheduled share, where imbalance is the mean over
    nodes with a pod of the population variance of their used shares. A node is stranded when one
    share is above 0.70 and another below 0.30; what it has free of the latter is wasted.
    """
    capacities = workload.capacities
    used = [[0.0] * len(PRICES) for _ in capacities]
    hosts = set()
    for pod, node in zip(workload.pods, placement, strict=True):
        if node >= 0:
            hosts.add(node)
            for d, asked in enumerate(pod):
                used[node][d] += asked
    unevenness, stranded, waste = [], 0, 0.0
    for node in sorted(hosts):
        capacity = capacities[node]
        shares = {d: used[node][d] / total for d, total in enumerate(capacity) if total > 0}
        unevenness.append(variance(list(shares.values())))
        if max(shares.values()) > _FULL:
            low = [d for d, share in shares.items() if share < _UNUSED]
            stranded += bool(low)
            waste += sum(max(0.0, capacity[d] - used[node][d]) * PRICES[d] for d in low)
    imbalance = sum(unevenness) / len(unevenness) if unevenness else 0.0
    n_pods = len(workload.pods)
    pending = sum(node < 0 for node in placement)
    scheduled = (n_pods - pending) / n_pods if n_pods else 1.0
    compute = sum(capacity[GPU_COMPUTE] for capacity in capacities)
    given = sum(held[GPU_COMPUTE] for held in used)
    return Figures(
        balance=round(0.7 * max(0.0, 100 - 400 * imbalance) + 0.3 * 100 * scheduled, 1),
        stranded=stranded,
        waste=round(waste, 0),
        sched_pct=round(100 * scheduled, 1),
        pending=pending,
        placed=n_pods - pending,
        gpu_compute_pct=round(100 * given / compute, 1) if compute else 0.0,
    )


def total(scenarios: Sequence[Figures]) -> Figures:
    """All scenarios as one: ``MEANS`` averaged, already rounded as they are, the others summed."""
    sums = {name: sum(getattr(one, name) for one in scenarios) for name in Figures._fields}
    return Figures(
        **{
            name: amount / len(scenarios) if name in MEANS else amount
            for name, amount in sums.items()
        }
    )


def variance(shares: Vector | list[float]) -> float:
    """Population variance."""
    mean = sum(shares) / len(shares)
    return sum((share - mean) ** 2 for share in shares) / len(shares)
