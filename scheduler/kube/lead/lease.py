"""One leader by a Lease: compare-and-swap on its resourceVersion, time by the monotonic clock.

The same rules as client-go's leader election (tools/leaderelection), so that a lease can be shared with
programs that use it, kube-scheduler among them: a holder renews every ``retry``, by one write on the version that
it wrote last; it stops acting when it could not renew for ``deadline``; others take over when the record has not
changed for ``duration``, by their own clock, or when its holder is empty. While no other replica holds the lease, a
try that fails, or is not answered soon, is followed by the next: many tries fit into the deadline. A renewal whose answer
was lost counts once the lease is read and is found as that renewal wrote it: whoever else has seen the record has seen it
after the renewal was sent. That keeps leaders apart in what they send, not in what lands: for that see ``fence``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import msgspec
import structlog

from scheduler.api import kinds, names
from scheduler.errors import ApiError
from scheduler.kube import answers, client, troubles, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.lead.holding import FoundLease, Held, Holder
from scheduler.kube.patience import Patience
from scheduler.kube.troubles import Trouble

# Tries to give the lease back: more than one renewal is not on its way.
_RELEASES = 3
# How long the first try waits for an answer, as a part of ``retry``.
_FIRST_PATIENCE = 0.125
_LOOKS_PER_RETRY = 20
# The first and the longest wait after a try that failed, while no other holds the lease; as parts of ``retry``.
_FIRST_WAIT, _LONGEST_WAIT = 0.025, 0.1
_ERROR = b'{"type":"ERROR"'
_log = structlog.get_logger("evenkeel.lease")


class Notes(Protocol):
    """What a leader hands on with the lease, as annotations of it."""

    def write(self) -> dict[str, str]:
        """Annotations for whoever leads next."""

    def read(self, annotations: dict[str, str]) -> None:
        """What another leader has left."""


class Place(NamedTuple):
    """Which Lease it is.

    Attributes:
        namespace: where it is.
        name: what it is called.
        is_shared: other schedulers take their turns by it too, and leave it in good order.
    """

    namespace: str
    name: str
    is_shared: bool = False


class Lease:
    """This replica's view of the lease.

    Attributes:
        identity: what is written as holder.
        is_shared: whether other schedulers take their turns by it too.
        held: the present hold on it, or the last.
        seen: how it was found last.
        trouble: what keeps it from being read or written, None while nothing does.
        errors: how often it could not be read or written.
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
        # The lease as this replica has written it last, or has found it written; None once it is another.
        self._written: dict[str, Any] | None = None
        # When renewals were sent of which nobody knows whether they took effect, by their ``renewTime``.
        self._in_doubt: dict[str, float] = {}
        # A write that takes the lease was sent, and has not been answered.
        self._is_taking = False
        self._patience = Patience(_FIRST_PATIENCE * self._retry)
        self.seen = FoundLease()
        self.trouble: Trouble | None = None
        self.errors = 0

    def present_term(self) -> int:
        """The term that lasts right now, 0 when none does."""
        held = self.held
        return held.term if self._clock() < held.until else 0

    def holder(self) -> Holder:
        """Who holds the lease by what is known now."""
        if self.present_term():
            return Holder.SELF
        seen = self.seen
        if seen.holder in {"", self.identity} or self._clock() - seen.at >= seen.duration:
            return Holder.NOBODY
        if not seen.is_stranger:
            return Holder.REPLICA
        return Holder.PEER if self.is_shared else Holder.OTHER

    async def look(self) -> None:
        """Note how the lease stands, without taking it: the time of a dead holder runs out from this look on.

        If the lease cannot be read, its time runs from the first try to take it.
        """
        with suppress(ApiError):
            async with self._patience.limit(self._retry):
                self._note(await self._api.get(f"{self._path}/{self._name}"))

    async def run(self) -> None:
        """Take the lease when it is free and keep it, until cancelled."""
        failures = 0
        while True:
            try:
                await self._try_in_time()
                self.trouble, failures = None, 0
            except ApiError as error:
                self.trouble = troubles.after(self.trouble, error)
                self.errors += 1
                holder = self.holder()
                if not failures:
                    _log.warning("lease not renewed", error=str(error), held=holder == Holder.SELF)
                if answers.is_transient(error) and holder in {Holder.SELF, Holder.NOBODY}:
                    await asyncio.sleep(self._wait_after(failures))
                    failures += 1
                    continue
                failures = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_try()):
                    await self._stand_by()

    def _next_try(self) -> float:
        """Seconds until the next try: as soon as the time of another holder is over."""
        left = self.seen.at + self.seen.duration - self._clock()
        is_waiting = self.holder() in {Holder.REPLICA, Holder.PEER, Holder.OTHER}
        return min(self._retry, left) if is_waiting else self._retry

    def _wait_after(self, failures: int) -> float:
        first, most = _FIRST_WAIT * self._retry, _LONGEST_WAIT * self._retry
        return client.backoff(failures, first=first, most=most)

    async def _try_in_time(self) -> None:
        """Try to take or to renew the lease, and give it up in time for another try within the deadline.

        Raises:
            ApiError: as the API server answers, or that it does not.
        """
        # To take it are two requests, and nothing is lost meanwhile.
        most = self._deadline / 2 if self.present_term() else self._deadline
        # A write without an answer may take effect all the same; then the version is another.
        async with self._patience.limit(most):
            await self._try()

    async def _stand_by(self) -> None:
        """Until the lease changes, when another holds it; who held it may have given it back."""
        if not self.present_term() and self.seen.holder and not self.trouble:
            # Never more often than this, whoever changes it.
            await asyncio.sleep(self._retry / _LOOKS_PER_RETRY)
            if await self._hears_change():
                return
        await asyncio.sleep(self._retry)

    async def _hears_change(self) -> bool:
        """Whether the lease is another than was seen last; False when that cannot be watched."""
        asked = {
            "watch": "true",
            "fieldSelector": f"metadata.name={self._name}",
            "resourceVersion": self._version,
        }
        try:
            async with self._api.stream(self._path, asked, silence_seconds=self._retry) as response:
                async for news in response.content.iter_any():
                    # A version that is too old is told as an error, again and again.
                    return not (answers.is_failure(response.status) or news.startswith(_ERROR))
        except client.TRANSPORT_ERRORS as error:
            _log.info("lease cannot be watched", error=repr(error))
        return False

    async def release(self, *, settled_reign: int) -> None:
        """Give the lease back so that a standby need not wait it out.

        ``settled_reign``: in that reign nothing that this replica or one before it has sent is on its way
        any more; 0 for none.
        """
        was_held = self.present_term()
        # Who has not heard whether it took the lease knows nothing of what is on its way.
        settled = bool(was_held) and settled_reign == self.held.reign
        self.held = self.held._replace(until=0.0)
        if not (was_held or self._is_taking):
            return
        for _ in range(_RELEASES):
            try:
                await self._give_back(settled=settled)
            except ApiError as error:
                _log.warning("lease not released", error=str(error))
                if answers.is_conflict(error):
                    # A renewal that was on its way has landed meanwhile.
                    continue
            return

    async def _give_back(self, *, settled: bool) -> None:
        lease = await self._api.get(f"{self._path}/{self._name}")
        if lease["spec"].get("holderIdentity") != self.identity:
            return
        lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        if settled:
            # Only true of this reign: whoever takes the lease counts on.
            annotations = lease["metadata"].setdefault("annotations", {})
            annotations[names.SETTLED] = str(lease["spec"]["leaseTransitions"])
        await self._api.send("PUT", f"{self._path}/{self._name}", lease)

    async def _try(self) -> None:
        began = self._clock()
        if self._written is not None and self.present_term():
            if await self._write(began, "PUT", self._written):
                return
            self._written, began = None, self._clock()
        try:
            lease = await self._api.get(f"{self._path}/{self._name}")
        except ApiError as error:
            if not answers.is_not_found(error):
                raise
            self._version = ""
            if self.holder() in {Holder.REPLICA, Holder.PEER}:
                # Someone deleted it; who held it may act all the same until its time is up.
                return
            await self._write(began, "POST", {"metadata": {"name": self._name}})
            return
        self._version = lease["metadata"]["resourceVersion"]
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder != self.identity:
            self._notes.read(lease["metadata"].get("annotations") or {})
        now = self._note(lease)
        if holder and holder != self.identity and now - self.seen.at < self.seen.duration:
            self.held = self.held._replace(until=0.0)
            return
        if holder == self.identity:
            self._written = lease
            self._recognize(spec)
        await self._write(began, "PUT", lease)

    def _note(self, lease: Mapping[str, Any]) -> float:
        """The lease is found so; when that is, by this replica's clock."""
        spec, now = lease.get("spec") or {}, self._clock()
        if not self.seen.at or spec != self.seen.spec:
            holder = spec.get("holderIdentity") or ""
            signed = (lease["metadata"].get("annotations") or {}).get(names.HOLDER, "")
            duration = float(spec.get("leaseDurationSeconds") or self._duration)
            self.seen = FoundLease(holder, spec, now, duration, is_stranger=signed != holder)
        return now

    def _begin_to_renew(self, renewed: str, began: float) -> None:
        too_old = self._clock() - self._deadline
        self._in_doubt = {text: at for text, at in self._in_doubt.items() if at > too_old}
        # Should a clock that was set back give one time twice, the renewal that was sent first counts.
        self._in_doubt.setdefault(renewed, began)

    def _recognize(self, spec: Mapping[str, Any]) -> None:
        """The lease as it is read: if a renewal in doubt wrote that, it took effect."""
        began = self._in_doubt.get(spec.get("renewTime") or "")
        if began is not None and spec.get("acquireTime") == self._acquired:
            self._may_act_from(began)

    def _may_act_from(self, began: float) -> None:
        """The lease was renewed by a write that was sent then; a term that has lapsed meanwhile is followed by another."""
        held = self.held
        until = max(held.until, began + self._deadline)
        if self._clock() < until:
            self.held = held._replace(until=until, term=held.term + (not self.present_term()))

    async def _write(self, began: float, method: str, lease: dict[str, Any]) -> bool:
        """Take or renew the lease, as it was read or written last; False when someone else wrote first."""
        spec, metadata = lease.get("spec") or {}, lease["metadata"]
        # A write whose answer was lost may have taken it over too: then the time is not the one known.
        goes_on = spec.get("holderIdentity") == self.identity and (
            spec.get("acquireTime") == self._acquired
        )
        # Who takes the lease and is not one of us leaves this as it was.
        signed = {names.HOLDER: self.identity}
        annotations = {**(metadata.get("annotations") or {}), **self._notes.write(), **signed}
        settled = annotations.pop(names.SETTLED, "")
        renewed = _now()
        acquired = self._acquired if goes_on else renewed
        is_transition = method == "PUT" and not goes_on
        record = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "annotations": annotations},
            # Nothing else that is in it: a preferred holder or a strategy is of who held it before.
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._duration)),
                "renewTime": renewed,
                "acquireTime": acquired,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + is_transition,
            },
        }
        path = self._path if method == "POST" else f"{self._path}/{self._name}"
        if goes_on:
            self._begin_to_renew(renewed, began)
        self._is_taking = not goes_on
        try:
            payload = await self._api.send(method, path, record)
        except ApiError as error:
            if answers.is_conflict(error):
                self._is_taking = False
                return False
            raise
        self._is_taking = False
        self._written = _written(record, payload)
        self._in_doubt.clear()
        if goes_on:
            self._may_act_from(began)
        else:
            self._acquired = acquired
            given_back = str(spec.get("leaseTransitions")), ""
            is_new = method == "POST" and not self.seen.holder
            is_clean = is_new or (settled, spec.get("holderIdentity")) == given_back
            held = self.held
            self.held = Held(began + self._deadline, held.term + 1, held.reign + 1, is_clean)
        return True


