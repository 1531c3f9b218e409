"""A pod in the queue, and the part of the queue that it is in."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum

import msgspec

from scheduler.state.pods import PodRecord


class Where(StrEnum):
    """Which part of the queue a pod is in; kube-scheduler's names, used as metric labels."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


class Came(StrEnum):
    """Why a pod came to a part of the queue; kube-scheduler's names of events where it has them."""

    POD_ADDED = "UnschedulablePodAdd"
    POD_CHANGED = "UnschedulablePodUpdate"
    FAILED = "ScheduleAttemptFailure"
    BACKOFF_OVER = "BackoffComplete"
    WAITED_LONG = "UnschedulableTimeout"
    CLUSTER_CHANGED = "ClusterChange"
    STEERING_CHANGED = "PolicyChange"


class Entry(msgspec.Struct):
    """One waiting pod.

    Attributes:
        ticket: a new number with every move; whatever has an older one in hand is stale.
        attempts: how often it was tried.
        failed_at: when it was last tried in vain, in seconds.
        since: when it was active for the first time, in seconds; None before.
        active_at: when it became active last, in seconds.
        waited: for how long it was then active before it was tried, in seconds.
        kind: of a pod that is parked, what decides whether it fits; else None.
    """

    pod: PodRecord
    where: Where
    ticket: int
    attempts: int = 0
    failed_at: float = 0.0
    since: float | None = None
    active_at: float = 0.0
    waited: float = 0.0
    kind: Hashable = None
