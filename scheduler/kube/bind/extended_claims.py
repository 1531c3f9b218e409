"""Makes the claim that stands for the extended resources of a pod, and takes it back if the bind comes to nothing.

The claim is made with the finalizer, so that this needs no write of its own. Its name follows from the pod: a claim whose
making was not answered is found again. Then the pod's status says which request serves which container; the kubelet
reads it there.

Source: kube-scheduler 1.37.1, dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from scheduler.api import kinds, names
from scheduler.api.claims import extended, objects
from scheduler.api.claims.answers import Allotment
from scheduler.api.claims.objects import ClaimSpec, ResourceClaim
from scheduler.api.claims.requests import ClaimShapes
from scheduler.errors import ApiError
from scheduler.kube import answers, claim_deletion, pod_status
from scheduler.kube.bind.jobs import Impossible, Job
from scheduler.kube.client import ApiClient
from scheduler.state.claims.objects import Claim, read_claim

Json = dict[str, Any]
_decoder = msgspec.json.Decoder(ResourceClaim)
_STATUS = "extendedResourceClaimStatus"
_TRIES = 3


class ExtendedResourceClaims:
    """Writes such claims. ``check`` raises an error where nothing may be written any more."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._shapes = ClaimShapes()

    async def make(self, job: Job, one: Allotment, check: Callable[[], None]) -> Claim:
        """Make the claim of a pod, or find the one that an earlier try has made, and return it.

        Raises:
            ApiError: the API server refused.
            Impossible: there is such a claim of another try, which requests something else; it is deleted.
        """
        namespace, name = job.pod.namespace, extended.make_name(job.pod.name, job.uid)[0]
        job.made_claims[one.key] = namespace, name
        check()
        path = kinds.RESOURCE_CLAIMS.find_list_path(namespace)
        try:
            answer = await self._api.send("POST", path, _write_claim(job, one))
        except ApiError as error:
            if not answers.is_there_already(error):
                text = f"create claim for extended resources {namespace}/{name}: {error.message}"
                raise ApiError(error.status, error.reason, text) from error
            claim = await self._find_again(job, one)
        else:
            claim = self._read(answer)
        job.claim_versions[one.key] = claim.version
        return claim

    async def _find_again(self, job: Job, one: Allotment) -> Claim:
        claim = await self._get(job, one)
        requests = msgspec.json.decode(one.made)["requests"]
        if claim is not None and not claim.is_deleting:
            spec = msgspec.convert({"devices": {"requests": requests}}, type=ClaimSpec)
            if claim.shape is self._shapes.get_shape(spec):
                return claim
            await _delete(self._api, claim)
        raise Impossible(f"claim {'/'.join(job.made_claims[one.key])} of an earlier try is there")

    async def tell_pod(self, job: Job, one: Allotment, check: Callable[[], None]) -> None:
        """Say in the pod's status which request of the claim serves which container.

        Raises:
            ApiError: the API server refused.
        """
        check()
        mappings = msgspec.json.decode(one.made)["requestMappings"]
        name = job.made_claims[one.key][1]
        job.pod_version = await pod_status.patch_status(
            self._api,
            job.pod,
            {_STATUS: {"requestMappings": mappings, "resourceClaimName": name}},
        )

    async def take_back(self, job: Job, one: Allotment) -> None:
        """Delete the claim of a pod. Its name stays in the pod's status, from which the API server removes nothing.

        Raises:
            ApiError: the API server refused.
        """
        if one.key not in job.made_claims:
            return
        for attempt in range(_TRIES):
            claim = await self._get(job, one)
            if claim is None:
                break
            try:
                await _delete(self._api, claim)
            except ApiError as error:
                if not answers.is_conflict(error) or attempt == _TRIES - 1:
                    raise
            else:
                break
        # It holds nothing any more, whatever was seen of it.
        job.claim_versions.pop(one.key, None)

    async def _get(self, job: Job, one: Allotment) -> Claim | None:
        """Read the claim again; None if there is none that was made for the pod."""
        namespace, name = job.made_claims[one.key]
        try:
            answer = await self._api.send("GET", kinds.RESOURCE_CLAIMS.find_path(name, namespace), None)  # fmt: skip
        except ApiError as error:
            if answers.is_not_found(error):
                return None
            raise
        claim = self._read(answer)
        return claim if claim.made is not None and claim.uid == job.uid else None

    def _read(self, answer: bytes) -> Claim:
        return read_claim(_decoder.decode(answer), self._shapes)


async def _delete(api: ApiClient, claim: Claim) -> None:
    await claim_deletion.delete_claim(api, claim.path_key, claim.object_uid, claim.version)


def _write_claim(job: Job, one: Allotment) -> Json:
    name, base = extended.make_name(job.pod.name, job.uid)
    owner = {
        "apiVersion": kinds.PODS.api_version,
        "kind": kinds.PODS.name,
        "name": job.pod.name,
        "uid": job.uid,
        "controller": True,
    }
    meta = {
        "name": name,
        "generateName": base,
        "annotations": {names.EXTENDED_CLAIM: "true"},
        "ownerReferences": [owner],
        "finalizers": [objects.FINALIZER],
    }
    return {
        "metadata": meta,
        "spec": {"devices": {"requests": msgspec.json.decode(one.made)["requests"]}},
    }
