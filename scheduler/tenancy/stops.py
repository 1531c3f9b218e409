"""Who has to give quota back though nobody else needs it: its queue, or the workload itself, was stopped.

Source: Kueue (2026-08), ``pkg/controller/core/workload_controller.go``: ``Reconcile``, ``reconcileCheckBasedEviction``,
``reconcileOnLocalQueueActiveState`` and ``reconcileOnClusterQueueActiveState``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scheduler.api.queues.definitions import Stop
from scheduler.api.queues.workloads import CHECK_RETRY
from scheduler.tenancy.directory import Directory
from scheduler.tenancy.works import Where, Work


class Stopped(NamedTuple):
    """A workload that has to give its quota back, and why, as in its condition ``Evicted``."""

    work: Work
    reason: str
    message: str


class Stops:
    """The workloads with quota that may have to give it back."""

    def __init__(self, directory: Directory, works: Mapping[str, Work]) -> None:
        self._directory, self._works = directory, works
        self._noted: dict[str, None] = {}

    @property
    def has_any(self) -> bool:
        """Whether any workload has to give its quota back."""
        return bool(self._noted)

    def note(self, work: Work) -> None:
        """Note whether a workload that has quota has to give it back."""
        if self._find_reason(work) is not None:
            self._noted[work.key] = None
        else:
            self._noted.pop(work.key, None)

    def take(self) -> Iterator[Stopped]:
        """Yield those who have to give their quota back and were not asked to yet; they are going from here on."""
        noted, self._noted = self._noted, {}
        for key in noted:
            work = self._works.get(key)
            reason = None if work is None else self._find_reason(work)
            if work is not None and reason is not None:
                work.is_going = True
                yield Stopped(work, *reason)

    def _find_reason(self, work: Work) -> tuple[str, str] | None:
        if work.where != Where.HOLDS or work.is_going:
            return None
        defined = work.defined
        if not defined.is_active:
            return "Deactivated", "The workload is deactivated"
        names = [f'"{name}"' for name, found in defined.checks if found == CHECK_RETRY]
        if names:
            noun = "AdmissionCheck" if len(names) == 1 else "AdmissionChecks"
            said = f"Evicted due to {noun} in {CHECK_RETRY} state: {'; '.join(names)}"
            return "AdmissionCheck", said
        local = self._directory.find_local(defined)
        if local is not None and local.stop == Stop.DRAIN:
            return "LocalQueueStopped", "The LocalQueue is stopped"
        queue = self._directory.forest.queues.get(work.queue)
        if queue is not None and queue.stop == Stop.DRAIN:
            return "ClusterQueueStopped", "The ClusterQueue is stopped"
        return None
