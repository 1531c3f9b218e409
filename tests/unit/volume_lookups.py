"""What a binder looks up of storage, from storage itself instead of an engine."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.selectors import Labels
from scheduler.kube.bind.volume_waits import ClusterLookups
from scheduler.state.volumes.store import Storage


def lookups_of(
    storage: Storage, labels: Callable[[str], Labels | None], patience: float
) -> ClusterLookups:
    def moved(node: str) -> frozenset[str]:
        drivers = storage.uses.drivers.get(node)
        return drivers.moved if drivers is not None else frozenset()

    return ClusterLookups(
        storage.claims.get, storage.volumes.get, moved, labels, lambda _: patience
    )
