"""All that is done about jobs with a queue, behind one door for the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import structlog

from scheduler.api import kinds, kueue, wire
from scheduler.api.door import events
from scheduler.api.door.events import Event
from scheduler.api.jobs import table, workloads
from scheduler.api.jobs.parts import Json
from scheduler.api.kinds import Kind
from scheduler.errors import ApiError, BadInput
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import known
from scheduler.kube.jobs.deciding import Scene, find_deed
from scheduler.kube.jobs.deeds import Deed, MakeWorkload, WriteJob
from scheduler.kube.jobs.importance import Classes, ClassMissing
from scheduler.kube.jobs.known import JobKey, KnownJob, KnownWorkload
from scheduler.kube.jobs.writing import JobWrites, read_if_there
from scheduler.kube.report.reporter import Reporter

_WORKERS = 16
# After so many deeds for one job others get their turn.
_DEEDS = 8
_LOOK_SECONDS = 0.2
# After a failure a job is looked at again so long after it at first, and at most.
_FIRST_SECONDS, _MOST_SECONDS = 0.2, 60.0
_MISTAKE = "InvalidJob"
_log = structlog.get_logger("evenkeel.jobs")


class JobTies(NamedTuple):
    """What ties jobs to the rest of a scheduler.

    Attributes:
        reporter: writes events.
        may_write: whether anything may be written.
        find_workloads: gives the kind of workloads in the version that the API server serves.
        clock: gives the time in seconds since 1970.
        watches_pods: whether it is written on workloads that their pods are ready.
    """

    reporter: Reporter
    may_write: Callable[[], bool]
    find_workloads: Callable[[], Kind]
    clock: Callable[[], float]
    watches_pods: bool


class JobHands:
    """Makes workloads for jobs, starts jobs and stops them.

    The watches say which jobs may need something. These are read anew, so that nothing is done about an old version.
    """

    def __init__(self, api: ApiClient, ties: JobTies) -> None:
        self._api, self._ties = api, ties
        self._jobs: dict[JobKey, KnownJob] = {}
        self._workloads: dict[str, tuple[JobKey, KnownWorkload]] = {}
        self._owned: dict[JobKey, dict[str, KnownWorkload]] = {}
        self._flavors: dict[str, Json] = {}
        self._classes = Classes(api)
        self._writes = JobWrites(api, ties.find_workloads, self._classes, ties.reporter)
        # Of each job by its uid: its generation, and the workload that is known to fit it then.
        self._fits: dict[str, tuple[int, str]] = {}
        # Finished workloads that nothing holds any more, by uid.
        self._done: set[str] = set()
        # Owners of workloads that are not known: they may be gone.
        self._unknown: set[JobKey] = set()
        # Jobs to look at, in their order; those that are being looked at; how often in a row that has failed.
        self._waiting: dict[JobKey, None] = {}
        self._busy: set[JobKey] = set()
        self._failures: dict[JobKey, int] = {}
        # What is wrong with jobs.
        self._mistakes: dict[JobKey, tuple[wire.Meta, str]] = {}
        self._wake = asyncio.Event()
        self._is_open = False

    # Events in.

    def hear(self, event: Event) -> None:
        """Take over what an event says of jobs."""
        match event:
            case events.Seen(kueue.Workload() as one):
                self._see_workload(one)
            case events.Seen(kueue.ResourceFlavor() as one):
                self._flavors[one.metadata.name] = one.spec if isinstance(one.spec, dict) else {}
                self._note_all()
            case events.Seen(kueue.WorkloadPriorityClass() as one):
                self._classes.see(one.metadata.name, one.value)
                self._note_all()
            case events.Seen(one) if (name := kinds.read_kind_name(one)) in table.BY_NAME:
                self._see_job(name, one)
            case events.Gone(kind, key) if kind in table.BY_NAME:
                job = (kind, *kinds.split_key(key))
                known_job = self._jobs.pop(job, None)
                if known_job is not None:
                    self._fits.pop(known_job.meta.uid, None)
                self._mistakes.pop(job, None)
                self._note_unknown(job)
            case events.Gone(kinds.WORKLOADS.name, key):
                self._drop_workload(key)
            case events.Gone(kinds.FLAVORS.name, key):
                self._flavors.pop(key, None)
            case events.Gone(kinds.WORKLOAD_CLASSES.name, key):
                self._classes.drop(key)

    def _see_job(self, name: str, found: Any) -> None:
        meta = found.metadata
        key = name, meta.namespace, meta.name
        owner = known.find_job_key(meta.owner_references, meta.namespace)
        if owner is not None and table.BY_NAME[owner[0]].made is not None:
            # It has the templates of its owner.
            self._note(owner)
        try:
            job = known.read_job(name, found)
        except BadInput as error:
            self._mistakes[key] = known.pick_meta(meta), str(error)
            self._report_mistake(key)
            return
        if job.queue and not job.row.is_elsewhere({"spec": found.spec}):
            self._jobs[key] = job
            self._unknown.discard(key)
            self._note(key)
        else:
            self._jobs.pop(key, None)

    def _see_workload(self, found: kueue.Workload) -> None:
        meta = found.metadata
        owner = known.find_job_key(meta.owner_references, meta.namespace)
        if owner is None:
            return
        one = known.read_workload(found)
        self._workloads[one.key] = owner, one
        self._owned.setdefault(owner, {})[one.key] = one
        self._note_unknown(owner)

    def _drop_workload(self, key: str) -> None:
        owner, one = self._workloads.pop(key, (None, None))
        if owner is None or one is None:
            return
        self._done.discard(one.uid)
        owned = self._owned[owner]
        del owned[key]
        if not owned:
            del self._owned[owner]
        self._note(owner)

    def _note_unknown(self, key: JobKey) -> None:
        """Have a job looked at if it may need something, or if it may be gone while its workloads are there."""
        if key not in self._jobs and key in self._owned:
            self._unknown.add(key)
        self._note(key)

    def _note(self, key: JobKey) -> None:
        """Have a job looked at if it may need something."""
        if self._is_open and key not in self._waiting and self._needs_look(key):
            self._waiting[key] = None
            self._wake.set()

    def _note_all(self) -> None:
        for key in {**self._jobs, **self._owned}:
            self._note_unknown(key)

    def _needs_look(self, key: JobKey) -> bool:
        job, owned = self._jobs.get(key), list(self._owned.get(key, {}).values())
        if job is not None and job.owner in self._jobs:
            # The job that has made it has the quota.
            return False
        if job is None and key not in self._unknown:
            return False
        if owned and all(one.uid in self._done for one in owned):
            return False
        fits = (
            job is not None
            and len(owned) == 1
            and (
                owned[0].fits == str(job.meta.generation)
                or self._fits.get(job.meta.uid) == (job.meta.generation, owned[0].uid)
            )
        )
        return known.needs_look(
            job, owned, is_known_to_fit=fits, watches_pods=self._ties.watches_pods
        )

    # At work.

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_terms())
            for _ in range(_WORKERS):
                group.create_task(self._look_at_all())

    async def _follow_terms(self) -> None:
        """Look at all jobs when a term begins."""
        while True:
            is_open = self._ties.may_write()
            if is_open != self._is_open:
                self._is_open = is_open
                self._waiting.clear()
                if is_open:
                    self._note_all()
                    for key in self._mistakes:
                        self._report_mistake(key)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look_at_all(self) -> None:
        while True:
            key = self._take_next()
            if key is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            self._busy.add(key)
            try:
                await self._look_at(key)
            except ClassMissing as error:
                self._report(key, ("Warning", "WorkloadPriorityClassNotFound", str(error)))
                self._look_later(key)
            except BadInput as error:
                self._note_mistake(key, error)
            except ApiError as error:
                if answers.is_invalid(error):
                    self._note_mistake(key, error)
                elif not answers.is_conflict(error):
                    _log.warning("a job is looked at again", job="/".join(key), error=str(error))
                self._look_later(key)
            else:
                self._failures.pop(key, None)
                self._mistakes.pop(key, None)
            finally:
                self._busy.discard(key)
            if key in self._waiting:
                self._wake.set()

    def _take_next(self) -> JobKey | None:
        for key in self._waiting:
            if key not in self._busy:
                del self._waiting[key]
                return key
        return None

    def _look_later(self, key: JobKey) -> None:
        n = self._failures[key] = self._failures.get(key, 0) + 1
        wait = client.get_backoff(n - 1, first=_FIRST_SECONDS, most=_MOST_SECONDS)
        asyncio.get_running_loop().call_later(wait, self._note, key)

    async def _look_at(self, key: JobKey) -> None:
        """Do what is to be done for a job.

        Raises:
            ApiError: the API server refuses.
            BadInput: the job says something that cannot be.
            ClassMissing: its priority is not known.
        """
        for _ in range(_DEEDS):
            if not self._ties.may_write():
                return
            scene = await self._read_scene(key)
            has_queue = scene.job is None or workloads.find_queue(scene.job)
            deed = find_deed(scene) if has_queue else None
            if deed is None:
                self._unknown.discard(key)
                self._note_done(scene)
                return
            answer = await self._writes.carry_out(scene, deed)
            self._take_answer(scene, deed, answer)
        self._waiting[key] = None

    async def _read_scene(self, key: JobKey) -> Scene:
        row = table.BY_NAME[key[0]]
        _, namespace, name = key
        job = await read_if_there(self._api, row.kind.find_path(name, namespace))
        made = None
        if row.made is not None and job is not None:
            made = await read_if_there(self._api, row.made.find_path(name, namespace))
        owned = []
        for one in list(self._owned.get(key, {})):
            path = self._ties.find_workloads().find_path(*reversed(kinds.split_key(one)))
            found = await read_if_there(self._api, path)
            if found is not None:
                owned.append(found)
        return Scene(
            row=row,
            job=job,
            made=made,
            workloads=owned,
            flavors=self._flavors,
            now=self._ties.clock(),
            watches_pods=self._ties.watches_pods,
        )

    def _note_done(self, scene: Scene) -> None:
        """Note that nothing is to be done for a job as it is."""
        if len(scene.workloads) != 1:
            return
        uid = scene.workloads[0]["metadata"]["uid"]
        if scene.job is not None:
            meta = scene.job["metadata"]
            self._fits[meta["uid"]] = meta.get("generation", 0), uid
        if known.is_finished(scene.workloads[0]):
            self._done.add(uid)

    def _take_answer(self, scene: Scene, deed: Deed, answer: Json | None) -> None:
        """Note what a write says at once, before the watch does."""
        if isinstance(deed, WriteJob) and answer is not None and len(scene.workloads) == 1:
            meta = answer["metadata"]
            uid = scene.workloads[0]["metadata"]["uid"]
            self._fits[meta["uid"]] = meta.get("generation", 0), uid
        elif isinstance(deed, MakeWorkload) and answer is not None:
            self._see_workload(msgspec.convert(answer, kueue.Workload))

    # Words.

    def _report(self, key: JobKey, words: tuple[str, str, str]) -> None:
        job = self._jobs.get(key)
        if job is not None:
            self._ties.reporter.report_on_object(job.row.kind, job.meta, words)

    def _note_mistake(self, key: JobKey, error: Exception) -> None:
        job = self._jobs.get(key)
        if job is not None and self._mistakes.get(key) != (job.meta, str(error)):
            self._mistakes[key] = job.meta, str(error)
            self._report_mistake(key)

    def _report_mistake(self, key: JobKey) -> None:
        meta, text = self._mistakes[key]
        if self._ties.may_write():
            kind = table.BY_NAME[key[0]].kind
            self._ties.reporter.report_on_object(kind, meta, ("Warning", _MISTAKE, text))
