"""What pods of each namespace hold, and how long they wait.

Administrators make namespaces, but there may be many: the thousand with the most have samples of their own, the others
one together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric

from scheduler.engine.questions.waiting import NamespaceWait
from scheduler.kube.report.metrics import catalogue
from scheduler.kube.report.metrics.families import OTHER

_MOST = 1000


def collect_waiting(waiting: Mapping[str, NamespaceWait], now: float) -> Iterator[Metric]:
    """Yield how many pods wait, and since when the first of them could be tried."""
    waits = {namespace: now - one.since for namespace, one in waiting.items()}
    counts = {namespace: one.n_pods for namespace, one in waiting.items()}
    yield catalogue.OLDEST_WAIT.make_single(max(waits.values(), default=0.0))
    yield catalogue.NAMESPACE_PENDING.make_metric(_bound_names(counts, sum))
    yield catalogue.NAMESPACE_OLDEST_WAIT.make_metric(_bound_names(waits, max))


def make_allocated(gpus: Mapping[str, float]) -> Metric:
    """Make the metric of the GPUs of each namespace."""
    return catalogue.NAMESPACE_GPUS.make_metric(_bound_names(gpus, sum))


def _bound_names(
    amounts: Mapping[str, float], together: Callable[[list[float]], float]
) -> Iterator[tuple[tuple[str], float]]:
    ordered = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    for namespace, amount in ordered[:_MOST]:
        yield (namespace,), amount
    if rest := [amount for _, amount in ordered[_MOST:]]:
        yield (OTHER,), together(rest)
