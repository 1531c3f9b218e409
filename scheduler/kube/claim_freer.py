"""Takes the devices from claims with which their pods fit nowhere, and deletes claims that binds have left."""

from __future__ import annotations

import asyncio

import structlog

from scheduler.api import kinds
from scheduler.api.door.decisions import Free
from scheduler.errors import ApiError
from scheduler.kube import answers, claim_deletion, client
from scheduler.kube.client import ApiClient

_TRIES = 10
_log = structlog.get_logger("evenkeel.claims")


class ClaimFreer:
    """Writes, one claim after the other, that claims have no devices; a write that fails is decided anew.

    That a claim is to be deleted is decided once for each of its states, so it is tried again while the API server is in
    trouble.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._waiting: dict[str, Free] = {}
        self._task: asyncio.Task[None] | None = None

    def free(self, claim: Free) -> None:
        """Take the devices from a claim, or delete it, unless that is under way."""
        self._waiting[claim.uid] = claim
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        attempts: dict[str, int] = {}
        while self._waiting:
            uid = next(iter(self._waiting))
            claim, again = self._waiting[uid], False
            try:
                await self._write(claim)
            except ApiError as error:
                _log.info("a claim was not freed", claim="/".join(claim.key), error=str(error))
                attempt = attempts[uid] = attempts.get(uid, 0) + 1
                again = claim.deletes and answers.is_transient(error) and attempt < _TRIES
                await asyncio.sleep(client.get_backoff(attempt) if again else 0)
            finally:
                if not again:
                    self._waiting.pop(uid, None)

    async def _write(self, claim: Free) -> None:
        namespace, name = claim.key
        if claim.deletes:
            await claim_deletion.delete_claim(self._api, claim.key, claim.uid, claim.version)
            return
        body = {
            "metadata": {"uid": claim.uid, "resourceVersion": claim.version},
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        }
        path = kinds.RESOURCE_CLAIMS.find_path(name, namespace)
        await self._api.send("PATCH", f"{path}/status", body, content_type=client.MERGE_PATCH)
