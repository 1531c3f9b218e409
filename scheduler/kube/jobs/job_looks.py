"""Looks at jobs: which of them need something, and what is done for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from scheduler.api import kinds, kueue
from scheduler.api.jobs import table, workloads
from scheduler.api.jobs.owners import JobKey, find_job_key
from scheduler.api.jobs.parts import Json
from scheduler.errors import BadInput
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import known
from scheduler.kube.jobs.deciding import find_deed
from scheduler.kube.jobs.deeds import Deed, MakeWorkload, WriteJob
from scheduler.kube.jobs.known import KnownJob, KnownWorkload
from scheduler.kube.jobs.looks import Looks, Named
from scheduler.kube.jobs.scene import Scene
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.jobs.writing import JobWrites, read_if_there

# After so many deeds for one job others get their turn.
_DEEDS = 8
# A RayJob makes a RayCluster, a TrainJob a JobSet that makes Jobs: no chain is longer.
_GENERATIONS = 4


class JobLooks:
    """The jobs with a queue, and the workloads that jobs own.

    The watches say which jobs may need something. These are read anew, so that nothing is done about an old version.

    Attributes:
        looks: looks at them.
    """

    def __init__(
        self, api: ApiClient, ties: JobTies, flavors: Mapping[str, Json], writes: JobWrites
    ) -> None:
        """``flavors``: their specs, by name."""
        self._api, self._ties, self._flavors, self._writes = api, ties, flavors, writes
        self._jobs: dict[JobKey, KnownJob] = {}
        # Of jobs that jobs have made, with a queue or without: which one has made it.
        self._makers: dict[JobKey, JobKey] = {}
        self._workloads: dict[str, tuple[JobKey, KnownWorkload]] = {}
        self._owned: dict[JobKey, dict[str, KnownWorkload]] = {}
        # Which jobs name a workload that was made before them, whether or not it is there.
        self._named: dict[str, set[JobKey]] = {}
        # Of each job by its uid: its generation, and the workload that is known to fit it then.
        self._fits: dict[str, tuple[int, str]] = {}
        # Finished workloads that nothing holds any more, by uid.
        self._done: set[str] = set()
        # Owners of workloads that are not known: they may be gone.
        self._unknown: set[JobKey] = set()
        self.looks: Looks[JobKey] = Looks(self, ties.reporter)

    # What the watches show.

    def see_job(self, name: str, found: Any) -> None:
        """Take over what a watch says of a job; ``name``: of its kind."""
        meta = found.metadata
        key = name, meta.namespace, meta.name
        owner = find_job_key(meta.owner_references, meta.namespace)
        if owner is not None:
            self._makers[key] = owner
        if owner is not None and table.BY_NAME[owner[0]].made is not None:
            # It has the templates of its owner.
            self.looks.note(owner)
        try:
            job = known.read_job(name, found)
        except BadInput as error:
            named = table.BY_NAME[name].kind, known.pick_meta(meta)
            self.looks.note_mistake(key, named, error)
            return
        if job.queue and not job.row.is_elsewhere({"spec": found.spec}):
            self._forget_name(key)
            self._jobs[key] = job
            if job.prebuilt:
                self._named.setdefault(job.prebuilt, set()).add(key)
            self._unknown.discard(key)
            self.looks.note(key)
        else:
            self._forget_name(key)
            self._jobs.pop(key, None)

    def drop_job(self, key: JobKey) -> None:
        """Note that a job is gone."""
        self._makers.pop(key, None)
        self._forget_name(key)
        job = self._jobs.pop(key, None)
        if job is not None:
            self._fits.pop(job.meta.uid, None)
        self.looks.forget(key)
        self._note_unknown(key)

    def is_managed(self, key: JobKey | None) -> bool:
        """Whether a job has a queue, or one that has made it has."""
        for _ in range(_GENERATIONS):
            if key is None:
                return False
            if key in self._jobs:
                return True
            key = self._makers.get(key)
        return False

    def see_workload(self, found: kueue.Workload) -> None:
        """Take over what a watch says of a workload; one that no job owns or names is left alone."""
        meta = found.metadata
        one = known.read_workload(found)
        # A job has nothing to do with slices that it needs no longer.
        is_past = one.is_past and one.is_elastic
        owner = None if is_past else find_job_key(meta.owner_references, meta.namespace)
        before, _ = self._workloads.get(one.key, (None, None))
        if before is not None and before != owner:
            self._disown(one.key)
        if owner is not None:
            self._workloads[one.key] = owner, one
            self._owned.setdefault(owner, {})[one.key] = one
            self._note_unknown(owner)
        self._note_namers(one.key)

    def drop_workload(self, key: str) -> None:
        """Note that a workload is gone."""
        self._disown(key)
        self._note_namers(key)

    def _disown(self, key: str) -> None:
        """Note that a workload is no longer that of its job."""
        owner, one = self._workloads.pop(key, (None, None))
        if owner is None or one is None:
            return
        self._done.discard(one.uid)
        owned = self._owned[owner]
        del owned[key]
        if not owned:
            del self._owned[owner]
        self.looks.note(owner)

    def _note_namers(self, key: str) -> None:
        """Have the jobs looked at that name a workload."""
        for job in self._named.get(key, ()):
            self.looks.note(job)

    def _forget_name(self, key: JobKey) -> None:
        """Forget which workload a job names."""
        job = self._jobs.get(key)
        if job is not None and job.prebuilt:
            namers = self._named[job.prebuilt]
            namers.discard(key)
            if not namers:
                del self._named[job.prebuilt]

    def note_all(self) -> None:
        """Have all jobs looked at that may need something."""
        for key in self.list_keys():
            self.looks.note(key)

    def _note_unknown(self, key: JobKey) -> None:
        """Have a job looked at if it may need something, or if it may be gone while its workloads are there."""
        if key not in self._jobs and key in self._owned:
            self._unknown.add(key)
        self.looks.note(key)

    # The subject of looks.

    def list_keys(self) -> Iterable[JobKey]:
        """List the keys of jobs with a queue, and of those that own workloads."""
        self._unknown = {key for key in self._owned if key not in self._jobs}
        return {**self._jobs, **self._owned}

    def needs_look(self, key: JobKey) -> bool:
        """Whether there may be something to do for a job."""
        job, named = self._jobs.get(key), self._owned.get(key, {})
        owned = list(named.values())
        if job is not None and self.is_managed(job.owner):
            # The job that has made it has the quota.
            return False
        if job is None and key not in self._unknown:
            return False
        names_another = job is not None and job.prebuilt and job.prebuilt not in named
        if owned and not names_another and all(one.uid in self._done for one in owned):
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

    def find_object(self, key: JobKey) -> Named | None:
        """Find the kind and the metadata of a job."""
        job = self._jobs.get(key)
        return (job.row.kind, job.meta) if job is not None else None

    async def look_at(self, key: JobKey) -> bool:
        """Do what is to be done for a job; return whether there may be more.

        Raises:
            ApiError: the API server refuses.
            BadInput: the job says something that cannot be.
            ClassMissing: its priority is not known.
            Refusal: it names a workload that it cannot have.
        """
        for _ in range(_DEEDS):
            if not self._ties.may_write():
                return False
            scene = await self._read_scene(key)
            has_queue = scene.job is None or workloads.find_queue(scene.job)
            deed = find_deed(scene) if has_queue else None
            if deed is None:
                self._unknown.discard(key)
                self._note_done(scene)
                return False
            answer = await self._writes.carry_out(scene, deed)
            self._take_answer(scene, deed, answer)
            if isinstance(deed, MakeWorkload) or (
                isinstance(deed, WriteJob) and deed.change.decides
            ):
                # It is the turn of others, and the watch says when they have done something.
                return False
        return True

    async def _read_scene(self, key: JobKey) -> Scene:
        row = table.BY_NAME[key[0]]
        _, namespace, name = key
        job = await read_if_there(self._api, row.kind.find_path(name, namespace))
        made = None
        if row.made is not None and job is not None:
            made = await read_if_there(self._api, row.made.find_path(name, namespace))
        find = self._ties.find_workloads().find_path
        owned = {}
        for one in list(self._owned.get(key, {})):
            found = await read_if_there(self._api, find(*reversed(kinds.split_key(one))))
            if found is not None:
                owned[one] = found
        named = _find_prebuilt(job) if job is not None else ""
        prebuilt = owned.get(f"{namespace}/{named}")
        if named and prebuilt is None:
            prebuilt = await read_if_there(self._api, find(named, namespace))
        return Scene(
            row=row,
            job=job,
            made=made,
            workloads=list(owned.values()),
            prebuilt=prebuilt,
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
            self.see_workload(msgspec.convert(answer, kueue.Workload))


def _find_prebuilt(job: Json) -> str:
    """Find the workload that a job names; empty also where this is no name, which may not become a part of a path."""
    try:
        return workloads.find_prebuilt(job)
    except BadInput:
        return ""
