"""Finds workloads by their local queue, by whose they are, and by what they replace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

from scheduler.api.queues.workloads import WORKLOAD, OwnerKey
from scheduler.tenancy.works import Where, Work

K = TypeVar("K")


class WorkIndex:
    """The keys of workloads by other keys.

    Attributes:
        n_changes: how often a workload has come, changed or gone.
    """

    def __init__(self) -> None:
        self.n_changes = 0
        self._of_local: dict[str, set[str]] = {}
        # A job that changes its size while it runs has several.
        self._owned: dict[OwnerKey, dict[str, Work]] = {}
        self._replacing: dict[str, dict[str, Work]] = {}

    def add(self, work: Work) -> None:
        """Add a workload."""
        self.n_changes += 1
        self._of_local.setdefault(work.local, set()).add(work.key)
        for owner in _list_owners(work):
            self._owned.setdefault(owner, {})[work.key] = work
        if work.defined.replaces:
            self._replacing.setdefault(work.defined.replaces, {})[work.key] = work

    def drop(self, work: Work) -> None:
        """Remove a workload."""
        self.n_changes += 1
        self._of_local.get(work.local, set()).discard(work.key)
        for owner in _list_owners(work):
            _drop(self._owned, owner, work.key)
        if work.defined.replaces:
            _drop(self._replacing, work.defined.replaces, work.key)

    def list_of_local(self, local: str) -> Collection[str]:
        """List the workloads of a local queue."""
        return self._of_local.get(local, ())

    def list_of_locals(self, locals_: Iterable[str]) -> list[str]:
        """List the workloads of several local queues."""
        return [key for local in locals_ for key in self.list_of_local(local)]

    def find_owned(self, owner: OwnerKey) -> str:
        """Find the workload that an owner, or the name of a workload, stands for; empty for none that is known.

        Of several the one with quota counts, then the newest one that is not finished.
        """
        kind, namespace, name = owner
        found = self._owned.get(owner)
        if found is not None:
            return max(found.values(), key=_rank).key
        return f"{namespace}/{name}" if kind == WORKLOAD else ""

    def find_current(self, work: Work) -> str:
        """Find the workload to which the pods of a job belong: of a chain of slices, the one with quota or the newest."""
        namespace, _, name = work.defined.chain.partition("/")
        return self.find_owned((WORKLOAD, namespace, name)) if name else work.key

    def list_replacing(self, key: str) -> Iterator[Work]:
        """List the workloads that say that they replace another one."""
        yield from self._replacing.get(key, {}).values()


def _list_owners(work: Work) -> Iterator[OwnerKey]:
    """List by what a workload is found: its owner, and the first slice of its chain."""
    defined = work.defined
    if defined.chain and defined.is_finished:
        # They become many, and have no pods.
        return
    if defined.owner is not None:
        yield defined.owner
    if defined.chain:
        namespace, _, name = defined.chain.partition("/")
        yield WORKLOAD, namespace, name


def _drop(index: dict[K, dict[str, Work]], key: K, work: str) -> None:
    found = index.get(key, {})
    found.pop(work, None)
    if not found:
        index.pop(key, None)


def _rank(work: Work) -> tuple[bool, bool, float, str]:
    return work.where == Where.HOLDS, not work.defined.is_finished, work.since, work.uid
