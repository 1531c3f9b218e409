"""Carry out plans: ``async with controllers.run(url):`` makes workloads work on an API server.

One worker handles one workload at a time, and waits until the watch has told of what it wrote
before it looks again: nothing is made twice for want of news.
"""

import asyncio
import ssl as tls
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from scheduler.embedded.agents.apiclient import CallError, Client
from scheduler.embedded.agents.workloads import (
    cache,
    deployments,
    jobs,
    naming,
    plans,
    replicasets,
    statefulsets,
)
from scheduler.embedded.agents.workloads.cache import Cache
from scheduler.embedded.store.metadata import new_uid, timestamp

Json = dict[str, Any]

# What nothing here runs, by resource, and why; for an API server that would else take it in.
NOT_RUN = {
    f"{plural}{group}": f"nothing in this cluster runs a {kind}; Deployment, ReplicaSet, StatefulSet and Job are run"
    for kind, plural, group in (
        ("DaemonSet", "daemonsets", ".apps"),
        ("CronJob", "cronjobs", ".batch"),
        ("ReplicationController", "replicationcontrollers", ""),
    )
}

_RETRY_SECONDS = 1.0
# News of many pods come within moments of each other, and are looked at once.
_GATHER_SECONDS = 0.02
_TEXT_BYTES = 1000


