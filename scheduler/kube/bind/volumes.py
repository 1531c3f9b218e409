"""What is written before a bind for volume claims that are not bound: a volume for the claim, or the node for a new one.

A decision may be old when its turn comes. It is written only if what is known by then still allows it, and each write
carries the known version of the object that it changes, so that no write lands on another state. ``volume_waits`` knows
when the claims have what they were given.

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
from scheduler.kube.bind.volume_waits import ClaimWaits, ClusterLookups, GivenClaim
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
    """The step that binds the volume claims of a pod.

    Args:
        api: the API server.
        known: looks up claims and volumes.
    """

    name = "volume claims"
    is_in_turn = False
    # A volume that was given to a claim stays with it, and Kubernetes goes on with binding the two.
    is_final = True

    def __init__(self, api: ApiClient, known: ClusterLookups) -> None:
        self._api, self._known = api, known
        self.waiting = ClaimWaits(known)

    def is_needed_by(self, job: Job) -> bool:
        """Whether volume claims of the pod are to be bound."""
        return bool(job.bind.given)

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Write what the claims are given, and wait until they have it.

        Raises:
            ApiError: as ``_write_given``.
            Impossible: the claims cannot have it any more.
        """
        given = await self._write_given(job, may_write)
        match self.waiting.begin_waiting(job, given, asyncio.get_running_loop().time()):
            case [GiveBack(_, why)]:
                raise Impossible(why)
            case [Start()]:
                return Done()
        return Waits(", ".join(one.claim for one in job.bind.given))

    async def undo(self, job: Job) -> None:
        """Undo nothing: the step is final."""

    async def _write_given(self, job: Job, may_write: Callable[[], bool]) -> tuple[GivenClaim, ...]:
        """Write all that a job's claims are given; volumes first, as kube-scheduler does.

        That may take long, so the pod is nominated before: then an autoscaler makes no node for the pod meanwhile.
        ``may_write`` is called before every write.

        Raises:
            ApiError: an object is gone or has changed meanwhile, the API server refused, or nothing may be written.
        """
        if job.pod.nominated != job.node and may_write():
            try:
                await pod_status.write_nomination(self._api, job.pod, job.node)
            except ApiError as error:
                _log.warning("a nomination was not written", pod=job.pod.key, error=str(error))
        volumes_first = sorted(job.bind.given, key=lambda one: not one.volume)
        return tuple([await self._give_claim(job, given, may_write) for given in volumes_first])

    async def _give_claim(
        self, job: Job, given: Given, may_write: Callable[[], bool]
    ) -> GivenClaim:
        key = (job.pod.namespace, given.claim)
        claim = self._known.get_claim(key)
        if claim is None:
            raise _make_gone_error(f'PVC "{given.claim}"')
        path = kinds.CLAIMS.find_path(key[1], key[0])
        body, version = _make_selection(claim, job.node), claim.version
        volume = self._known.get_volume(given.volume)
        if given.volume:
            if volume is None:
                raise _make_gone_error(f'PV "{given.volume}"')
            path = kinds.VOLUMES.find_path(given.volume)
            body, version = _make_claim_reference(volume, claim), volume.version
        if body is not None:
            _check_claim(claim, volume)
            if not may_write():
                raise ApiError(0, "NotLeading", "no longer the leader")
            answer = await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
            version = _written.decode(answer).metadata.resource_version
        return GivenClaim(key, given.volume, version)


def _make_selection(claim: Claim, node: str) -> Json | None:
    """Return what to write on a claim for which a volume is to be made; None if the claim has it already."""
    if claim.selected == node:
        return None
    notes = {names.SELECTED_NODE: node}
    return {"metadata": {"uid": claim.uid, "resourceVersion": claim.version, "annotations": notes}}


def _make_claim_reference(volume: Volume, claim: Claim) -> Json | None:
    """Return what to write on a volume; None if the volume names the claim already."""
    if volume.claim == (*claim.key, claim.uid):
        return None
    metadata: Json = {"resourceVersion": volume.version}
    if not volume.is_for(claim):
        # A volume that a person has bound stays bound when the claim goes; this one does not.
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


def _check_claim(claim: Claim, volume: Volume | None) -> None:
    """Check that a claim may be given a volume; None is a volume that is to be made.

    Raises:
        ApiError: another decision was made meanwhile.
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
    is_fit = choosing.has_properties if volume.is_for(claim) else choosing.suits
    is_left = volume.is_free or volume.is_for(claim)
    if not (is_left and is_fit(claim.wish, volume)):
        text = f'PV "{volume.name}" is not for PVC "{claim.key[1]}" any more'
        raise ApiError(0, "Conflict", f"binding volumes: {text}")


def _make_gone_error(what: str) -> ApiError:
    return ApiError(0, "Gone", f"binding volumes: {what} is gone")
