"""What pods of each namespace have and wait for.

Namespaces are made by administrators, but there may be many: the thousand with the most are told by name, the
others together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from prometheus_client import Metric

from scheduler.kube.report.metrics import catalogue
from scheduler.kube.report.metrics.families import OTHER
from scheduler.measure import figures, shares
from scheduler.state.cluster import Cluster
from scheduler.waiting.entries import Entry, Where

_MOST = 1000


def collect_waiting(entries: Iterable[Entry], now: float) -> Iterator[Metric]:
    """How many pods wait, and since when the first of them could be tried; without those that are gated."""
    counts: Counter[str] = Counter()
    since: dict[str, float] = {}
    for entry in entries:
        if entry.where != Where.GATED and entry.since is not None:
            namespace = entry.pod.namespace
            counts[namespace] += 1
            since[namespace] = min(entry.since, since.get(namespace, entry.since))
    waits = {namespace: now - first for namespace, first in since.items()}
    yield catalogue.OLDEST_WAIT.one(max(waits.values(), default=0.0))
    yield catalogue.NAMESPACE_PENDING.make_metric(_bounded(counts, sum))
    yield catalogue.NAMESPACE_OLDEST_WAIT.make_metric(_bounded(waits, max))


def sum_allocated(cluster: Cluster) -> dict[str, float]:
    """GPUs by namespace, as ``evenkeel audit --by namespace`` counts them; namespaces without GPUs are left out."""
    found = shares.of_pods(cluster, figures.node_names(cluster))
    has = np.flatnonzero(found.amounts[figures.GPU] > 0)
    sums: dict[str, float] = {}
    for i, gpus in zip(has.tolist(), found.amounts[figures.GPU, has].tolist(), strict=True):
        namespace = found.pods[i].namespace
        sums[namespace] = sums.get(namespace, 0.0) + gpus
    return sums


def make_allocated(sums: dict[str, float]) -> Metric:
    """What ``sum_allocated`` has found, as a metric."""
    return catalogue.NAMESPACE_GPUS.make_metric(_bounded(sums, sum))


def _bounded(
    amounts: dict[str, float] | Counter[str], together: Callable[[list[float]], float]
) -> Iterator[tuple[tuple[str], float]]:
    ordered = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    for namespace, amount in ordered[:_MOST]:
        yield (namespace,), amount
    if rest := [amount for _, amount in ordered[_MOST:]]:
        yield (OTHER,), together(rest)
