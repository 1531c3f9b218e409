"""Counters and histograms of what happens."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric

from scheduler.config import Config
from scheduler.kube.report.metrics import catalogue
from scheduler.kube.report.metrics.families import CountedFamily, Observed

# More policies than any cluster has; a cluster that makes and deletes policies for ever must not fill the memory.
_PLACEMENTS_MOST = 1000
_DECIDED = ("scheduled", "unschedulable")
GROUP_RESULTS = (PLACED, UNPLACED) = ("placed", "unschedulable")
FOREIGN_KINDS = (ALLOCATION, LOCK) = ("allocation", "lock")
PROMISE_RESULTS = (KEPT, MISSED) = ("kept", "missed")
# By its name, the most pods of a size of groups; the last size has no most.
SIZES = {"1-8": 8, "9-64": 64, "65-512": 512, "513+": 2**62}


class Metrics:
    """The counters and histograms of one scheduler, from its start.

    Attributes:
        attempts, attempt_seconds: by result and profile.
        sli_seconds: by attempts.
        pod_attempts, queue_wait, bind_seconds, preemption_attempts, preemption_victims: without labels.
        placements: by mode and policy.
        group_attempts: by result.
        group_start: by size.
        group_evictions: without labels.
        promises: by result.
        backfilled_pods: without labels.
        plugin_silences: without labels.
        foreign_writes: by kind.
    """

    def __init__(self, config: Config) -> None:
        """``config`` has the profiles."""
        profiles = config.scheduler_names
        decided = [(result, profile) for profile in profiles for result in _DECIDED]
        tried = [*decided, *(("error", profile) for profile in profiles)]
        self.attempts = CountedFamily(catalogue.ATTEMPTS, tried)
        self.attempt_seconds = Observed(catalogue.ATTEMPT_SECONDS, decided)
        self.sli_seconds = Observed(catalogue.SLI_SECONDS)
        self.pod_attempts = Observed(catalogue.POD_ATTEMPTS, [()])
        self.queue_wait = Observed(catalogue.QUEUE_WAIT_SECONDS, [()])
        self.bind_seconds = Observed(catalogue.BIND_SECONDS, [()])
        self.preemption_attempts = CountedFamily(catalogue.PREEMPTION_ATTEMPTS, [()])
        self.preemption_victims = Observed(catalogue.PREEMPTION_VICTIMS, [()])
        self.placements = CountedFamily(catalogue.PLACEMENTS, most=_PLACEMENTS_MOST)
        self.group_attempts = CountedFamily(
            catalogue.GROUP_ATTEMPTS, [(result,) for result in GROUP_RESULTS]
        )
        self.group_start = Observed(catalogue.GROUP_START_SECONDS, [(size,) for size in SIZES])
        self.group_evictions = CountedFamily(catalogue.GROUP_EVICTIONS, [()])
        self.promises = CountedFamily(catalogue.PROMISES, [(result,) for result in PROMISE_RESULTS])
        self.backfilled_pods = CountedFamily(catalogue.BACKFILLED_PODS, [()])
        self.plugin_silences = CountedFamily(catalogue.PLUGIN_SILENCES, [()])
        self.foreign_writes = CountedFamily(
            catalogue.FOREIGN_WRITES, [(kind,) for kind in FOREIGN_KINDS]
        )

    def collect(self) -> Iterator[Metric]:
        """Yield all of them, as they are now."""
        for one in (
            self.attempts,
            self.attempt_seconds,
            self.sli_seconds,
            self.pod_attempts,
            self.queue_wait,
            self.bind_seconds,
            self.preemption_attempts,
            self.preemption_victims,
            self.placements,
            self.group_attempts,
            self.group_start,
            self.group_evictions,
            self.promises,
            self.backfilled_pods,
            self.plugin_silences,
            self.foreign_writes,
        ):
            yield one.collect()
