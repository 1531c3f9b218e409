"""The kinds of jobs that can wait in queues, as one table: a new kind is a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.api import kinds
from scheduler.api.jobs import batch, job_sets, ray, training
from scheduler.api.jobs.parts import JobPart, JobState, Json, Place
from scheduler.api.kind import Kind


def _find_no_class(job: Json) -> str:
    del job
    return ""


def _is_never_elsewhere(job: Json) -> bool:
    del job
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One line of the table.

    Attributes:
        kind: as the API server has it.
        suspend: where it says that a job may not run.
        list_parts: lists the parts of a job; of one of ``made`` where the line names a kind there.
        read_state: reads how far a job is.
        made: the kind of the one object that the job's controller makes of it, with the same name, which has the pod
            templates; None where the job has them.
        find_class: finds the priority class that a job has beside those of its templates.
        is_elsewhere: whether a job needs no quota.
        has_slices: whether a job may change its size while it runs: it gets another workload, which replaces its first one.
    """

    kind: Kind
    suspend: Place = ("spec", "suspend")
    list_parts: Callable[[Json], list[JobPart]]
    read_state: Callable[[Json], JobState]
    made: Kind | None = None
    find_class: Callable[[Json], str] = _find_no_class
    is_elsewhere: Callable[[Json], bool] = _is_never_elsewhere
    has_slices: bool = False

    def refuse_slices(self) -> str:
        """Say why a job of this kind cannot change its size while it runs; empty if it can."""
        return "" if self.has_slices else describe_refusal(self.kind.kind)


_IN_RUN_POLICY: Place = ("spec", "runPolicy", "suspend")


def _make_training_kind(kind: Kind, key: str, *order: str) -> JobKind:
    """Make the line of a kind of Kubeflow's training operators; ``order``: its kinds of replicas."""
    return JobKind(
        kind=kind,
        suspend=_IN_RUN_POLICY,
        list_parts=training.make_lister(key, order),
        read_state=training.read_state,
        find_class=training.find_class,
    )


TABLE: tuple[JobKind, ...] = (
    JobKind(
        kind=kinds.JOBS,
        list_parts=batch.list_parts,
        read_state=batch.read_state,
        has_slices=True,
    ),
    JobKind(kind=kinds.JOB_SETS, list_parts=job_sets.list_parts, read_state=job_sets.read_state),
    JobKind(
        kind=kinds.TRAIN_JOBS,
        list_parts=job_sets.list_parts,
        read_state=job_sets.read_train_state,
        made=kinds.JOB_SETS,
    ),
    _make_training_kind(kinds.MPI_JOBS, "mpiReplicaSpecs", "Launcher", "Worker"),
    _make_training_kind(kinds.PYTORCH_JOBS, "pytorchReplicaSpecs", "Master", "Worker"),
    _make_training_kind(
        kinds.TF_JOBS, "tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator"
    ),
    _make_training_kind(kinds.XGBOOST_JOBS, "xgbReplicaSpecs", "Master", "Worker"),
    _make_training_kind(kinds.PADDLE_JOBS, "paddleReplicaSpecs", "Master", "Worker"),
    _make_training_kind(kinds.JAX_JOBS, "jaxReplicaSpecs", "Worker"),
    JobKind(
        kind=kinds.RAY_CLUSTERS,
        list_parts=ray.list_cluster_parts,
        read_state=ray.read_cluster_state,
        has_slices=True,
    ),
    JobKind(
        kind=kinds.RAY_JOBS,
        list_parts=ray.list_job_parts,
        read_state=ray.read_job_state,
        is_elsewhere=ray.is_elsewhere,
    ),
    JobKind(
        kind=kinds.RAY_SERVICES,
        suspend=("spec", "rayClusterConfig", "suspend"),
        list_parts=ray.list_service_parts,
        read_state=ray.read_service_state,
    ),
)
BY_NAME = {one.kind.name: one for one in TABLE}
WITH_SLICES = {one.kind.kind for one in TABLE if one.has_slices}


def describe_refusal(kind: str) -> str:
    """Say that a job of a kind cannot change its size while it runs."""
    return f"not supported for a {kind}, only for {', '.join(sorted(WITH_SLICES))}"
