"""Carries out what is to be done for jobs, and reports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from scheduler.api import names, wire
from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import Json, read_object
from scheduler.api.jobs.templates import write_operation
from scheduler.api.kinds import Kind
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs.deciding import Scene
from scheduler.kube.jobs.deeds import (
    Deed,
    DropWorkload,
    MakeWorkload,
    SetImportance,
    Words,
    WriteJob,
    WriteWorkload,
)
from scheduler.kube.jobs.importance import Classes
from scheduler.kube.report.reporter import Reporter


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
        """Carry out a deed; return the object that was written, None if it is gone.

        Raises:
            ApiError: the API server refuses.
            ClassMissing: the priority of the job is not known.
        """
        words: Words | None = None
        match deed:
            case MakeWorkload():
                answer = await self._make(scene, deed)
                meta = deed.body["metadata"]
                note = f"Created Workload: {meta['namespace']}/{meta['name']}"
                words = "Normal", "CreatedWorkload", note
            case WriteJob():
                answer = await self._change_job(scene, deed)
                words = deed.words
            case WriteWorkload():
                path = self._find_path(deed.workload) + ("/status" if deed.is_status else "")
                answer = await self._merge(path, deed.workload, deed.patch)
                words = deed.words
            case SetImportance():
                importance = await self._classes.find_importance(
                    scene.row, scene.job or {}, deed.parts
                )
                spec = workloads.write_importance(importance, self._find_kind())
                path = self._find_path(deed.workload)
                answer = await self._merge(path, deed.workload, {"spec": spec})
                meta = deed.workload["metadata"]
                note = f"Updated workload priority class: {meta['namespace']}/{meta['name']}"
                words = "Normal", "UpdatedWorkload", note
            case DropWorkload():
                await self._drop(deed)
                return None
        if words is not None:
            self._report(scene, words)
        return answer

    async def _make(self, scene: Scene, deed: MakeWorkload) -> Json | None:
        importance = await self._classes.find_importance(scene.row, scene.job or {}, deed.parts)
        kind = self._find_kind()
        spec = deed.body["spec"] | workloads.write_importance(importance, kind)
        body = deed.body | {"apiVersion": kind.api_version, "spec": spec}
        path = kind.find_list_path(body["metadata"]["namespace"])
        try:
            return self._read(await self._api.send("POST", path, body))
        except ApiError as error:
            # Another replica has made it, or the watch is a moment behind.
            if answers.is_there_already(error):
                return None
            raise

    async def _change_job(self, scene: Scene, deed: WriteJob) -> Json | None:
        job, change = scene.job or {}, deed.change
        meta = read_object(job, "metadata")
        path = scene.row.kind.find_path(meta["name"], meta["namespace"])
        place = "metadata", "resourceVersion"
        operations = [
            write_operation("replace", place, meta["resourceVersion"]),
            *change.operations,
        ]
        answer = await self._api.send(
            "PATCH",
            path + ("/status" if change.is_status else ""),
            operations,
            content_type=client.JSON_PATCH,
        )
        return self._read(answer)

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

    def _report(self, scene: Scene, words: Words) -> None:
        meta = read_object(scene.job or {}, "metadata")
        found = wire.Meta(name=meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        self._reporter.report_on_object(scene.row.kind, found, words)
