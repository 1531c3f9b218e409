"""Whether the pods of all workloads with quota are ready, where no other workload gets quota before they are.

Source: Kueue (2026-08), ``pkg/scheduler/scheduler.go``: ``waitForPodsReadyIfNeeded``, and
``pkg/cache/scheduler/cache.go``: ``PodsReadyForAllAdmittedWorkloads``.
"""

from __future__ import annotations

WAITS_FOR_PODS = "WaitingForPodsReady"
SAID = "waiting for all admitted workloads to be in PodsReady condition"


class Readiness:
    """The workloads with quota whose pods are not ready, and the queues in which others wait for them."""

    def __init__(self, *, blocks: bool) -> None:
        """``blocks``: whether it matters."""
        self._blocks = blocks
        self._unready: set[str] = set()
        self._waiting: dict[str, None] = {}

    @property
    def is_blocked(self) -> bool:
        """Whether no workload may get quota now."""
        return bool(self._unready)

    def note_waiting(self, queue: str) -> None:
        """Note that a workload of a queue waits for the pods of others."""
        self._waiting[queue] = None

    def note(self, key: str, *, is_ready: bool) -> list[str]:
        """Note whether the pods of a workload are ready, or it has no quota; return the queues that have waited for it."""
        if not self._blocks:
            return []
        if not is_ready:
            self._unready.add(key)
            return []
        self._unready.discard(key)
        if self._unready:
            return []
        waiting, self._waiting = list(self._waiting), {}
        return waiting
