"""What the probes and the metrics report. Another thread calls this module, so it only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import structlog

from scheduler.kube.bind.fence import Fence
from scheduler.kube.lead.always import AlwaysLeader
from scheduler.kube.lead.holding import Holder
from scheduler.kube.lead.lease import Lease
from scheduler.kube.rights import Rights
from scheduler.kube.troubles import Trouble
from scheduler.kube.watch.streams import Stream

_STALE_SECONDS = 180.0
_STUCK_SECONDS = 60.0
# Trouble of the API server is reported only if it lasts longer than this.
_TROUBLE_SECONDS = 30.0
_LOOK_SECONDS = 1.0
_log = structlog.get_logger("evenkeel")


class Served(Protocol):
    """Something that is served beside probes.

    Attributes:
        port: where it listens; 0 before it does.
        trouble: what keeps it from being served; None while nothing does.
    """

    port: int
    trouble: Trouble | None


class Signs(NamedTuple):
    """The parts of a replica that show its health.

    Attributes:
        lease: the lease.
        fence: the fence, for which a new leader waits.
        streams: all streams.
        rights: knows the rights that are missing.
        troubles: what keeps kinds without a stream from being read, by their name.
        webhook: the webhook; None for none.
    """

    lease: Lease | AlwaysLeader
    fence: Fence
    streams: list[Stream[Any]]
    rights: Rights
    troubles: Mapping[str, Trouble]
    webhook: Served | None = None


class Probes:
    """Health of one replica.

    Args:
        is_started: says whether the start is over.
        turned_at: gives the monotonic time of the main loop's last turn, 0 before the first.
        signs: the parts to look at.
    """

    def __init__(
        self, is_started: Callable[[], bool], turned_at: Callable[[], float], signs: Signs
    ) -> None:
        self._is_started, self._turned_at = is_started, turned_at
        self._lease, self._fence, self._streams, self._rights = signs[:4]
        self._troubles, self._webhook = signs[4:]

    def list_reasons_to_end(self) -> list[str]:
        """List why the process should be ended; empty if it should not."""
        turned_at = self._turned_at()
        idle = time.monotonic() - turned_at if turned_at else 0.0
        return [f"the loop has not turned for {idle:.0f} s"] if idle > _STUCK_SECONDS else []

    def list_reasons_not_ready(self) -> list[str]:
        """List why the replica cannot do its work, or take it over; empty if it can."""
        now = time.monotonic()
        starting = [] if self._is_started() else ["starting"]
        stale = [
            f"stream {stream.name} is not fresh"
            for stream in self._streams
            if not stream.is_listed or stream.get_age(now) > _STALE_SECONDS
        ]
        if self._webhook is not None and not self._webhook.port:
            stale.append("the webhook is not served yet")
        # What a person must mend comes before what may result from it.
        return self.list_reasons_to_end() + starting + self.list_hindrances() + stale

    def list_hindrances(self) -> list[str]:
        """List what a person must mend. A text stays the same as long as its cause lasts."""
        now = time.monotonic()
        found = [f"a right is missing: {right}" for right in self._rights.missing]
        read = [(f"stream {one.name} cannot be read", one.trouble) for one in self._streams]
        read += [(f"{name} cannot be read", one) for name, one in sorted(self._troubles.items())]
        read.append(("the lease cannot be read or written", self._lease.trouble))
        read.append(("pods cannot be fenced", self._fence.trouble))
        if self._webhook is not None:
            read.append(("the webhook has no certificate", self._webhook.trouble))
        found += [
            f"{what}: {trouble.message}"
            for what, trouble in read
            if trouble is not None and now - trouble.since > _TROUBLE_SECONDS
        ]
        found += self._list_lease_hindrances(now)
        return found

    def _list_lease_hindrances(self, now: float) -> list[str]:
        holder, found = self._lease.find_holder(), self._lease.last_found
        if holder == Holder.OTHER:
            return [f"the lease is held by {found.holder}, which is not a replica of Evenkeel"]
        # Twice as long as other replicas wait before they take it.
        if holder == Holder.NOBODY and found.at and now - found.at > 2 * found.duration:
            return ["nobody leads"]
        return []

    async def log_hindrances(self) -> None:
        """Log the begin and the end of each hindrance, until cancelled."""
        known: set[str] = set()
        while True:
            # ``Rights`` logs missing rights.
            found = {
                one for one in self.list_hindrances() if not one.startswith("a right is missing")
            }
            for reason in found - known:
                _log.error("not ready", reason=reason)
            for reason in known - found:
                _log.info("no longer keeps this replica from being ready", reason=reason)
            known = found
            await asyncio.sleep(_LOOK_SECONDS)