@asynccontextmanager
async def run(
    url: str, *, token: str | None = None, ssl: tls.SSLContext | None = None
) -> AsyncIterator[None]:
    """Run the controllers of workloads against an API server.

    Raises:
        Exception: what ended one of the controllers' tasks, at the end.
    """
    client = Client(url, token, ssl)
    known = Cache(client)
    controllers = Controllers(client, known)
    try:
        await known.prime()
        tasks = [asyncio.create_task(known.follow(kind)) for kind in cache.KINDS]
        tasks.append(asyncio.create_task(controllers.work()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception):
                    raise result
    finally:
        await client.close()


class Controllers:
    """The worker: looks at every workload to which something happened."""

    def __init__(self, client: Client, known: Cache) -> None:
        self._client = client
        self._known = known
        # By uid of the workload: why its last pods could not be made, its Job's ended pods, and
        # the last event of each reason.
        self._failed: dict[str, list[plans.Note]] = {}
        self._ended: dict[str, jobs.Ended] = {}
        self._said: dict[str, dict[str, str]] = {}

    async def work(self) -> None:
        """Look at what changed, for ever."""
        loop = asyncio.get_running_loop()
        known = self._known
        while True:
            while not known.changed:
                known.news.clear()
                await known.news.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            changed, known.changed = known.changed, set()
            for uid in sorted(changed):
                try:
                    again = not await self._look(uid)
                except (CallError, aiohttp.ClientError):
                    # Someone else was faster, most likely; a new look tells.
                    again = True
                if again:
                    loop.call_later(_RETRY_SECONDS, self._remember, uid)

    def _remember(self, uid: str) -> None:
        self._known.changed.add(uid)
        self._known.news.set()

    async def _look(self, uid: str) -> bool:
        """Do what one workload needs; return whether all of it could be done."""
        found = self._known.find(uid)
        owned = self._known.owned_by(uid)
        if found is None:
            for records in (self._failed, self._ended, self._said):
                records.pop(uid, None)
            return await self._collect(owned)
        kind, owner = found
        if kind == "Pod":
            return True
        try:
            plan = self._plan(kind, owner, [item for _, item in owned])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"{kind} cannot be read: {type(error).__name__}: {error}"
            await self._tell(kind, owner, [plans.Note("Unreadable", text, "Warning")])
            return True
        return await self._carry_out(kind, owner, plan)

    def _plan(self, kind: str, owner: Json, owned: Sequence[Json]) -> plans.Plan:
        uid, now = owner["metadata"]["uid"], timestamp()
        failed = self._failed.get(uid, ())
        match kind:
            case "Deployment":
                return deployments.plan(owner, owned, now)
            case "ReplicaSet":
                return replicasets.plan(owner, owned, now, failed)
            case "StatefulSet":
                return statefulsets.plan(owner, owned, now, failed)
            case _:
                ended = self._ended.setdefault(uid, jobs.Ended())
                return jobs.plan(owner, owned, now, ended, failed)

    async def _carry_out(self, kind: str, owner: Json, plan: plans.Plan) -> bool:
        uid = owner["metadata"]["uid"]
        child = "ReplicaSet" if kind == "Deployment" else "Pod"
        newest = 0
        failed: list[plans.Note] = []
        # A name may be that of an object which is about to go: worth telling when it stays taken.
        told = bool(self._failed.get(uid))
        for manifest in plan.create:
            try:
                made = await self._client.post(
                    cache.collection(child, owner["metadata"]["namespace"]), manifest
                )
            except CallError as error:
                # The others would be refused for the same reason.
                failed = [plans.Note("FailedCreate", f"Error creating: {error}", "Warning")]
                told |= error.code != 409
                break
            newest = _version(made)
        for item in plan.delete:
            newest = max(newest, await self._delete(child, item))
        for item, patch in plan.merge:
            newest = max(newest, _version(await self._client.patch(cache.path(child, item), patch)))
        if plan.own is not None:
            await self._client.patch(cache.path(kind, owner), plan.own)
        if plan.status != owner.get("status"):
            body = {"metadata": {"uid": uid}, "status": plan.status}
            await self._client.patch(f"{cache.path(kind, owner)}/status", body)
        await self._tell(kind, owner, [*plan.notes, *(failed if told else ())])
        self._failed[uid] = failed
        await self._known.until_seen(child, newest)
        return not failed

    async def _collect(self, owned: Sequence[tuple[str, Json]]) -> bool:
        """Delete what belonged to an owner that is gone; return whether the owner is gone."""
        for kind, item in owned:
            reference = naming.controller_of(item)
            if await self._exists(reference, item["metadata"]["namespace"]):
                return reference["kind"] not in cache.KINDS
            if not plans.going(item):
                await self._delete(kind, item)
        return True

    async def _exists(self, reference: Json, namespace: str) -> bool:
        """Tell whether an owner is there; of one that nothing here runs, it is not judged."""
        if reference["kind"] not in cache.KINDS:
            return True
        named = {"metadata": {"namespace": namespace, "name": reference["name"]}}
        try:
            found = await self._client.get(cache.path(reference["kind"], named))
        except CallError as error:
            if error.code != 404:
                raise
            return False
        return bool(found["metadata"]["uid"] == reference["uid"])

    async def _delete(self, kind: str, item: Json) -> int:
        """Delete an object unless it is another by now; return the version of the mark, if it has one."""
        body = {"preconditions": {"uid": item["metadata"]["uid"]}}
        try:
            return _version(await self._client.delete(cache.path(kind, item), body))
        except CallError as error:
            if error.code not in {404, 409}:
                raise
            return 0

    async def _tell(self, kind: str, owner: Json, notes: Sequence[plans.Note]) -> None:
        meta = owner["metadata"]
        said = self._said.setdefault(meta["uid"], {})
        for note in notes:
            message = note.message[:_TEXT_BYTES]
            if said.get(note.reason) == message:
                continue
            said[note.reason] = message
            now = timestamp()
            event = {
                "metadata": {
                    "name": f"{meta['name']}.{new_uid()[:16]}",
                    "namespace": meta["namespace"],
                },
                "involvedObject": {
                    "apiVersion": cache.KINDS[kind][0],
                    "kind": kind,
                    "name": meta["name"],
                    "namespace": meta["namespace"],
                    "uid": meta["uid"],
                },
                "reason": note.reason,
                "message": message,
                "type": note.type,
                "source": {"component": f"{kind.lower()}-controller"},
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            }
            try:
                await self._client.post(f"/api/v1/namespaces/{meta['namespace']}/events", event)
            except CallError:
                # A namespace that is going takes no events any more.
                continue


def _version(item: Json) -> int:
    return int((item.get("metadata") or {}).get("resourceVersion") or 0)
