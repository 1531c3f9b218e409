"""A job, its workloads, and all on which depends what is done for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scheduler.api import names
from scheduler.api.jobs import changes, workloads
from scheduler.api.jobs.importance import Ranked, rank_job
from scheduler.api.jobs.parts import JobPart, JobState, Json, get_in, read_list
from scheduler.api.jobs.table import JobKind
from scheduler.api.limits import shorten
from scheduler.errors import BadInput
from scheduler.kube.jobs import statuses
from scheduler.kube.jobs.deeds import Words, WriteJob

_NOTE_MAX = 1000


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A job, and all on which depends what is done for it.

    Attributes:
        row: its kind.
        job: the job; None if it is gone.
        made: the object that its controller has made of it, if its kind has one; None if there is none.
        workloads: those that it owns.
        prebuilt: the workload that it names; others may own it. None if it names none, or this is not there.
        flavors: the specs of flavors, by name.
        now: the time.
        watches_pods: whether it is written on workloads that their pods are ready.
    """

    row: JobKind
    job: Json | None
    made: Json | None = None
    workloads: Sequence[Json] = ()
    prebuilt: Json | None = None
    flavors: Mapping[str, Json] = field(default_factory=dict)
    now: float = 0.0
    watches_pods: bool = False


@dataclass(frozen=True)
class Case:
    """A job that is there, and the workload that fits it; None if none does.

    ``running`` is the slice with whose quota it runs while ``workload`` waits to replace that one; None for none.
    """

    scene: Scene
    job: Json
    workload: Json | None = None
    others: Sequence[Json] = ()
    running: Json | None = None

    @cached_property
    def parts(self) -> list[JobPart]:
        """The parts of the job; none while its controller has not made what has them."""
        row, made = self.scene.row, self.scene.made
        if row.made is None:
            return row.list_parts(self.job)
        return row.list_parts(made) if made is not None else []

    @cached_property
    def state(self) -> JobState:
        """How far the job is."""
        return self.scene.row.read_state(self.job)

    @cached_property
    def is_suspended(self) -> bool:
        """Whether the job may not run."""
        return changes.is_suspended(self.scene.row, self.job)

    @cached_property
    def prebuilt(self) -> str:
        """The workload, made before it, that the job names; empty for none."""
        return workloads.name_prebuilt(self.job)

    @property
    def ranked(self) -> Ranked:
        """By what the priority of the job is found."""
        return rank_job(self.scene.row, self.job, self.parts)

    def fits(self, workload: Json) -> bool:
        """Whether a workload stands for the job as it is.

        Raises:
            BadInput: the job says something that cannot be.
        """
        return self._fits_parts(workload, self.parts)

    def fits_but_for_counts(self, workload: Json) -> bool:
        """Whether a workload has the pod sets of the job as it is, in any number.

        Raises:
            BadInput: the job says something that cannot be.
        """
        found = read_list(workload, "spec", "podSets")
        if [one.get("name") for one in found] != [one.name for one in self.parts]:
            return False
        counts = [one.get("count", 0) for one in found]
        parts = [one._replace(n_pods=n) for one, n in zip(self.parts, counts, strict=True)]
        return self._fits_parts(workload, parts)

    def _fits_parts(self, workload: Json, parts: Sequence[JobPart]) -> bool:
        """Whether a workload stands for the job, if its parts are these."""
        try:
            return workloads.fits_job(
                workload, self.job, parts, self.scene.flavors, is_suspended=self.is_suspended
            )
        except BadInput:
            if self.is_suspended and not statuses.has_quota(workload):
                raise
            # The quota was for what the job said before, and comes back when it has stopped.
            return False

    @property
    def slices(self) -> list[Json]:
        """The workload, and the slice with whose quota the job runs meanwhile, if there is one."""
        return [one for one in (self.workload, self.running) if one is not None]

    def stop(self, workload: Json | None, message: str) -> WriteJob | None:
        """Find the next write by which the job stops; None if it has stopped, or has to end first."""
        pod_sets = read_list(workload, "spec", "podSets") if workload is not None else None
        change = changes.find_stop(
            self.scene.row, self.job, pod_sets, is_active=self.state.is_active
        )
        if change is None:
            return None
        words: Words = ("Normal", "Stopped", shorten(message, _NOTE_MAX))
        return WriteJob(change, words if change.decides else None)

    def write_fit(self) -> Json:
        """Write on a workload that it fits the job as it is."""
        generation = get_in(self.job, ("metadata", "generation"))
        return {"annotations": {names.FITS_GENERATION: str(generation)}}
