"""One leader by a Lease: compare-and-swap on its resourceVersion, time by the monotonic clock.

The same rules as client-go's leader election: a holder renews every ``retry``; it stops acting when it
could not renew for ``deadline``; others take over when the record has not changed for ``duration``,
by their own clock. Between the two lies room for requests in flight, which time out sooner.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import structlog

from scheduler.errors import ApiError
from scheduler.kube import wall_clock
from scheduler.kube.client import ApiClient

_NOT_FOUND, _CONFLICT = 404, 409
_log = structlog.get_logger("evenkeel.lease")


class Notes(Protocol):
    """What a leader hands on with the lease, as annotations of it."""

    def write(self) -> dict[str, str]:
        """Annotations for whoever leads next."""

    def read(self, annotations: dict[str, str]) -> None:
        """What another leader has left."""


class Lease:
    """This replica's view of the lease.

    Attributes:
        identity: what is written as holder.
        term: counts the times it was taken; what was decided in one term is not carried out in another.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        notes: Notes,
        duration: float = 15.0,
        deadline: float = 10.0,
        retry: float = 2.0,
    ) -> None:
        self._api = api
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self.identity = identity
        self._notes = notes
        self._duration, self._deadline, self._retry = duration, deadline, retry
        self.term = 0
        self._valid_until = 0.0
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = 0.0

    def is_held(self) -> bool:
        """Whether this replica may act right now."""
        return asyncio.get_running_loop().time() < self._valid_until

    async def run(self) -> None:
        """Take the lease when it is free and keep it, until cancelled."""
        while True:
            began = asyncio.get_running_loop().time()
            try:
                if await self._try():
                    self.term += not self.is_held()
                    self._valid_until = began + self._deadline
            except ApiError as error:
                _log.warning("lease not renewed", error=str(error), held=self.is_held())
            await asyncio.sleep(self._retry)

    async def release(self) -> None:
        """Give the lease back so that a standby need not wait it out."""
        was_held, self._valid_until = self.is_held(), 0.0
        if not was_held:
            return
        try:
            lease = await self._api.get(f"{self._path}/{self._name}")
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {
                    "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()
                }  # fmt: skip
                await self._api.send("PUT", f"{self._path}/{self._name}", lease)
        except ApiError as error:
            _log.warning("lease not released", error=str(error))

    async def _try(self) -> bool:
        try:
            lease = await self._api.get(f"{self._path}/{self._name}")
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return await self._write(
                "POST", self._path, self._record({"metadata": {"name": self._name}})
            )
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder != self.identity:
            self._notes.read(lease["metadata"].get("annotations") or {})
        now = asyncio.get_running_loop().time()
        seen = (holder, str(spec.get("renewTime")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        duration = float(spec.get("leaseDurationSeconds") or self._duration)
        if holder and holder != self.identity and now - self._seen_at < duration:
            self._valid_until = 0.0
            return False
        return await self._write("PUT", f"{self._path}/{self._name}", self._record(lease))

    def _record(self, lease: dict[str, Any]) -> dict[str, Any]:
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") != self.identity:
            spec = {
                **spec,
                "acquireTime": _now(),
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1,
            }
        metadata = lease["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **self._notes.write()}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "annotations": annotations},
            "spec": {
                **spec,
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._duration)),
                "renewTime": _now(),
            },
        }

    async def _write(self, method: str, path: str, record: dict[str, Any]) -> bool:
        try:
            await self._api.send(method, path, record)
        except ApiError as error:
            if error.status == _CONFLICT:
                # Someone else wrote first: look again next time.
                return False
            raise
        return True


def _now() -> str:
    return wall_clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class AlwaysLeader:
    """Leadership without a lease, for a single replica and for trials."""

    identity = "single"
    term = 1

    @staticmethod
    def is_held() -> bool:
        """Always."""
        return True

    async def run(self) -> None:
        """Nothing to keep."""

    async def release(self) -> None:
        """Nothing to give back."""
