"""Prometheus metrics: kube-scheduler's own names where the meaning is the same, ``evenkeel_*`` else."""

from __future__ import annotations

from collections import Counter

import prometheus_client as prometheus
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from scheduler.engine.engine import Engine
from scheduler.state import checks

_FAST = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_SLOW = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """One registry of one scheduler."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.attempts = prometheus.Counter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods, by result.",
            ("result", "profile"),
            registry=self.registry,
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time to decide for one pod (a batch's time over its pods).",
            ("result", "profile"),
            buckets=_FAST,
            registry=self.registry,
        )
        self.pending = Gauge(
            "scheduler_pending_pods",
            "Pending pods, by part of the queue.",
            ("queue",),
            registry=self.registry,
        )
        self.bind_seconds = Histogram(
            "evenkeel_bind_duration_seconds",
            "Time from a decision to its binding, waits for a node's device plugin included.",
            buckets=_SLOW,
            registry=self.registry,
        )
        self.stream_age = Gauge(
            "evenkeel_stream_age_seconds",
            "Seconds since a stream gave a sign of life.",
            ("stream",),
            registry=self.registry,
        )
        self.relists = Gauge(
            "evenkeel_stream_lists",
            "Lists a stream made, the first included.",
            ("stream",),
            registry=self.registry,
        )
        self.leader = Gauge(
            "evenkeel_leader", "1 on the replica that decides.", registry=self.registry
        )
        self.lease_holder = Gauge(
            "evenkeel_lease_holder",
            "1 for who holds the lease: self, another replica, a stranger, nobody.",
            ("holder",),
            registry=self.registry,
        )
        self.streams_refused = Gauge(
            "evenkeel_stream_refused",
            "1 while the API server refuses a list or watch.",
            ("stream",),
            registry=self.registry,
        )
        self.missing_rights = Gauge(
            "evenkeel_missing_right",
            "1 for each right that is missing.",
            ("right",),
            registry=self.registry,
        )
        self.unfenced = Gauge(
            "evenkeel_unfenced_pods",
            "Pods that a new leader still has to fence before it decides.",
            registry=self.registry,
        )
        self.reports_dropped = Gauge(
            "evenkeel_reports_dropped", "Events and conditions given up.", registry=self.registry
        )
        self.reports_waiting = Gauge(
            "evenkeel_reports_waiting",
            "Events and conditions not written yet.",
            registry=self.registry,
        )
        self.nodes = Gauge("evenkeel_nodes", "Nodes known.", registry=self.registry)
        self.nodes_closed = Gauge(
            "evenkeel_nodes_closed",
            "Nodes of which something is not given away: malformed, plugin-silent, over-full-card, cordoned.",
            ("reason",),
            registry=self.registry,
        )

    def decided(self, results: Counter[tuple[str, str]], seconds: float) -> None:
        """So many pods were decided for in that time, by result and profile."""
        total = results.total()
        for labels, n in results.items():
            self.attempts.labels(*labels).inc(n)
            self.attempt_seconds.labels(*labels).observe(seconds / total)

    def read(self, engine: Engine) -> None:
        """What the engine holds at this moment."""
        for queue, n in engine.pending.counts().items():
            self.pending.labels(queue).set(n)
        self.nodes.set(len(engine.cluster.nodes.rows))
        for why, n in checks.closed_nodes(engine.cluster).items():
            self.nodes_closed.labels(why).set(n)

    def bind_error(self, profile: str) -> None:
        """A bind of a pod failed."""
        self.attempts.labels("error", profile).inc()

    def text(self) -> bytes:
        """The exposition format."""
        return generate_latest(self.registry)
