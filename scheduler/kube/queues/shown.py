"""What the API server has shown of each workload last, without its pods: the ground on which its status is written."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler.api import kueue, names, times, wire
from scheduler.api.kind import Kind
from scheduler.api.queues.words import EVICTED, FINISHED, REQUEUED
from scheduler.kube.queues import conditions
from scheduler.kube.queues.conditions import Conditions


class Shown(NamedTuple):
    """A workload as it was seen last.

    Attributes:
        meta: its name, its uid, its version and its generation.
        created: when it was created.
        job_uid: the uid of the job that it stands for; empty if it names none.
        priority: its priority.
        is_active: whether it may be tried.
        limit_seconds: how long it may run in all; None for any time.
        status: its status.
    """

    meta: wire.Meta
    created: float
    job_uid: str
    priority: int
    is_active: bool
    limit_seconds: int | None
    status: kueue.WorkloadStatus

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.meta.namespace}/{self.meta.name}"

    @property
    def ground(self) -> tuple[Any, ...]:
        """All of it on which a decision about its quota stands: a decision holds as long as this stays the same."""
        status = self.status
        return (
            self.meta.uid,
            self.meta.generation,
            status.admission,
            status.requeue_state,
            status.reclaimable_pods,
            [(one.name, one.state) for one in status.admission_checks or ()],
            [self.is_true(one) for one in (FINISHED, EVICTED)],
        )

    def is_true(self, kind: str) -> bool:
        """Whether a condition is true."""
        return conditions.is_true(self.status, kind)

    def make_conditions(self, now: float) -> Conditions:
        """Make its conditions, to be changed."""
        return Conditions(self.status.conditions or (), self.meta.generation, now)

    def find_wait(self, now: float) -> float:
        """Find for how many seconds it has waited in its queue."""
        return max(0.0, now - self.find_transition(REQUEUED, self.created))

    def find_transition(self, kind: str, default: float) -> float:
        """Find when a condition became as it is."""
        for one in self.status.conditions or ():
            if one.type == kind:
                return float(times.read_time(one.last_transition_time) or default)
        return default


def read_shown(found: kueue.Workload) -> Shown:
    """Read what is kept of a workload."""
    meta = found.metadata
    return Shown(
        meta=wire.Meta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            generation=meta.generation,
        ),
        created=float(times.read_time(meta.creation_timestamp) or 0),
        job_uid=(meta.labels or {}).get(names.KUEUE_JOB_UID, ""),
        priority=found.spec.priority or 0,
        is_active=found.spec.active is not False,
        limit_seconds=found.spec.maximum_execution_time_seconds,
        status=found.status,
    )


class ShownWorkloads:
    """The workloads as they were shown last: by the watch, as the engine knows them, or by an answer to a write."""

    def __init__(self) -> None:
        self._found: dict[str, Shown] = {}
        self._watched: dict[str, Shown] = {}

    def get(self, key: str) -> Shown | None:
        """Return a workload in its newest version; None if it is not known."""
        return self._found.get(key)

    def get_watched(self, key: str) -> Shown | None:
        """Return a workload as the engine knows it; None if it does not."""
        return self._watched.get(key)

    def watch(self, found: kueue.Workload) -> Shown:
        """Take over what the watch says of a workload; return its newest version."""
        newest, watched = self.see(found), read_shown(found)
        self._watched[watched.key] = newest if newest == watched else watched
        return newest

    def see(self, found: kueue.Workload) -> Shown:
        """Take over how a workload is now; an older version than the known one changes nothing."""
        shown = read_shown(found)
        before = self._found.get(shown.key)
        if before is not None and _is_older(shown.meta, before.meta):
            return before
        self._found[shown.key] = shown
        return shown

    def list_all(self) -> list[Shown]:
        """List all workloads in their newest versions."""
        return list(self._found.values())

    def drop(self, key: str) -> None:
        """Forget a workload that is gone."""
        self._found.pop(key, None)
        self._watched.pop(key, None)


def _is_older(one: wire.Meta, other: wire.Meta) -> bool:
    """Whether one version of an object is older than another. Versions are compared as numbers (KEP-5504)."""
    versions = one.resource_version, other.resource_version
    return (
        one.uid == other.uid
        and all(version.isdecimal() for version in versions)
        and int(versions[0]) < int(versions[1])
    )


def find_path(kind: Kind, meta: wire.Meta) -> str:
    """Find the path of an object of queues."""
    return kind.find_path(meta.name, meta.namespace)
