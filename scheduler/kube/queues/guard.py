"""Keeps Evenkeel from the queues while Kueue's own controller manages them: two that give the same quota give it twice.

Kueue's controller holds a Lease, in a namespace that its installation chose. It is held as long as it changes, or as its
time of renewal says that it was renewed a short time ago; the one is true whatever the clocks say, the other before a
change was seen.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import structlog

from scheduler.api import kinds, names
from scheduler.errors import ApiError
from scheduler.kube import troubles, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.troubles import Trouble

_LOOK_SECONDS = 3.0
# How long a lease lasts that does not say so, and how much longer it counts: clocks differ.
_SECONDS, _MORE_SECONDS = 15.0, 5.0
_NAME = "the lease of Kueue's own controller"
_log = structlog.get_logger("evenkeel.queues")


class Guard:
    """Looks who holds Kueue's lease.

    Args:
        api: the API server.
        on_change: called whenever it has changed whether queues may be managed here.
        known_troubles: gets what keeps the lease from being read, as long as anything does.

    Attributes:
        is_open: whether queues may be managed here; false before the first look.
        holder: who holds Kueue's lease; empty if there is none.
    """

    def __init__(
        self,
        api: ApiClient,
        on_change: Callable[[], None],
        known_troubles: dict[str, Trouble],
    ) -> None:
        self._api, self._on_change, self._troubles = api, on_change, known_troubles
        self.is_open = False
        self.holder = ""
        # By namespace: the record of the lease, and since when it has been the same, by the loop's time.
        self._seen: dict[str, tuple[Any, float]] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Look once. As long as the lease cannot be read, it stays as it was."""
        params = {"fieldSelector": f"metadata.name={names.KUEUE_LEASE}"}
        try:
            found = await self._api.get(kinds.LEASES.path, params)
            holder = self._find_holder(found.get("items") or [])
        except (ApiError, AttributeError, KeyError, TypeError, ValueError) as error:
            self._troubles[_NAME] = troubles.add_failure(self._troubles.get(_NAME), error)
            return
        self._troubles.pop(_NAME, None)
        self._note_holder(holder)

    def _note_holder(self, holder: str) -> None:
        before, self.holder = self.holder, holder
        if holder and holder != before:
            _log.warning(
                "queues are not managed here: Kueue's own controller manages them",
                holder=holder,
                remedy="stop Kueue's controller, or set queues.kueue to false",
            )
        if self.is_open != (not holder):
            self.is_open = not holder
            if self.is_open:
                _log.info("queues are managed here")
            self._on_change()

    def _find_holder(self, leases: list[Any]) -> str:
        """Find who holds one of the leases; empty if there is none."""
        now, at = wall_clock.now(), asyncio.get_running_loop().time()
        seen, self._seen = self._seen, {}
        found = ""
        for lease in leases:
            meta, spec = lease["metadata"], lease.get("spec") or {}
            namespace, holder = meta["namespace"], spec.get("holderIdentity") or ""
            record = meta.get("resourceVersion"), holder
            before, since = seen.get(namespace, (None, 0.0))
            if before != record:
                # What is seen for the first time was perhaps left by one that has ended.
                since = at if before is not None else 0.0
            self._seen[namespace] = record, since
            seconds = float(spec.get("leaseDurationSeconds") or _SECONDS) + _MORE_SECONDS
            is_changing = since > 0.0 and at - since < seconds
            if holder and (is_changing or _find_age(spec, now) < seconds):
                found = f"{holder} in namespace {namespace}"
        return found


def _find_age(spec: dict[str, Any], now: dt.datetime) -> float:
    """Find how many seconds ago a lease was renewed, by both clocks; infinite if it does not say."""
    renewed = spec.get("renewTime")
    if not renewed:
        return float("inf")
    return (now - dt.datetime.fromisoformat(renewed)).total_seconds()
