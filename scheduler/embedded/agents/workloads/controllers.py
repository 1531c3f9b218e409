"""Carries out plans: ``async with controllers.run(url):`` makes workloads work on an API server.

One worker handles one workload at a time, and waits until the watch has reported what it wrote
before it looks again: so nothing is made twice because of late news.
"""

import asyncio
import ssl as tls
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from scheduler.embedded.agents.apiclient import CallError, Client
from scheduler.embedded.agents.tasks import keep_running
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
from scheduler.embedded.store.metadata import make_uid, write_timestamp

Json = dict[str, Any]

# The resources that nothing here runs, and why: an API server without this would accept their objects.
NOT_RUN = {
    f"{plural}{group}": f"nothing in this cluster runs a {kind}; Deployment, ReplicaSet, StatefulSet and Job are run"
    for kind, plural, group in (
        ("DaemonSet", "daemonsets", ".apps"),
        ("CronJob", "cronjobs", ".batch"),
        ("ReplicationController", "replicationcontrollers", ""),
    )
}

_RETRY_SECONDS = 1.0
# News of many pods arrive almost together, and need only one look.
_GATHER_SECONDS = 0.02
_TEXT_BYTES = 1000


@asynccontextmanager
async def run(
    url: str, *, token: str | None = None, ssl: tls.SSLContext | None = None
) -> AsyncIterator[None]:
    """Run the controllers of workloads against an API server.

    Raises:
        Exception: at the end: the error that ended one of the controllers' tasks.
    """
    client = Client(url, token, ssl)
    known = Cache(client)
    controllers = Controllers(client, known)
    try:
        await known.prime()
        work = [known.follow(kind) for kind in cache.KINDS]
        async with keep_running([*work, controllers.work()]):
            yield
    finally:
        await client.close()


class Controllers:
    """The worker: looks at every workload whose objects changed."""

    def __init__(self, client: Client, known: Cache) -> None:
        self._client = client
        self._known = known
        # By uid of the workload: why its last pods could not be made, the ended pods of a Job, and
        # the last event of each reason.
        self._failed: dict[str, list[plans.Note]] = {}
        self._ended: dict[str, jobs.Ended] = {}
        self._said: dict[str, dict[str, str]] = {}

    async def work(self) -> None:
        """Look at workloads that changed, for ever."""
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
                    # Another client was faster, most likely; a new look shows it.
                    again = True
                if again:
                    loop.call_later(_RETRY_SECONDS, self._remember, uid)

    def _remember(self, uid: str) -> None:
        self._known.changed.add(uid)
        self._known.news.set()

    async def _look(self, uid: str) -> bool:
        """Do what one workload needs; return whether everything could be done."""
        found = self._known.find(uid)
        owned = self._known.list_owned(uid)
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
        uid, now = owner["metadata"]["uid"], write_timestamp()
        failed = self._failed.get(uid, ())
        match kind:
            case "Deployment":
                return deployments.make_plan(owner, owned, now)
            case "ReplicaSet":
                return replicasets.make_plan(owner, owned, now, failed)
            case "StatefulSet":
                return statefulsets.make_plan(owner, owned, now, failed)
            case _:
                ended = self._ended.setdefault(uid, jobs.Ended())
                return jobs.make_plan(owner, owned, now, ended, failed)

    async def _carry_out(self, kind: str, owner: Json, plan: plans.Plan) -> bool:
        uid = owner["metadata"]["uid"]
        child = "ReplicaSet" if kind == "Deployment" else "Pod"
        newest = 0
        failed: list[plans.Note] = []
        # The object that has the name may be about to go: the failure is reported only if it comes again.
        told = bool(self._failed.get(uid))
        for manifest in plan.create:
            try:
                made = await self._client.post(
                    cache.make_list_path(child, owner["metadata"]["namespace"]), manifest
                )
            except CallError as error:
                # Other pods would be refused for the same reason.
                failed = [plans.Note("FailedCreate", f"Error creating: {error}", "Warning")]
                told |= error.code != 409
                break
            newest = _read_version(made)
        for item in plan.delete:
            newest = max(newest, await self._delete(child, item))
        for item, patch in plan.merge:
            newest = max(
                newest, _read_version(await self._client.patch(cache.make_path(child, item), patch))
            )
        if plan.own is not None:
            await self._client.patch(cache.make_path(kind, owner), plan.own)
        if plan.status != owner.get("status"):
            body = {"metadata": {"uid": uid}, "status": plan.status}
            await self._client.patch(f"{cache.make_path(kind, owner)}/status", body)
        await self._tell(kind, owner, [*plan.notes, *(failed if told else ())])
        self._failed[uid] = failed
        await self._known.wait_until_seen(child, newest)
        return not failed

    async def _collect(self, owned: Sequence[tuple[str, Json]]) -> bool:
        """Delete the objects of an owner that is gone; return whether the owner is gone."""
        for kind, item in owned:
            reference = naming.find_controller(item)
            if await self._exists(reference, item["metadata"]["namespace"]):
                return reference["kind"] not in cache.KINDS
            if not plans.is_going(item):
                await self._delete(kind, item)
        return True

    async def _exists(self, reference: Json, namespace: str) -> bool:
        """Tell whether an owner exists; an owner of a kind that nothing here runs counts as existing."""
        if reference["kind"] not in cache.KINDS:
            return True
        named = {"metadata": {"namespace": namespace, "name": reference["name"]}}
        try:
            found = await self._client.get(cache.make_path(reference["kind"], named))
        except CallError as error:
            if error.code != 404:
                raise
            return False
        return bool(found["metadata"]["uid"] == reference["uid"])

    async def _delete(self, kind: str, item: Json) -> int:
        """Delete an object unless it was replaced; return the version of its deletion mark, if it has one."""
        body = {"preconditions": {"uid": item["metadata"]["uid"]}}
        try:
            return _read_version(await self._client.delete(cache.make_path(kind, item), body))
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
            now = write_timestamp()
            event = {
                "metadata": {
                    "name": f"{meta['name']}.{make_uid()[:16]}",
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
                # A terminating namespace takes no events.
                continue


def _read_version(item: Json) -> int:
    return int((item.get("metadata") or {}).get("resourceVersion") or 0)
