"""What pods of each namespace have and wait for.

Namespaces are made by administrators, but there may be many: the thousand with the most are told by name, the
others together. Pods are counted by their templates, which are few beside pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Metric

from scheduler.api.pods import gpus
from scheduler.kube.report.metrics import catalogue
from scheduler.kube.report.metrics.families import OTHER
from scheduler.queues.entries import Entry, Where
from scheduler.state.pods import PodRecord

_MOST = 1000
_PERCENT = 100


def waiting(entries: Iterable[Entry], now: float) -> Iterator[Metric]:
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
    yield catalogue.NAMESPACE_PENDING.of(_bounded(counts, sum))
    yield catalogue.NAMESPACE_OLDEST_WAIT.of(_bounded(waits, max))


def allocated(pods: Iterable[PodRecord]) -> dict[str, float]:
    """GPUs that pods with a node have requested, by namespace; a share counts as its part of a GPU's compute."""
    templates = {}
    counts: Counter[tuple[str, int]] = Counter()
    for pod in pods:
        if pod.node and pod.template.gpu is not None:
            templates[id(pod.template)] = pod.template.gpu
            counts[pod.namespace, id(pod.template)] += 1
    found: dict[str, float] = {}
    for (namespace, template), n in counts.items():
        ask = gpus.total(templates[template])
        found[namespace] = found.get(namespace, 0.0) + n * ask.cards * ask.cores / _PERCENT
    return found


def told(figures: dict[str, float]) -> Metric:
    """What ``allocated`` has found, as a metric."""
    return catalogue.NAMESPACE_GPUS.of(_bounded(figures, sum))


def _bounded(
    figures: dict[str, float] | Counter[str], together: Callable[[list[float]], float]
) -> Iterator[tuple[tuple[str], float]]:
    ordered = sorted(figures.items(), key=lambda item: (-item[1], item[0]))
    for namespace, figure in ordered[:_MOST]:
        yield (namespace,), figure
    if rest := [figure for _, figure in ordered[_MOST:]]:
        yield (OTHER,), together(rest)
