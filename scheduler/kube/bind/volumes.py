"""What is written before a bind for claims that are not bound: which volume is whose, or for which node to make one.

A decision may be old when its turn comes: it is written only if what is known by now allows it still, and each write
carries the version of what it changes as it is known, so none lands on another state. ``volume_waits`` knows when the
claims have what they were given.

Source: kube-scheduler's volumebinding/binder.go, bindAPIUpdate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from scheduler.api import kinds, names
from scheduler.api.storage import Given
from scheduler.errors import ApiError
from scheduler.kube import client, pod_status
from scheduler.kube.bind.jobs import (
    Answer,
    Done,
    GiveBack,
    Impossible,
    Job,
    Start,
    Waits,
)
from scheduler.kube.bind.volume_waits import Claims, ClusterLookups, GivenClaim
from scheduler.kube.client import ApiClient
from scheduler.plugins.volumes import choosing
from scheduler.state.volumes.objects import Claim, Volume

Json = dict[str, Any]
_log = structlog.get_logger("evenkeel.binder")


class _ClaimMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Written(msgspec.Struct):
    metadata: _ClaimMeta


_written = msgspec.json.Decoder(_Written)


class VolumeClaims:
    """The step that binds the claims of a pod.

    Args:
        api: the API server.
        known: what is known of claims and volumes.
    """

    name = "volume claims"
    is_in_turn = False
    # A volume that was given to a claim stays its own, and whoever is to bind them goes on.
    is_final = True

    def __init__(self, api: ApiClient, known: ClusterLookups) -> None:
        self._api, self._known = api, known
        self.waiting = Claims(known)

    def concerns(self, job: Job) -> bool:
        """Whether claims of the pod are to be bound."""
        return bool(job.bind.given)

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Write what the claims are given, and wait until they have it.

        Raises:
            ApiError: as ``_write``.
            Impossible: they cannot have it any more.
        """
        asked = await self._write(job, may_write)
        match self.waiting.begun(job, asked, asyncio.get_running_loop().time()):
            case [GiveBack(_, why)]:
                raise Impossible(why)
            case [Start()]:
                return Done()
        return Waits(", ".join(one.claim for one in job.bind.given))

    async def undo(self, job: Job) -> None:
        """Nothing: it is final."""

    async def _write(self, job: Job, may_write: Callable[[], bool]) -> tuple[GivenClaim, ...]:
        """Write all that a job's claims are given; volumes first, as kube-scheduler does.

        As that may take long, the pod is nominated before: an autoscaler makes no node for it meanwhile.
        ``may_write`` is asked before every write.

        Raises:
            ApiError: something is gone or has changed meanwhile, or the API server refused, or it may not be written.
        """
        if job.pod.nominated != job.node and may_write():
            try:
                await pod_status.nominate(self._api, job.pod, job.node)
            except ApiError as error:
                _log.warning("a nomination was not written", pod=job.pod.key, error=str(error))
        volumes_first = sorted(job.bind.given, key=lambda one: not one.volume)
        return tuple([await self._give(job, given, may_write) for given in volumes_first])

    async def _give(self, job: Job, given: Given, may_write: Callable[[], bool]) -> GivenClaim:
        key = (job.pod.namespace, given.claim)
        claim = self._known.claim(key)
        if claim is None:
            raise _gone(f'PVC "{given.claim}"')
        path = kinds.CLAIMS.find_path(key[1], key[0])
        body, version = _selected(claim, job.node), claim.version
        volume = self._known.volume(given.volume)
        if given.volume:
            if volume is None:
                raise _gone(f'PV "{given.volume}"')
            path = kinds.VOLUMES.find_path(given.volume)
            body, version = _claimed(volume, claim), volume.version
        if body is not None:
            _check(claim, volume)
            if not may_write():
                raise ApiError(0, "NotLeading", "no longer the leader")
            answer = await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
            version = _written.decode(answer).metadata.resource_version
        return GivenClaim(key, given.volume, version)


def _selected(claim: Claim, node: str) -> Json | None:
    """What is to be written on a claim for which a volume is to be made; None when it is there already."""
    if claim.selected == node:
        return None
    notes = {names.SELECTED_NODE: node}
    return {"metadata": {"uid": claim.uid, "resourceVersion": claim.version, "annotations": notes}}


def _claimed(volume: Volume, claim: Claim) -> Json | None:
    """What is to be written on a volume; None when it names the claim already."""
    if volume.claim == (*claim.key, claim.uid):
        return None
    metadata: Json = {"resourceVersion": volume.version}
    if not volume.is_for(claim):
        # What a person has bound stays so when the claim goes; this does not.
        metadata["annotations"] = {names.BOUND_BY_CONTROLLER: "yes"}
    reference = {
        "apiVersion": kinds.CLAIMS.api_version,
        "kind": kinds.CLAIMS.name,
        "namespace": claim.key[0],
        "name": claim.key[1],
        "uid": claim.uid,
        "resourceVersion": claim.version,
    }
    return {"metadata": metadata, "spec": {"claimRef": reference}}


def _check(claim: Claim, volume: Volume | None) -> None:
    """Whether a claim may be given a volume, None for one that is to be made.

    Raises:
        ApiError: somebody else has decided otherwise meanwhile.
    """
    if claim.volume not in {"", volume.name if volume else ""}:
        raise ApiError(
            0, "Conflict", f'binding volumes: PVC "{claim.key[1]}" has another volume now'
        )
    if volume is None:
        if claim.selected is not None:
            text = f'PVC "{claim.key[1]}" is now provisioned for node "{claim.selected}"'
            raise ApiError(0, "Conflict", f"binding volumes: {text}")
        return
    could = choosing.has_properties if volume.is_for(claim) else choosing.suits
    is_left = volume.is_free or volume.is_for(claim)
    if not (is_left and could(claim.wish, volume)):
        text = f'PV "{volume.name}" is not for PVC "{claim.key[1]}" any more'
        raise ApiError(0, "Conflict", f"binding volumes: {text}")


def _gone(what: str) -> ApiError:
    return ApiError(0, "Gone", f"binding volumes: {what} is gone")