def _written(record: dict[str, Any], payload: bytes) -> dict[str, Any] | None:
    """The lease as it was written, with the version that the answer names; None when it names none."""
    try:
        version = msgspec.json.decode(payload)["metadata"]["resourceVersion"]
    except (msgspec.MsgspecError, LookupError, TypeError):
        return None
    return {**record, "metadata": {**record["metadata"], "resourceVersion": version}}


def _now() -> str:
    return wall_clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class AlwaysLeader:
    """Leadership without a lease, for a single replica and for trials."""

    identity = "single"
    is_shared = False
    held = Held(until=float("inf"), term=1, reign=1)

    seen = FoundLease()
    trouble = None
    errors = 0

    def holder(self) -> Holder:
        """This process."""
        return Holder.SELF

    def present_term(self) -> int:
        """Always the first."""
        return self.held.term

    async def look(self) -> None:
        """There is nothing to see."""

    async def run(self) -> None:
        """Nothing to keep, but to say what that means: a second one would bind what this one has given away."""
        _log.warning(
            "running without a lease: no other scheduler of the same name may run",
            risk="a second scheduler would allocate the same GPUs again",
            remedy="set --lease-namespace NAMESPACE",
        )

    async def release(self, *, settled_reign: int) -> None:
        """Nothing to give back."""
