"""What the configuration says of queues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FINAL_SHARE, INITIAL_SHARE = "LessThanOrEqualToFinalShare", "LessThanInitialShare"
STRATEGIES = (FINAL_SHARE, INITIAL_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """How what local queues have used counts.

    Attributes:
        half_life_seconds: after so many seconds half of it counts.
        sampling_seconds: what a workload uses in its first so many seconds counts at once.
        weights: by which the amount of a resource is multiplied, in cores, bytes and counts; None: each counts as the
            part that it is of all there is.
    """

    half_life_seconds: float = 168 * 3600.0
    sampling_seconds: float = 300.0
    weights: Mapping[str, float] | None = None


_WEEK = HistorySettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class KaiSettings:
    """How KAI's queues share what is over all quotas.

    Attributes:
        k: how strongly what a queue has used counts against its weight.
        half_life_seconds: after so many seconds half of what a queue has used counts; 0: it does not count.
        multiplier: a queue that takes from another one may be so many times as full as that one afterwards.
        by_common: for how long pods are protected from other queues says the queue below the one that both have in
            common; else the queue of the pod.
    """

    k: float = 1.0
    half_life_seconds: float = 0.0
    multiplier: float = 1.0
    by_common: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadySettings:
    """How long the pods of workloads may take until they are ready, and when a workload that took longer is tried again.

    Attributes:
        timeout_seconds: from the admission until all pods are ready.
        recovery_seconds: after pods of a workload have failed, until all are ready again; None: as long as they need.
        blocks: whether no workload gets quota while the pods of another one with quota are not ready.
        limit: after so many evictions because of its pods a workload is deactivated; None: never.
        first_seconds: how long it waits after the first eviction; twice as long after each further one.
        most_seconds: how long it waits at most.
    """

    timeout_seconds: float = 30 * 60.0
    recovery_seconds: float | None = 30 * 60.0
    blocks: bool = False
    limit: int | None = None
    first_seconds: float = 60.0
    most_seconds: float = 3600.0

    def find_backoff(self, n: int) -> float:
        """Find how many seconds a workload waits after its n-th eviction because of its pods.

        Source: Kueue (2026-08), ``pkg/workload/workload.go``: ``UpdateRequeueState``. Its jitter of 0.01 % is left out:
        times are written in whole seconds.
        """
        # Beyond 60 doublings any wait is longer than the most.
        return float(min(self.most_seconds, self.first_seconds * 2 ** min(max(n, 1) - 1, 60)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How the webhook is served, of which there is one, whatever it is for.

    Attributes:
        port: where it listens; 0 takes a free port.
        name: of its Service, of the Secret with its certificate, and of its configurations, see ``api/admission``.
        namespace: of the Service and of the Secret.
        certificates: the folder with ``tls.crt`` and ``tls.key``, if others make them; empty: Evenkeel does.
    """

    port: int = 9443
    name: str = "evenkeel-webhook"
    namespace: str = "evenkeel-system"
    certificates: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Which queues are managed, and how they share.

    Attributes:
        kueue: whether Kueue's objects are managed, in the place of Kueue.
        kueue_namespace: where Kueue itself may run: its lease there says whether it does.
        kai: how KAI's queues share; None if they are not managed.
        makes_workloads: whether somebody makes workloads of jobs and pods with a queue, so that these wait for them.
        ends_runs: whether workloads are stopped that have run for as long as they may, or whose pods are not ready in time.
        strategies: by which rules queues with larger shares give way; None if shares do not count.
        moves: whether workloads are moved for one whose queue is owed the quota, but scattered over nodes.
        promises: whether the first workload of a queue that waits in vain is promised quota for a later time.
        ignores_undeclared: whether resources that a queue has no quota of need none; else a workload that requests one waits.
        history: how what local queues have used counts, in queues where it does.
        by_eviction: whether a workload loses its place in the order if it is evicted because its pods were not ready.
        ready: how long pods may take until they are ready; None: as long as they need.
        webhook: how the webhook is served; None: it is not.
    """

    kueue: bool = False
    kueue_namespace: str = "kueue-system"
    kai: KaiSettings | None = None
    makes_workloads: bool = True
    ends_runs: bool = True
    strategies: tuple[str, ...] | None = None
    moves: bool = False
    promises: bool = False
    ignores_undeclared: bool = False
    history: HistorySettings = _WEEK
    by_eviction: bool = True
    ready: ReadySettings | None = None
    webhook: WebhookSettings | None = None
