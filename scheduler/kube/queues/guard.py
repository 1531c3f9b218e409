"""Keeps Evenkeel from queues while another program manages them: two that give the same quota give it twice.

Each system has its own sign of who manages its queues.

Kueue's controller holds a Lease in the namespace in which it is installed; tenants may create Leases of the same name in
namespaces of their own, and these count for nothing. It is held as long as it changes, or as its time of renewal says
that it was renewed a short time ago; the one is true whatever the clocks say, the other before a change was seen.

KAI-Scheduler elects no leader unless its installation says so, so it often has no lease. Its sign are the pods that
decide about queues, or carry such decisions out, in the namespace in which KAI is installed by default: tenants create no
pods there. Source: KAI-Scheduler (2026-03), ``pkg/operator/operands``, ``cmd/scheduler/app``.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any, Protocol

import structlog

from scheduler.api import kinds, names
from scheduler.errors import ApiError
from scheduler.kube import answers, troubles, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.troubles import Trouble

_LOOK_SECONDS = 3.0
# How long a lease lasts that does not say so, and how much longer it counts: clocks differ.
_SECONDS, _MORE_SECONDS = 15.0, 5.0
# No lease lasts longer, whatever it says.
_SECONDS_MAX = 300.0
# By these service accounts KAI's scheduler, its binder and its queue controller run.
_KAI_ACCOUNTS = frozenset({"scheduler", "binder", "queue-controller"})
_ENDED = frozenset({"Succeeded", "Failed"})
_log = structlog.get_logger("evenkeel.queues")


class Sign(Protocol):
    """What shows who manages the queues of a system.

    Attributes:
        name: what is read, for people.
        words: what is logged when somebody else manages the queues, and what can be done.
    """

    name: str
    words: tuple[str, str]

    async def find_holder(self, api: ApiClient) -> str:
        """Find who manages the queues; empty if there is none.

        Raises:
            ApiError: the API server does not say.
            AttributeError, KeyError, TypeError, ValueError: it says something else.
        """


class Guard:
    """Looks who manages the queues of a system.

    Args:
        api: the API server.
        sign: what shows it.
        on_change: called whenever it has changed whether queues may be managed here, or who else manages them.
        known_troubles: gets what keeps the sign from being read, as long as anything does.

    Attributes:
        is_open: whether queues may be managed here; false before the first look.
        holder: who else manages the queues; empty if there is none.
    """

    def __init__(
        self,
        api: ApiClient,
        sign: Sign,
        on_change: Callable[[], None],
        known_troubles: dict[str, Trouble],
    ) -> None:
        self._api, self._sign = api, sign
        self._on_change, self._troubles = on_change, known_troubles
        self.is_open = False
        self.holder = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Look once. As long as the sign cannot be read, all stays as it was."""
        name = self._sign.name
        try:
            holder = await self._sign.find_holder(self._api)
        except (ApiError, AttributeError, KeyError, TypeError, ValueError) as error:
            self._troubles[name] = troubles.add_failure(self._troubles.get(name), error)
            return
        self._troubles.pop(name, None)
        self._note_holder(holder)

    def _note_holder(self, holder: str) -> None:
        before, self.holder = self.holder, holder
        if holder and holder != before:
            text, remedy = self._sign.words
            _log.warning(text, holder=holder, remedy=remedy)
        was_open, self.is_open = self.is_open, not holder
        if self.is_open and not was_open:
            _log.info("queues are managed here")
        if self.is_open != was_open or holder != before:
            self._on_change()


class KueueLease:
    """The lease of Kueue's own controller."""

    name = "the lease of Kueue's own controller"
    words = (
        "queues are not managed here: Kueue's own controller manages them",
        "stop Kueue's controller, or set queues.kueue to false",
    )

    def __init__(self, namespace: str) -> None:
        """``namespace``: where Kueue may run."""
        self._namespace = namespace
        # The record of the lease as it was read last, and since when it has been the same, by the loop's time.
        self._record: Any = None
        self._since = 0.0

    async def find_holder(self, api: ApiClient) -> str:
        """Find who holds the lease; empty if it has no holder."""
        try:
            lease = await api.get(kinds.LEASES.find_path(names.KUEUE_LEASE, self._namespace))
        except ApiError as error:
            if not answers.is_not_found(error):
                raise
            self._record = None
            return ""
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        record = lease["metadata"].get("resourceVersion"), holder
        at = asyncio.get_running_loop().time()
        if self._record != record:
            # What is seen for the first time was perhaps left by one that has ended.
            self._since = at if self._record is not None else 0.0
        self._record = record
        seconds = _read_seconds(spec)
        is_changing = self._since > 0.0 and at - self._since < seconds
        # A clock may be ahead, but a time that is further ahead than a lease lasts is none of a renewal.
        is_fresh = abs(_find_age(spec, wall_clock.now())) < seconds
        return (
            f"{holder} in namespace {self._namespace}"
            if holder and (is_changing or is_fresh)
            else ""
        )


class KaiPods:
    """The pods of KAI-Scheduler."""

    name = "the pods of KAI-Scheduler"
    words = (
        "KAI's queues are not managed here: KAI-Scheduler runs",
        "stop KAI's operator, scheduler, binder and queue controller, or set queues.kai to false",
    )

    async def find_holder(self, api: ApiClient) -> str:
        """Find a pod of KAI's that decides about queues, or carries its decisions out; empty if there is none."""
        path = kinds.PODS.find_list_path(names.KAI_NAMESPACE)
        pods = (await api.get(path, {})).get("items") or []
        found = sorted(
            one["metadata"]["name"]
            for one in pods
            if one["spec"].get("serviceAccountName") in _KAI_ACCOUNTS
            and (one.get("status") or {}).get("phase") not in _ENDED
        )
        return f"KAI's pod {found[0]} in namespace {names.KAI_NAMESPACE}" if found else ""


def _read_seconds(spec: dict[str, Any]) -> float:
    """Read for how many seconds a lease counts after it was renewed."""
    given = float(spec.get("leaseDurationSeconds") or _SECONDS)
    return min(max(0.0, given), _SECONDS_MAX) + _MORE_SECONDS


def _find_age(spec: dict[str, Any], now: dt.datetime) -> float:
    """Find how many seconds ago a lease was renewed, by both clocks; infinite if it does not say."""
    renewed = spec.get("renewTime")
    if not renewed:
        return float("inf")
    return (now - dt.datetime.fromisoformat(renewed)).total_seconds()
