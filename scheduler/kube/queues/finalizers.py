"""Keeps objects of queues from going while others use them, by Kueue's finalizer.

A ClusterQueue stays while any of its workloads has quota, a ResourceFlavor and an AdmissionCheck while a ClusterQueue
names them, a Topology while a ResourceFlavor does. A Workload without an owner that is being deleted is let go at once.

Source: Kueue (2026-08), ``pkg/controller/core``: ``Reconcile`` of each of these kinds, ``isOrphanedWorkload``, and
``pkg/controller/tas/topology_controller.go``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from scheduler.api import kinds, names, wire
from scheduler.api.kind import Kind
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import IsObjectInUse
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.queues.shown import find_path

_SECONDS, _MOST_SECONDS = 1.0, 60.0
_log = structlog.get_logger("evenkeel.queues")


class _Open(NamedTuple):
    """An object on which the finalizer is to be written, or is to be removed once the object is not used."""

    meta: wire.GuardedMeta
    adds: bool


class Finalizers:
    """Writes and removes the finalizer.

    Args:
        api: the API server.
        engine: knows who uses an object.
        find_kind: gives a kind, by its name, in the version that the API server serves.
        may_write: whether anything may be written.
    """

    def __init__(
        self,
        api: ApiClient,
        engine: Engine,
        *,
        find_kind: Callable[[str], Kind],
        may_write: Callable[[], bool],
    ) -> None:
        self._api, self._engine = api, engine
        self._find_kind, self._may_write = find_kind, may_write
        self._open: dict[tuple[str, str], _Open] = {}
        # How often a write was refused, one after another, and when the next one is tried, by the loop's time.
        self._refused: dict[tuple[str, str], tuple[int, float]] = {}

    def see(self, kind: str, meta: wire.GuardedMeta) -> None:
        """Take over how an object is now."""
        where = kind, f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        self.drop(*where)
        has_one = names.KUEUE_IN_USE in (meta.finalizers or ())
        is_work, goes = kind == kinds.WORKLOADS.name, meta.deletion_timestamp is not None
        # The finalizer of a Workload is written by who makes it, and removed by them as long as there is an owner.
        if goes and has_one and not (is_work and meta.owner_references):
            self._open[where] = _Open(meta, adds=False)
        elif not goes and not has_one and not is_work:
            self._open[where] = _Open(meta, adds=True)

    def drop(self, kind: str, key: str) -> None:
        """Forget an object that is gone."""
        self._open.pop((kind, key), None)
        self._refused.pop((kind, key), None)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(_SECONDS)
            for where, found in list(self._open.items()):
                if self._may_write() and self._open.get(where) is found and self._is_due(where):
                    await self._write(where, found)

    def _is_due(self, where: tuple[str, str]) -> bool:
        _, at = self._refused.get(where, (0, 0.0))
        if asyncio.get_running_loop().time() < at:
            return False
        return self._open[where].adds or not self._engine.ask(IsObjectInUse(*where))

    async def _write(self, where: tuple[str, str], found: _Open) -> None:
        meta = found.meta
        kept = [one for one in meta.finalizers or () if one != names.KUEUE_IN_USE]
        body: dict[str, Any] = {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "finalizers": [*kept, names.KUEUE_IN_USE] if found.adds else kept,
        }
        path = find_path(self._find_kind(where[0]), meta)
        try:
            await self._api.send("PATCH", path, {"metadata": body}, content_type=client.MERGE_PATCH)
        except ApiError as error:
            # After a conflict the watch shows the newer version.
            if answers.is_not_found(error) or answers.is_conflict(error):
                self._forget(where, found)
            else:
                self._note_refusal(where, error)
        else:
            self._forget(where, found)

    def _forget(self, where: tuple[str, str], found: _Open) -> None:
        """Forget what was written; what the watch has shown meanwhile stays."""
        if self._open.get(where) is found:
            self.drop(*where)

    def _note_refusal(self, where: tuple[str, str], error: ApiError) -> None:
        n, _ = self._refused.get(where, (0, 0.0))
        wait = client.get_backoff(n, first=_SECONDS, most=_MOST_SECONDS)
        self._refused[where] = n + 1, asyncio.get_running_loop().time() + wait
        _log.warning(
            "finalizer not written",
            kind=where[0],
            object=where[1],
            error=str(error),
            retry_seconds=wait,
        )
