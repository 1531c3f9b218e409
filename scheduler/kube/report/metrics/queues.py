"""Figures of Kueue's queues: what happens to workloads is counted, how queues are is read at a scrape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client import Metric

from scheduler.api import kinds
from scheduler.api.queues.amounts import convert_amount
from scheduler.api.queues.words import PREEMPTED
from scheduler.engine.questions.queues import FlavorUse, QueueFigures, QueueStanding, QuotaUse
from scheduler.kube.report.metrics import queue_catalogue as catalogue
from scheduler.kube.report.metrics.families import CountedFamily, Family, Observed, Values

_ACTIVE, _INADMISSIBLE, _PENDING = "active", "inadmissible", "pending"


class QueueCounts:
    """Counters and histograms of what happens to workloads, from the start of this replica."""

    def __init__(self) -> None:
        self._reserved = CountedFamily(catalogue.RESERVED)
        self._reserved_wait = Observed(catalogue.RESERVED_WAIT)
        self._admitted = CountedFamily(catalogue.ADMITTED)
        self._admitted_wait = Observed(catalogue.ADMITTED_WAIT)
        self._checks_wait = Observed(catalogue.CHECKS_WAIT)
        self._evicted = CountedFamily(catalogue.EVICTED)
        self._preempted = CountedFamily(catalogue.PREEMPTED)
        self._replaced = CountedFamily(catalogue.REPLACED)

    def begin(self, queues: Iterable[str]) -> None:
        """Let the counters of ClusterQueues be there with 0, so that the first event shows as a rise."""
        for queue in queues:
            self._reserved.add(queue, n=0)
            self._admitted.add(queue, n=0)
            self._evicted.add(queue, PREEMPTED, "", n=0)

    def count_reserved(self, queue: str, waited: float) -> None:
        """Count that a workload got quota, after so many seconds."""
        self._reserved.add(queue)
        self._reserved_wait.add(waited, queue)

    def count_admitted(self, queue: str, waited: float) -> None:
        """Count that a workload was admitted, after so many seconds."""
        self._admitted.add(queue)
        self._admitted_wait.add(waited, queue)

    def count_checked(self, queue: str, waited: float) -> None:
        """Count that a workload with quota has passed its checks, after so many seconds."""
        self._checks_wait.add(waited, queue)

    def count_evicted(self, queue: str, reason: str, cause: str = "") -> None:
        """Count that a workload was evicted."""
        self._evicted.add(queue, reason, cause)

    def count_preempted(self, by: str, reason: str) -> None:
        """Count that a workload was preempted; ``by``: the queue that takes its quota."""
        self._preempted.add(by, reason)

    def count_replaced(self, queue: str) -> None:
        """Count that a slice has taken over the quota of another one."""
        self._replaced.add(queue)

    def collect(self) -> Iterator[Metric]:
        """Yield all of them, as they are now."""
        for one in (
            self._reserved,
            self._reserved_wait,
            self._admitted,
            self._admitted_wait,
            self._checks_wait,
            self._evicted,
            self._preempted,
            self._replaced,
        ):
            yield one.collect()


class QueueSources(NamedTuple):
    """Where the figures of queues are read.

    Attributes:
        counts: what has happened to workloads.
        find_holder: finds which other controller manages the queues; empty if none does.
        list_figures: lists the figures of all statuses as they were read last, those of LocalQueues among them.
    """

    counts: QueueCounts
    find_holder: Callable[[], str]
    list_figures: Callable[[], Sequence[QueueFigures]] = tuple


def collect_standings(standings: Sequence[QueueStanding]) -> Iterator[Metric]:
    """Yield how all ClusterQueues and Cohorts are now."""
    queues = [one for one in standings if not one.is_cohort]
    cohorts = [one for one in standings if one.is_cohort]
    yield _make_pair(
        catalogue.PENDING,
        ((one, _ACTIVE, one.waiting - one.parked) for one in queues),
        ((one, _INADMISSIBLE, one.parked) for one in queues),
    )
    yield catalogue.PLACELESS.make_metric(((one.name,), one.placeless) for one in queues)
    yield catalogue.RESERVING.make_metric(((one.name,), one.holding) for one in queues)
    yield catalogue.ADMITTED_NOW.make_metric(((one.name,), one.admitted) for one in queues)
    yield _make_pair(
        catalogue.STATUS,
        ((one, _ACTIVE, not one.inactive) for one in queues),
        ((one, _PENDING, bool(one.inactive)) for one in queues),
    )
    yield _make_amounts(catalogue.NOMINAL, queues, lambda use: use.nominal)
    yield _make_amounts(catalogue.BORROWING_LIMIT, queues, lambda use: use.borrowing)
    yield _make_amounts(catalogue.LENDING_LIMIT, queues, lambda use: use.lending)
    yield _make_amounts(catalogue.RESERVED_AMOUNT, queues, lambda use: use.used)
    yield _make_amounts(catalogue.USED_AMOUNT, queues, lambda use: use.admitted)
    yield _make_amounts(catalogue.BORROWED_AMOUNT, queues, lambda use: use.borrowed)
    shares = (((one.name, one.parent), _write_share(one.share)) for one in queues)
    yield catalogue.SHARE.make_metric(shares)
    of_cohorts = (((one.name,), _write_share(one.share)) for one in cohorts)
    yield catalogue.COHORT_SHARE.make_metric(of_cohorts)


def _make_pair(family: Family, *parts: Iterable[tuple[QueueStanding, str, int]]) -> Metric:
    return family.make_metric(
        ((one.name, status), figure) for part in parts for one, status, figure in part
    )


def _make_amounts(
    family: Family, queues: Iterable[QueueStanding], get: Callable[[QuotaUse], int | None]
) -> Metric:
    def make_samples() -> Iterator[tuple[Values, float]]:
        for one in queues:
            for use in one.uses:
                values, amount = (one.parent, one.name, use.flavor, use.resource), get(use)
                yield values, math.inf if amount is None else convert_amount(use.resource, amount)

    return family.make_metric(make_samples())


def collect_locals(figures: Sequence[QueueFigures]) -> Iterator[Metric]:
    """Yield how all LocalQueues are now."""
    found = [(_read_name(one.key), one) for one in figures if one.kind == kinds.LOCAL_QUEUES.name]
    yield catalogue.LOCAL_PENDING.make_metric(
        ((*values, status), figure)
        for values, one in found
        for status, figure in (
            (_ACTIVE, one.pending - one.parked),
            (_INADMISSIBLE, one.parked),
        )
    )
    yield catalogue.LOCAL_RESERVING.make_metric((values, one.reserving) for values, one in found)
    yield catalogue.LOCAL_ADMITTED.make_metric((values, one.admitted) for values, one in found)
    yield catalogue.LOCAL_STATUS.make_metric(
        ((*values, active), (active == "True") != bool(one.inactive[0]))
        for values, one in found
        for active in ("True", "False")
    )
    yield _make_uses(catalogue.LOCAL_RESERVED_AMOUNT, found, lambda use: use.reserved)
    yield _make_uses(catalogue.LOCAL_USED_AMOUNT, found, lambda use: use.admitted)


def _read_name(key: str) -> Values:
    namespace, _, name = key.partition("/")
    return name, namespace


def _make_uses(
    family: Family, found: Iterable[tuple[Values, QueueFigures]], get: Callable[[FlavorUse], int]
) -> Metric:
    return family.make_metric(
        ((*values, use.flavor, use.resource), convert_amount(use.resource, get(use)))
        for values, one in found
        for use in one.uses
    )


def _write_share(share: float) -> float:
    return math.nan if math.isinf(share) else share
