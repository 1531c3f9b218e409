"""Reads the figures of the metrics from the parts of a replica, at the moment of a scrape."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import Metric

from scheduler.engine.engine import Engine
from scheduler.engine.questions.nodes import NodeCounts
from scheduler.engine.questions.queues import KnownQueues
from scheduler.engine.questions.waiting import QueueCounts, WaitsByNamespace
from scheduler.kube.lead.holding import Holder
from scheduler.kube.report.metrics import catalogue, namespaces
from scheduler.kube.report.metrics.queues import QueueSources, collect_locals, collect_standings
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.report.metrics.tally import Tally
from scheduler.kube.report.probes import Signs
from scheduler.kube.report.reporter import Reporter


class Sources(NamedTuple):
    """The parts from which figures are read.

    Attributes:
        signs: the parts that the probes look at, too.
        engine: knows nodes and waiting pods.
        reporter: knows how many reports wait.
        tally: knows why pods wait.
        is_deciding: whether this replica leads.
        version: the version of Evenkeel.
        queues: where the figures of Kueue's queues are read; None if these are not managed here.
        reviews: what the webhook has answered; None if there is none.
        find_kai_holder: finds which other scheduler decides in KAI's queues; empty if none does.
    """

    signs: Signs
    engine: Engine
    reporter: Reporter
    tally: Tally
    is_deciding: Callable[[], bool]
    version: str
    queues: QueueSources | None = None
    reviews: ReviewCounts | None = None
    find_kai_holder: Callable[[], str] = str


def collect(sources: Sources, now: float) -> Iterator[Metric]:
    """Yield all metrics; ``now`` is the loop's time."""
    yield from _collect_replica(sources)
    yield from _collect_streams(sources, now)
    yield from _collect_queue(sources)
    yield from _collect_nodes(sources.engine)
    if sources.queues is not None:
        yield from _collect_queues(sources, sources.queues)
    if sources.reviews is not None:
        yield from sources.reviews.collect()
    if sources.is_deciding():
        yield from namespaces.collect_waiting(sources.engine.ask(WaitsByNamespace()), now)


def _collect_queues(sources: Sources, of: QueueSources) -> Iterator[Metric]:
    """Yield what this replica has done with the queues of tenants, and, if it decides, how they are."""
    if sources.is_deciding():
        standings = sources.engine.ask(KnownQueues())
        of.counts.begin(one.name for one in standings if not one.is_cohort)
        yield from collect_standings(standings)
        yield from collect_locals(of.list_figures())
    yield from of.counts.collect()


def _collect_replica(sources: Sources) -> Iterator[Metric]:
    signs, reporter = sources.signs, sources.reporter
    yield catalogue.LEADER.make_single(sources.is_deciding())
    holder = signs.lease.find_holder()
    yield catalogue.LEASE_HOLDER.make_metric(((one,), one == holder) for one in Holder)
    yield catalogue.LEASE_ERRORS.make_single(signs.lease.n_errors)
    yield catalogue.MISSING_RIGHT.make_metric(((right,), 1) for right in signs.rights.missing)
    yield catalogue.UNFENCED.make_single(signs.fence.n_left)
    yield catalogue.REPORTS_WAITING.make_single(reporter.n_waiting)
    yield catalogue.REPORTS_DROPPED.make_single(reporter.n_dropped)
    queues = sources.queues
    yield catalogue.QUEUES_HELD.make_single(queues is not None and bool(queues.find_holder()))
    yield catalogue.KAI_QUEUES_HELD.make_single(bool(sources.find_kai_holder()))
    build = (sources.version, platform.python_version(), platform.machine())
    yield catalogue.BUILD.make_metric([(build, 1)])


def _collect_streams(sources: Sources, now: float) -> Iterator[Metric]:
    streams = sources.signs.streams
    yield catalogue.STREAM_AGE.make_metric(((one.name,), one.get_age(now)) for one in streams)
    yield catalogue.STREAM_LISTS.make_metric(((one.name,), one.n_lists) for one in streams)
    yield catalogue.STREAM_REFUSED.make_metric(
        ((one.name,), bool(one.trouble and one.trouble.is_refused)) for one in streams
    )


def _collect_queue(sources: Sources) -> Iterator[Metric]:
    counts = sources.engine.ask(QueueCounts())
    yield catalogue.PENDING.make_metric(((where,), n) for where, n in counts.pods.items())
    yield catalogue.GROUPS_PENDING.make_metric(((where,), n) for where, n in counts.groups.items())
    yield catalogue.GROUPS_BROKEN.make_metric([((), counts.broken)])
    yield catalogue.INCOMING.make_metric(counts.came.items())
    yield catalogue.UNSCHEDULABLE.make_metric(sources.tally.count_unschedulable().items())


def _collect_nodes(engine: Engine) -> Iterator[Metric]:
    counts = engine.ask(NodeCounts())
    yield catalogue.NODES.make_single(counts.n_nodes)
    yield catalogue.NODES_CLOSED.make_metric(((why,), n) for why, n in counts.closed.items())
