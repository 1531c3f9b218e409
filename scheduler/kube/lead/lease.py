"""One leader by a Lease: compare-and-swap on its resourceVersion, time by the monotonic clock.

The same rules as client-go's leader election (tools/leaderelection), so that a lease can be shared with
programs that use it, kube-scheduler among them: a holder renews every ``retry``, by one write on the version that
it wrote last; it stops acting when it could not renew for ``deadline``; others take over when the record has not
changed for ``duration``, by their own clock, or when its holder is empty. While no other replica holds the lease, a
try that fails, or is not answered soon, is followed by the next: many tries fit into the deadline. A renewal whose answer
was lost counts once the lease is found as that renewal wrote it: every other reader of the record has read it after the
renewal was sent. These rules keep leaders apart in what they send, not in what lands; ``fence`` does the latter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import structlog

from scheduler.api import kinds
from scheduler.errors import ApiError
from scheduler.kube import answers, client, troubles
from scheduler.kube.client import ApiClient
from scheduler.kube.lead import record
from scheduler.kube.lead.holding import FoundLease, Held, Holder
from scheduler.kube.patience import Patience
from scheduler.kube.troubles import Trouble

# Tries to give the lease back: no more than one renewal can be on its way.
_RELEASES = 3
# How long the first try waits for an answer, as a part of ``retry``.
_FIRST_PATIENCE = 0.125
_LOOKS_PER_RETRY = 20
# The first and the longest wait after a try that failed, while no other holds the lease; as parts of ``retry``.
_FIRST_WAIT, _LONGEST_WAIT = 0.025, 0.1
_ERROR = b'{"type":"ERROR"'
_log = structlog.get_logger("evenkeel.lease")


class Notes(Protocol):
    """What a leader hands on with the lease, as annotations."""

    def write_annotations(self) -> dict[str, str]:
        """Return the annotations for the next leader."""

    def read_annotations(self, annotations: dict[str, str]) -> None:
        """Take over what another leader has left."""


class Place(NamedTuple):
    """The place of a Lease.

    Attributes:
        namespace: the namespace of the Lease.
        name: the name of the Lease.
        is_shared: whether other schedulers take turns by it too; they leave it in good order.
    """

    namespace: str
    name: str
    is_shared: bool = False


class Lease:
    """This replica's view of the lease.

    Attributes:
        identity: the name that is written as holder.
        is_shared: whether other schedulers take turns by the lease too.
        held: this replica's present hold on the lease, or its last one.
        last_found: the lease as it was found last.
        trouble: what keeps the lease from being read or written; None while nothing does.
        n_errors: how often the lease could not be read or written.
    """

    def __init__(
        self,
        api: ApiClient,
        place: Place,
        *,
        identity: str,
        notes: Notes,
        seconds: tuple[float, float, float] = (15.0, 10.0, 2.0),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``seconds``: duration, deadline and retry. ``clock`` must go on while the process is busy."""
        self._api = api
        self._path = kinds.LEASES.find_list_path(place.namespace)
        self._name, self.is_shared = place.name, place.is_shared
        self.identity = identity
        self._notes, self._clock = notes, clock
        self._duration, self._deadline, self._retry = seconds
        self.held = Held()
        self._acquired = self._version = ""
        # The lease as this replica has written it last, or has found its own write; None once the lease is another.
        self._written: dict[str, Any] | None = None
        # When renewals were sent that may have taken effect without an answer, by their ``renewTime``.
        self._in_doubt: dict[str, float] = {}
        # A write that takes the lease was sent, and has not been answered.
        self._is_taking = False
        self._patience = Patience(_FIRST_PATIENCE * self._retry)
        self.last_found = FoundLease()
        self.trouble: Trouble | None = None
        self.n_errors = 0

    def get_present_term(self) -> int:
        """Return the term that lasts right now; 0 if none does."""
        held = self.held
        return held.term if self._clock() < held.until else 0

    def find_holder(self) -> Holder:
        """Return who holds the lease, as far as is known now."""
        if self.get_present_term():
            return Holder.SELF
        found = self.last_found
        if found.holder in {"", self.identity} or self._clock() - found.at >= found.duration:
            return Holder.NOBODY
        if not found.is_stranger:
            return Holder.REPLICA
        return Holder.PEER if self.is_shared else Holder.OTHER

    async def observe_holder(self) -> None:
        """Read who holds the lease, without taking it: from now on the time of a dead holder runs out.

        If the lease cannot be read, the time runs from the first try to take it.
        """
        with suppress(ApiError):
            async with self._patience.limit(self._retry):
                self._note_found(await self._api.get(f"{self._path}/{self._name}"))

    async def run(self) -> None:
        """Take the lease when it is free and keep it, until cancelled."""
        failures = 0
        while True:
            try:
                await self._take_or_renew_in_time()
                self.trouble, failures = None, 0
            except ApiError as error:
                self.trouble = troubles.add_failure(self.trouble, error)
                self.n_errors += 1
                holder = self.find_holder()
                if not failures:
                    _log.warning("lease not renewed", error=str(error), held=holder == Holder.SELF)
                if answers.is_transient(error) and holder in {Holder.SELF, Holder.NOBODY}:
                    await asyncio.sleep(self._find_backoff(failures))
                    failures += 1
                    continue
                failures = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(self._find_wait()):
                    await self._stand_by()

    def _find_wait(self) -> float:
        """Return the seconds until the next try: it comes as soon as the time of another holder is over."""
        left = self.last_found.at + self.last_found.duration - self._clock()
        is_waiting = self.find_holder() in {Holder.REPLICA, Holder.PEER, Holder.OTHER}
        return min(self._retry, left) if is_waiting else self._retry

    def _find_backoff(self, failures: int) -> float:
        """Return the seconds until the next try after one that failed."""
        first, most = _FIRST_WAIT * self._retry, _LONGEST_WAIT * self._retry
        return client.get_backoff(failures, first=first, most=most)

    async def _take_or_renew_in_time(self) -> None:
        """Try to take or to renew the lease, and give the try up in time for another one within the deadline.

        Raises:
            ApiError: the API server refused, or did not answer.
        """
        # Taking the lease needs two requests, and nothing is lost meanwhile.
        most = self._deadline / 2 if self.get_present_term() else self._deadline
        # A write without an answer may take effect all the same; then the version is another.
        async with self._patience.limit(most):
            await self._take_or_renew()

    async def _stand_by(self) -> None:
        """Wait for the next try; if another holds the lease, until it changes: its holder may have given it back."""
        if not self.get_present_term() and self.last_found.holder and not self.trouble:
            # The lease is never tried more often than this, however often it changes.
            await asyncio.sleep(self._retry / _LOOKS_PER_RETRY)
            if await self._wait_for_change():
                return
        await asyncio.sleep(self._retry)

    async def _wait_for_change(self) -> bool:
        """Wait until the lease differs from what was found last; return False if that cannot be watched."""
        params = {
            "watch": "true",
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": self._version,
        }
        try:
            async with self._api.stream(
                self._path, params, silence_seconds=self._retry
            ) as response:
                async for news in response.content.iter_any():
                    # A version that is too old comes as an error, again and again.
                    return not (answers.is_failure(response.status) or news.startswith(_ERROR))
        except client.TRANSPORT_ERRORS as error:
            _log.info("lease cannot be watched", error=repr(error))
        return False

    async def release(self, *, settled_reign: int) -> None:
        """Give the lease back so that a standby need not wait it out.

        ``settled_reign`` is the reign in which nothing that this replica or an earlier leader has sent is on its way
        any more; 0 if there is none.
        """
        term = self.get_present_term()
        # A replica that does not know whether it took the lease does not know what is on its way.
        is_settled = bool(term) and settled_reign == self.held.reign
        self.held = self.held._replace(until=0.0)
        if not (term or self._is_taking):
            return
        for _ in range(_RELEASES):
            try:
                await self._give_back_lease(is_settled=is_settled)
            except ApiError as error:
                _log.warning("lease not released", error=str(error))
                if answers.is_conflict(error):
                    # A renewal that was on its way has landed meanwhile.
                    continue
            return

    async def _give_back_lease(self, *, is_settled: bool) -> None:
        lease = await self._api.get(f"{self._path}/{self._name}")
        if lease["spec"].get("holderIdentity") == self.identity:
            free = record.make_free(lease, is_settled=is_settled)
            await self._api.send("PUT", f"{self._path}/{self._name}", free)

    async def _take_or_renew(self) -> None:
        began = self._clock()
        if self._written is not None and self.get_present_term():
            if await self._write_held(began, "PUT", self._written):
                return
            self._written, began = None, self._clock()
        try:
            lease = await self._api.get(f"{self._path}/{self._name}")
        except ApiError as error:
            if not answers.is_not_found(error):
                raise
            self._version = ""
            if self.find_holder() in {Holder.REPLICA, Holder.PEER}:
                # The lease was deleted; its holder may act all the same until its time is up.
                return
            await self._write_held(began, "POST", {"metadata": {"name": self._name}})
            return
        self._version = lease["metadata"]["resourceVersion"]
        spec = record.get_spec(lease)
        holder = record.get_holder(spec)
        if holder != self.identity:
            self._notes.read_annotations(record.get_annotations(lease))
        now = self._note_found(lease)
        if (
            holder
            and holder != self.identity
            and now - self.last_found.at < self.last_found.duration
        ):
            self.held = self.held._replace(until=0.0)
            return
        if holder == self.identity:
            self._written = lease
            self._recognize_renewal(spec)
        await self._write_held(began, "PUT", lease)

    def _note_found(self, lease: dict[str, Any]) -> float:
        """Note how the lease was found; return when that was, by this replica's clock."""
        now = self._clock()
        if not self.last_found.at or record.get_spec(lease) != self.last_found.spec:
            self.last_found = record.read_lease(lease, now, self._duration)
        return now

    def _note_renewal_sent(self, renewed: str, began: float) -> None:
        too_old = self._clock() - self._deadline
        self._in_doubt = {text: at for text, at in self._in_doubt.items() if at > too_old}
        # If a clock that was set back gives one time twice, the renewal that was sent first counts.
        self._in_doubt.setdefault(renewed, began)

    def _recognize_renewal(self, spec: Mapping[str, Any]) -> None:
        """Extend the term if a renewal in doubt wrote the lease that was read: the renewal took effect."""
        began = self._in_doubt.get(spec.get("renewTime") or "")
        if began is not None and spec.get("acquireTime") == self._acquired:
            self._extend_term(began)

    def _extend_term(self, began: float) -> None:
        """Extend the term by the renewal that was sent at ``began``; if the term has lapsed, begin a new one."""
        held = self.held
        until = max(held.until, began + self._deadline)
        if self._clock() < until:
            self.held = held._replace(until=until, term=held.term + (not self.get_present_term()))

    async def _write_held(self, began: float, method: str, lease: dict[str, Any]) -> bool:
        """Take or renew the lease, as it was read or written last; return False if another write came first."""
        spec = record.get_spec(lease)
        # A write whose answer was lost may have taken the lease over, too: then its acquireTime is not the known one.
        is_renewal = spec.get("holderIdentity") == self.identity and (
            spec.get("acquireTime") == self._acquired
        )
        renewed = record.format_now()
        acquired = self._acquired if is_renewal else renewed
        held_lease = record.make_held(
            lease,
            identity=self.identity,
            seconds=self._duration,
            renewed=renewed,
            acquired=acquired,
            is_transition=method == "PUT" and not is_renewal,
            notes=self._notes.write_annotations(),
        )
        path = self._path if method == "POST" else f"{self._path}/{self._name}"
        if is_renewal:
            self._note_renewal_sent(renewed, began)
        self._is_taking = not is_renewal
        try:
            answer = await self._api.send(method, path, held_lease)
        except ApiError as error:
            if answers.is_conflict(error):
                self._is_taking = False
                return False
            raise
        self._is_taking = False
        self._written = record.add_version(held_lease, answer)
        self._in_doubt.clear()
        if is_renewal:
            self._extend_term(began)
        else:
            self._acquired = acquired
            is_new = method == "POST" and not self.last_found.holder
            is_clean = is_new or record.is_clean(lease)
            held = self.held
            self.held = Held(began + self._deadline, held.term + 1, held.reign + 1, is_clean)
        return True
