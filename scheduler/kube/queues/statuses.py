"""The statuses of ClusterQueues, LocalQueues and Cohorts, in Kueue's words: written a second after a change, if they differ.

Source: Kueue (2026-08), ``pkg/controller/core``: ``updateCqStatusIfChanged``, ``updateStatusIfChanged`` and
``updateCohortStatusIfChanged``; ``pkg/cache/scheduler/clusterqueue.go``: ``inactiveReason``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from scheduler.api import kinds, kueue, times, wire
from scheduler.api.kind import Kind
from scheduler.api.queues.amounts import write_amount
from scheduler.api.queues.settings import QueueSettings
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import FlavorUse, QueueFigures, StatusesOfQueues
from scheduler.kube.queues.conditions import Conditions
from scheduler.kube.queues.shown import find_path
from scheduler.kube.queues.status_writes import StatusWrites
from scheduler.kube.report.reporter import Reporter

Json = dict[str, Any]
_SECONDS = 1.0
# Figures of 50,000 workloads take a fifth of a second; the pause after them is so many times as long.
_REST = 10.0
_ACTIVE, _READY = "Active", "Ready"
_CAN = {
    kinds.CLUSTER_QUEUES.name: "Can admit new workloads",
    kinds.LOCAL_QUEUES.name: "Can submit new workloads to localQueue",
}
_TERMINATING = "Terminating", "Can't admit new workloads; clusterQueue is terminating"
MISCONFIGURED, DOUBTFUL = "Misconfigured", "Doubtful"
_SHARING = "fairSharing"
_MOST_INT64 = 2**63 - 1
# What the status of a local queue calls its usage in the older version.
_OLDER_USAGE = "flavorUsage"
KINDS = kinds.CLUSTER_QUEUES.name, kinds.LOCAL_QUEUES.name, kinds.COHORTS.name


class _Known(NamedTuple):
    """A queue as it was seen last, what is wrong with it, and what in it means nothing."""

    meta: wire.Meta
    status: Mapping[str, Any]
    problem: str
    remark: str


class QueueStatuses:
    """Writes the statuses of queues.

    Attributes:
        figures: as they were read last.

    Args:
        engine: knows the figures.
        reporter: writes them.
        find_kind: gives a kind, by its name, in the version that the API server serves.
        clock: gives the time in seconds since 1970.
        settings: which queues are managed, and how they share.
    """

    def __init__(
        self,
        engine: Engine,
        reporter: Reporter,
        *,
        find_kind: Callable[[str], Kind],
        clock: Callable[[], float],
        settings: QueueSettings,
    ) -> None:
        self._engine = engine
        self._find_kind, self._clock, self._is_fair = (
            find_kind,
            clock,
            settings.strategies is not None,
        )
        self._sampling_seconds = settings.history.sampling_seconds
        self._known: dict[tuple[str, str], _Known] = {}
        self._writes = StatusWrites(reporter)
        self._has_changed = False
        self.figures: Sequence[QueueFigures] = ()

    def note_change(self) -> None:
        """Note that figures may have changed."""
        self._has_changed = True

    def see(self, kind: str, meta: wire.Meta, status: Any, problem: str, remark: str = "") -> None:
        """Take over how a queue is now; ``remark``: what is written in it and means nothing."""
        seen = status if isinstance(status, Mapping) else {}
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        self._known[kind, key] = _Known(meta, seen, problem, remark)

    def drop(self, kind: str, key: str) -> None:
        """Forget a queue that is gone."""
        known = self._known.pop((kind, key), None)
        if known is not None:
            self._writes.forget(known.meta.uid)

    def forget_written(self) -> None:
        """Forget what was written: another replica may have written since."""
        self._writes.forget_all()
        self._has_changed = True

    async def run(self, may_write: Callable[[], bool]) -> None:
        """Write what changed, until cancelled."""
        clock, took, began = asyncio.get_running_loop().time, 0.0, 0.0
        while True:
            await asyncio.sleep(max(_SECONDS, _REST * took))
            # What was used over time grows though nothing happens.
            is_late = clock() - began >= self._sampling_seconds
            if (self._has_changed or is_late) and may_write():
                self._has_changed, began = False, clock()
                self.write(await self._read_figures())
                took = clock() - began

    async def _read_figures(self) -> Sequence[QueueFigures]:
        """Read the figures; other tasks get their turn meanwhile."""
        steps = self._engine.ask(StatusesOfQueues())
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: Sequence[QueueFigures] = end.value
                return found
            await asyncio.sleep(0)

    def write(self, found: Sequence[QueueFigures]) -> None:
        """Write the statuses that differ from what the objects say."""
        self.figures = found
        figures = {(one.kind, one.key): one for one in found}
        for (kind, key), known in self._known.items():
            self._write_one(known, figures.get((kind, key), QueueFigures(kind, key)))

    def _write_one(self, known: _Known, figures: QueueFigures) -> None:
        kind = self._find_kind(figures.kind)
        wanted = self._make_status(kind, known, figures)
        path = find_path(kind, known.meta)
        self._writes.write(path, known.meta, known.status, wanted)

    def _make_status(self, kind: Kind, known: _Known, figures: QueueFigures) -> Json:
        if kind.name == kinds.COHORTS.name:
            return self._make_share(figures)
        usage = (
            _OLDER_USAGE if kind.list_versions()[-1] == kind and _is_local(kind) else "flavorsUsage"
        )
        made = {
            "conditions": self._make_conditions(known, figures),
            "pendingWorkloads": figures.pending,
            "reservingWorkloads": figures.reserving,
            "admittedWorkloads": figures.admitted,
            "flavorsReservation": _write_uses(figures, _get_reserved),
            usage: _write_uses(figures, _get_admitted),
        }
        return made | (self._make_usage(known, figures) if _is_local(kind) else self._make_share(figures))  # fmt: skip

    def _make_usage(self, known: _Known, figures: QueueFigures) -> Json:
        """Write what a local queue has used over time, where it counts and enough time has passed since it was written."""
        if not figures.consumed_at:
            return {}
        before = known.status.get(_SHARING) or {}
        at = _find_usage_time(before)
        if at is not None and figures.consumed_at - at < self._sampling_seconds:
            return {}
        consumed = {name: f"{amount:.9f}" for name, amount in figures.consumed}
        # As in Kueue, the share of a local queue is always zero.
        return {
            _SHARING: {
                "weightedShare": 0,
                "admissionFairSharingStatus": {
                    "consumedResources": consumed,
                    "lastUpdate": times.write_time(figures.consumed_at),
                },
            }
        }

    def _make_share(self, figures: QueueFigures) -> Json:
        if not self._is_fair:
            return {_SHARING: None}
        share = _MOST_INT64 if math.isinf(figures.share) else math.ceil(figures.share)
        return {_SHARING: {"weightedShare": share}}

    def _make_conditions(self, known: _Known, figures: QueueFigures) -> list[Json]:
        before = msgspec.convert(known.status.get("conditions") or [], list[kueue.TimedCondition])
        conditions = Conditions(before, known.meta.generation, self._clock())
        reason, message = figures.inactive
        if known.problem:
            reason, message = MISCONFIGURED, f"Can't admit new workloads: {known.problem}."
        if known.meta.deletion_timestamp and not _is_local(kinds.BY_NAME[figures.kind]):
            reason, message = _TERMINATING
        if reason:
            conditions.set(_ACTIVE, reason, message, is_true=False)
        else:
            said = "; ".join(filter(None, (_CAN[figures.kind], known.remark)))
            conditions.set(_ACTIVE, _READY, said, is_true=True)
        return conditions.write()


def _find_usage_time(sharing: Any) -> float | None:
    """Find when it was written what a local queue has used; None if it never was."""
    usage = sharing.get("admissionFairSharingStatus") if isinstance(sharing, Mapping) else None
    at = times.read_time(str(usage.get("lastUpdate"))) if isinstance(usage, Mapping) else None
    return None if at is None else float(at)


def _is_local(kind: Kind) -> bool:
    return kind.name == kinds.LOCAL_QUEUES.name


def _get_reserved(one: FlavorUse) -> tuple[int, int]:
    return one.reserved, one.borrowed


def _get_admitted(one: FlavorUse) -> tuple[int, int]:
    return one.admitted, one.admitted_borrowed


def _write_uses(figures: QueueFigures, get: Callable[[FlavorUse], tuple[int, int]]) -> list[Json]:
    """Write what is used, by flavor; a local queue does not say what it borrows."""
    found: dict[str, list[Json]] = {}
    for one in figures.uses:
        total, borrowed = get(one)
        written = {"name": one.resource, "total": write_amount(one.resource, total)}
        if figures.kind == kinds.CLUSTER_QUEUES.name:
            written["borrowed"] = write_amount(one.resource, borrowed)
        found.setdefault(one.flavor, []).append(written)
    return [{"name": flavor, "resources": resources} for flavor, resources in found.items()]
