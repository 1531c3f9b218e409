"""Deletes claims that were made for the extended resources of pods."""

from __future__ import annotations

from typing import Any

from scheduler.api import kinds
from scheduler.api.claims.answers import ClaimKey
from scheduler.api.claims.objects import FINALIZER
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient


async def delete_claim(api: ApiClient, key: ClaimKey, uid: str, version: str) -> None:
    """Delete a claim, by namespace and name, whose finalizer would keep it as long as it is allocated.

    Raises:
        ApiError: the API server refused. That the claim is gone already is no error.
    """
    path = kinds.RESOURCE_CLAIMS.find_path(key[1], key[0])
    meta: dict[str, Any] = {"uid": uid, "resourceVersion": version}
    meta["$deleteFromPrimitiveList/finalizers"] = [FINALIZER]
    try:
        await api.send("PATCH", path, {"metadata": meta}, content_type=client.STRATEGIC_PATCH)
        await api.send("DELETE", path, {"preconditions": {"uid": uid}})
    except ApiError as error:
        if not answers.is_not_found(error):
            raise
