"""Finds workloads by their local queue, and by whose they are."""

from __future__ import annotations

from collections.abc import Collection

from scheduler.api.queues.workloads import WORKLOAD, OwnerKey
from scheduler.tenancy.works import Work


class WorkIndex:
    """The keys of workloads by other keys.

    Attributes:
        n_changes: how often a workload has come, changed or gone.
    """

    def __init__(self) -> None:
        self.n_changes = 0
        self._of_local: dict[str, set[str]] = {}
        self._owned: dict[OwnerKey, str] = {}

    def add(self, work: Work) -> None:
        """Add a workload."""
        self.n_changes += 1
        self._of_local.setdefault(work.local, set()).add(work.key)
        if work.defined.owner is not None:
            self._owned[work.defined.owner] = work.key

    def drop(self, work: Work) -> None:
        """Remove a workload."""
        self.n_changes += 1
        self._of_local.get(work.local, set()).discard(work.key)
        if work.defined.owner is not None:
            self._owned.pop(work.defined.owner, None)

    def list_of_local(self, local: str) -> Collection[str]:
        """List the workloads of a local queue."""
        return self._of_local.get(local, ())

    def find_owned(self, owner: OwnerKey) -> str:
        """Find the workload that an owner, or the name of a workload, stands for; empty for none that is known."""
        kind, namespace, name = owner
        return f"{namespace}/{name}" if kind == WORKLOAD else self._owned.get(owner, "")
