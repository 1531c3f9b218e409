"""What is written before a bind for ResourceClaims: their devices, and that the pod may use them.

A claim gets a finalizer first, so that it cannot go while it is allocated. Then one write of its status has both the devices
and the pod among those that may use them. Each write carries the known version of the claim, so no write lands on another
state. If the API server says that the claim has changed, it is read again once.

Source: kube-scheduler 1.37.1, dynamicresources.go, bindClaim and Unreserve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from scheduler.api import kinds
from scheduler.api.claims.answers import Allotment, ClaimKey
from scheduler.api.claims.objects import FINALIZER, ResourceClaim
from scheduler.api.claims.requests import ClaimShapes
from scheduler.api.times import write_time
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.bind.claim_waits import ClaimLookups, ReadyWaits
from scheduler.kube.bind.extended_claims import ExtendedResourceClaims
from scheduler.kube.bind.jobs import Answer, Done, GiveBack, Impossible, Job, Start, Waits
from scheduler.kube.client import ApiClient
from scheduler.state.claims.objects import Claim, read_claim

Json = dict[str, Any]
_decoder = msgspec.json.Decoder(ResourceClaim)
# So often a claim is read again because it has changed.
_TRIES = 3


class ResourceClaims:
    """The step that allocates the claims of a pod and reserves them for it.

    Args:
        api: the API server.
        known: looks up claims.
        clock: the wall clock, in seconds since 1970.
    """

    name = "resource claims"
    is_in_turn = False
    is_final = False

    def __init__(self, api: ApiClient, known: ClaimLookups, clock: Callable[[], float]) -> None:
        self._api, self._known, self._clock = api, known, clock
        self._shapes = ClaimShapes()
        self._extended = ExtendedResourceClaims(api)
        self.waiting = ReadyWaits(known)

    def is_needed_by(self, job: Job) -> bool:
        """Whether the pod has claims."""
        return bool(job.bind.allotted)

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Write what the claims get, and wait until their devices are ready, where these have to get ready first.

        Raises:
            ApiError: the API server refused.
            Impossible: a claim is gone, or got other devices meanwhile.
        """
        # All writes end before one that failed is reported: none lands after what was written is undone.
        found = await asyncio.gather(
            *(self._give_claim(job, one, may_write) for one in job.bind.allotted),
            return_exceptions=True,
        )
        for one in found:
            if isinstance(one, BaseException):
                raise one
        written = [one for one in found if isinstance(one, Claim)]
        if not any(one.is_late or one.failure for one in written):
            return Done()
        match self.waiting.begin_waiting(job, asyncio.get_running_loop().time()):
            case [GiveBack(_, why)]:
                raise Impossible(why)
            case [Start()]:
                return Done()
        return Waits("the devices of its resource claims")

    async def undo(self, job: Job) -> None:
        """Take the pod from those that may use its claims; claims that were allocated for it alone have nothing any more.

        A claim that was made for it is deleted.

        Raises:
            ApiError: that failed for some claims; those of the others are undone.
        """
        problem: ApiError | None = None
        for one in job.bind.allotted if job.claim_versions or job.made_claims else ():
            try:
                if one.made:
                    await self._extended.take_back(job, one)
                else:
                    await self._undo_claim(job, one)
            except ApiError as error:
                problem = error
        if problem is not None:
            raise problem

    async def _undo_claim(self, job: Job, one: Allotment) -> None:
        for attempt in range(_TRIES):
            claim = await self._read_claim(one.key)
            job.claim_versions[one.key] = claim.version if claim is not None else ""
            if claim is None or claim.uid != one.uid or job.uid not in claim.reserved:
                # What is reserved for a group stays: others of its pods may need it.
                return
            status: Json = {"reservedFor": [{"$patch": "delete", "uid": job.uid}]}
            if one.is_new and claim.reserved == {job.uid}:
                status = {"allocation": None, "reservedFor": None, "devices": None}
            job.claim_versions[one.key] = ""
            try:
                after = await self._patch_status(claim, status)
            except ApiError as error:
                if not answers.is_conflict(error) or attempt == _TRIES - 1:
                    raise
            else:
                job.claim_versions[one.key] = after.version
                return

    async def _give_claim(self, job: Job, one: Allotment, may_write: Callable[[], bool]) -> Claim:
        if not one.made:
            return await self._allocate(job, one, self._known.get_claim(one.key), may_write)

        def check() -> None:
            self._check(may_write)

        made = await self._extended.make(job, one, check)
        claim = await self._allocate(job, one, made, may_write)
        await self._extended.tell_pod(job, one, check)
        return claim

    async def _allocate(
        self, job: Job, one: Allotment, claim: Claim | None, may_write: Callable[[], bool]
    ) -> Claim:
        key = job.made_claims.get(one.key, one.key)
        for attempt in range(_TRIES):
            if claim is None or claim.uid != one.uid or claim.is_deleting:
                raise Impossible(f"claim {_join(key)} got deleted in the meantime")
            try:
                written = await self._write_claim(job, one, claim, may_write)
            except ApiError as error:
                if not answers.is_conflict(error) or attempt == _TRIES - 1:
                    raise
            else:
                job.claim_versions[one.key] = written.version
                return written
            claim = await self._read_claim(key)
        raise AssertionError

    async def _write_claim(
        self, job: Job, one: Allotment, claim: Claim, may_write: Callable[[], bool]
    ) -> Claim:
        """Write a claim, if it is still as it was when its devices were chosen."""
        if claim.given is not None and one.is_new and claim.given != one.given:
            raise Impossible(
                f"claim {_join(claim.path_key)} got allocated elsewhere in the meantime"
            )
        if claim.given is None and not one.is_new:
            raise Impossible(f"claim {_join(one.key)} got deallocated elsewhere in the meantime")
        consumer = _make_consumer(job, one)
        if claim.given is not None and not claim.reserved.isdisjoint({job.uid, consumer["uid"]}):
            return claim
        # Until there is an answer, the claim may have been written or not.
        job.claim_versions[one.key] = ""
        status: Json = {"reservedFor": [consumer]}
        if claim.given is None:
            if not claim.is_guarded:
                self._check(may_write)
                claim = await self._guard_claim(claim)
            allocation = msgspec.json.decode(one.allocation)
            allocation["allocationTimestamp"] = write_time(self._clock())
            status["allocation"] = allocation
        self._check(may_write)
        return await self._patch_status(claim, status)

    @staticmethod
    def _check(may_write: Callable[[], bool]) -> None:
        if not may_write():
            raise ApiError(0, "NotLeading", "no longer the leader")

    async def _guard_claim(self, claim: Claim) -> Claim:
        """Give a claim the finalizer, and return it as it is then."""
        meta = _make_meta(claim) | {"finalizers": [FINALIZER]}
        return await self._patch(_find_path(claim.path_key), {"metadata": meta})

    async def _patch_status(self, claim: Claim, status: Json) -> Claim:
        body = {"metadata": _make_meta(claim), "status": status}
        return await self._patch(f"{_find_path(claim.path_key)}/status", body)

    async def _patch(self, path: str, body: Json) -> Claim:
        answer = await self._api.send("PATCH", path, body, content_type=client.STRATEGIC_PATCH)
        return read_claim(_decoder.decode(answer), self._shapes)

    async def _read_claim(self, key: ClaimKey) -> Claim | None:
        try:
            answer = await self._api.send("GET", _find_path(key), None)
        except ApiError as error:
            if answers.is_not_found(error):
                return None
            raise
        return read_claim(_decoder.decode(answer), self._shapes)


def _make_consumer(job: Job, one: Allotment) -> dict[str, str]:
    """Make what ``reservedFor`` says of a pod, or of its group, if the claim is the group's."""
    if one.group is None:
        return {"resource": kinds.PODS.plural, "name": job.pod.name, "uid": job.uid}
    name, uid = one.group
    of = kinds.POD_GROUPS
    return {"apiGroup": of.group, "resource": of.plural, "name": name, "uid": uid}


def _make_meta(claim: Claim) -> Json:
    return {"uid": claim.object_uid, "resourceVersion": claim.version}


def _find_path(key: ClaimKey) -> str:
    return kinds.RESOURCE_CLAIMS.find_path(key[1], key[0])


def _join(key: ClaimKey) -> str:
    return "/".join(key)
