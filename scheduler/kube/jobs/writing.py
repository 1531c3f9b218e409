"""Carries out what is to be done for jobs, and reports it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from scheduler.api import kinds, names, times, wire
from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import Json, read_object
from scheduler.api.jobs.templates import write_operation
from scheduler.api.kind import Kind
from scheduler.api.limits import shorten
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import statuses
from scheduler.kube.jobs.deeds import (
    ChangePods,
    Deed,
    DropWorkload,
    MakeWorkload,
    OnWorkload,
    PodDeed,
    SetImportance,
    StopPods,
    Words,
    WriteJob,
    WriteWorkload,
)
from scheduler.kube.jobs.importance import Classes
from scheduler.kube.jobs.pod_scene import PodScene
from scheduler.kube.jobs.scene import Scene
from scheduler.kube.report.reporter import Reporter

# How many pods are written at once, and on how many of a group it is reported.
_AT_ONCE, _REPORTED_MOST = 16, 16
_NOTE_MAX = 1000
# So many names are tried for a workload, as long as slices of former times have them.
_NAMES = 4


async def read_if_there(api: ApiClient, path: str) -> Json | None:
    """Read an object; None if it is not there.

    Raises:
        ApiError: the API server refuses.
    """
    try:
        found: Json = await api.get(path)
    except ApiError as error:
        if answers.is_not_found(error):
            return None
        raise
    return found


async def list_labelled(api: ApiClient, path: str, label: str, value: str) -> list[Json]:
    """List the objects that have a label with a value.

    Raises:
        ApiError: the API server refuses.
    """
    found = await api.get(path, {"labelSelector": f"{label}={value}"})
    return list(found.get("items") or ())


class JobWrites:
    """Writes jobs and workloads, each on the version that was read.

    Args:
        api: the API server.
        find_kind: gives the kind of workloads in the version that the API server serves.
        classes: know how important jobs are.
        reporter: writes events.
    """

    def __init__(
        self,
        api: ApiClient,
        find_kind: Callable[[], Kind],
        classes: Classes,
        reporter: Reporter,
    ) -> None:
        self._api, self._find_kind = api, find_kind
        self._classes, self._reporter = classes, reporter

    async def carry_out(self, scene: Scene, deed: Deed) -> Json | None:
        """Carry out a deed for a job; return the object that was written, None if it is gone.

        Raises:
            ApiError: the API server refuses.
            ClassMissing: the priority of the job is not known.
        """
        if isinstance(deed, WriteJob):
            path = _find_own_path(scene.row.kind, scene.job or {})
            path += "/status" if deed.change.is_status else ""
            answer: Json | None = await self._patch(path, scene.job or {}, deed.change.operations)
            words = deed.words
        else:
            answer, words = await self.write_workload(deed)
        if words is not None and scene.job is not None:
            self._report(scene.row.kind, scene.job, words)
        return answer

    async def carry_out_for_pods(self, scene: PodScene, deed: PodDeed) -> None:
        """Carry out a deed for pods.

        Raises:
            ApiError: the API server refuses.
            ClassMissing: their priority is not known.
        """
        if isinstance(deed, ChangePods):
            await self._for_each(deed.pods, self.change_pod)
            words = deed.words
        elif isinstance(deed, StopPods):
            now = times.write_time(scene.now)
            await self._for_each([(one, deed, now) for one in deed.pods], self._stop_pod)
            words = "Normal", "Stopped", shorten(deed.message, _NOTE_MAX)
        else:
            _, words = await self.write_workload(deed)
        if words is not None:
            for pod in scene.pods[:_REPORTED_MOST]:
                self._report(kinds.PODS, pod, words)

    async def _for_each(
        self, items: Sequence[tuple[Any, ...]], write: Callable[..., Awaitable[None]]
    ) -> None:
        """Write some pods, several at a time. One that is gone needs nothing.

        Raises:
            ApiError: the API server refuses one of them; the others are written.
        """
        for start in range(0, len(items), _AT_ONCE):
            some = (write(*one) for one in items[start : start + _AT_ONCE])
            for result in await asyncio.gather(*some, return_exceptions=True):
                if isinstance(result, BaseException) and not answers.is_not_found(result):  # type: ignore[arg-type]
                    raise result

    async def change_pod(self, pod: Json, operations: Sequence[Json]) -> None:
        """Change a pod as it was read.

        Raises:
            ApiError: the API server refuses.
        """
        await self._patch(_find_own_path(kinds.PODS, pod), pod, operations)

    async def _stop_pod(self, pod: Json, deed: StopPods, now: str) -> None:
        """Delete a pod; before, it is written on it why."""
        condition = {
            "type": "TerminationTarget",
            "status": "True",
            "reason": deed.reason,
            "message": shorten(deed.message, _NOTE_MAX),
            "lastTransitionTime": now,
        }
        path, uid = _find_own_path(kinds.PODS, pod), pod["metadata"]["uid"]
        body = {"metadata": {"uid": uid}, "status": {"conditions": [condition]}}
        await self._api.send("PATCH", f"{path}/status", body, content_type=client.STRATEGIC_PATCH)
        await self._api.send("DELETE", path, {"preconditions": {"uid": uid}})

    async def write_workload(self, deed: OnWorkload) -> tuple[Json | None, Words | None]:
        """Carry out a deed on a workload; return what was written, and what is to be reported.

        Raises:
            ApiError: the API server refuses.
            ClassMissing: its priority is not known.
        """
        match deed:
            case MakeWorkload():
                key = statuses.write_key(deed.body)
                words = deed.words or ("Normal", "CreatedWorkload", f"Created Workload: {key}")
                return await self._make(deed), words
            case WriteWorkload():
                path = self._find_path(deed.workload) + ("/status" if deed.is_status else "")
                return await self._merge(path, deed.workload, deed.patch), deed.words
            case SetImportance():
                importance = await self._classes.find_importance(deed.ranked)
                spec = workloads.write_importance(importance, self._find_kind())
                path, key = self._find_path(deed.workload), statuses.write_key(deed.workload)
                words = "Normal", "UpdatedWorkload", f"Updated workload priority class: {key}"
                return await self._merge(path, deed.workload, {"spec": spec}), words
            case DropWorkload():
                await self._drop(deed)
        return None, None

    async def _make(self, deed: MakeWorkload) -> Json | None:
        importance = await self._classes.find_importance(deed.ranked)
        kind = self._find_kind()
        spec = deed.body["spec"] | workloads.write_importance(importance, kind)
        body = deed.body | {"apiVersion": kind.api_version, "spec": spec}
        path = kind.find_list_path(body["metadata"]["namespace"])
        name = str(body["metadata"]["name"])
        for n in range(_NAMES):
            meta = body["metadata"] | ({"name": f"{name}-{n}"} if n else {})
            try:
                return self._read(await self._api.send("POST", path, body | {"metadata": meta}))
            except ApiError as error:
                if not answers.is_there_already(error):
                    raise
            # Another replica has made it, or the watch is a moment behind: but for a slice of former times.
            found = await read_if_there(self._api, kind.find_path(meta["name"], meta["namespace"]))
            if found is not None and not statuses.is_past_slice(found):
                return None
        return None

    async def _patch(self, path: str, found: Json, operations: Sequence[Json]) -> Json:
        """Write a JSON patch on the version that was read."""
        version = found["metadata"]["resourceVersion"]
        held = write_operation("replace", ("metadata", "resourceVersion"), version)
        patch = [held, *operations]
        return self._read(
            await self._api.send("PATCH", path, patch, content_type=client.JSON_PATCH)
        )

    async def _merge(self, path: str, workload: Json, patch: Json) -> Json | None:
        meta = read_object(workload, "metadata")
        held = {key: meta[key] for key in ("uid", "resourceVersion")}
        body = patch | {"metadata": {**read_object(patch, "metadata"), **held}}
        answer = await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
        return self._read(answer)

    async def _drop(self, deed: DropWorkload) -> None:
        meta = read_object(deed.workload, "metadata")
        path = self._find_path(deed.workload)
        kept = [one for one in meta.get("finalizers") or () if one != names.KUEUE_IN_USE]
        try:
            if len(kept) < len(meta.get("finalizers") or ()):
                await self._merge(path, deed.workload, {"metadata": {"finalizers": kept or None}})
            if not deed.may_stay and not meta.get("deletionTimestamp"):
                body = {"preconditions": {"uid": meta["uid"]}}
                await self._api.send("DELETE", path, body)
        except ApiError as error:
            if not answers.is_not_found(error):
                raise

    def _find_path(self, workload: Json) -> str:
        meta = read_object(workload, "metadata")
        return self._find_kind().find_path(meta["name"], meta["namespace"])

    @staticmethod
    def _read(answer: bytes) -> Json:
        found: Any = msgspec.json.decode(answer)
        return found if isinstance(found, dict) else {}

    def _report(self, kind: Kind, found: Json, words: Words) -> None:
        meta = read_object(found, "metadata")
        named = wire.Meta(name=meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        self._reporter.report_on_object(kind, named, words)


def _find_own_path(kind: Kind, found: Json) -> str:
    meta = read_object(found, "metadata")
    return kind.find_path(meta["name"], meta["namespace"])
