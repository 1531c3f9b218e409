"""What the watches have shown of jobs with a queue and of their workloads, and which of them need a closer look."""

from __future__ import annotations

from typing import Any, NamedTuple

from scheduler.api import kueue, names, wire
from scheduler.api.jobs import changes, gates, table, workloads
from scheduler.api.jobs.owners import JobKey, find_job_key
from scheduler.api.jobs.parts import JobState, Json, has_condition
from scheduler.api.jobs.table import JobKind
from scheduler.api.queues.words import (
    ADMITTED,
    EVICTED,
    FINISHED,
    PAST,
    PODS_READY,
)


class KnownJob(NamedTuple):
    """A job with a queue.

    Attributes:
        row: its kind.
        meta: its name, namespace, uid and generation.
        queue: the queue that it names.
        priority_class: the class that its workload is to have; empty for none, or for any.
        prebuilt: the key of the workload, made before it, that it names; empty for none.
        is_elastic: whether it says that it changes its size while it runs.
        gates: who has to agree before its workload is tried.
        is_suspended: whether it may not run.
        is_going: whether it is being deleted.
        state: how far it is.
        owner: the job that has made it; None for none.
    """

    row: JobKind
    meta: wire.Meta
    queue: str
    priority_class: str
    prebuilt: str
    is_elastic: bool
    gates: str
    is_suspended: bool
    is_going: bool
    state: JobState
    owner: JobKey | None


class KnownWorkload(NamedTuple):
    """A workload that is owned by a job.

    Attributes:
        key: namespace/name.
        uid: its uid.
        is_going: whether it is being deleted.
        fits: the generation of its job to which it is known to fit; empty for none.
        is_elastic: whether it says that its job changes its size while it runs.
        gates: who has to agree before it is tried.
        is_past: whether it is a slice that its job needs no longer, and nothing holds it.
        queue: the queue that it names.
        priority_class: its class; empty for none.
        true: the types of its conditions that are true.
        readiness: the status of the condition that says whether its pods are ready; empty for none.
        has_quota: whether it has quota.
        reclaimed: of pod sets whose pods have ended for good, (name, how many pods).
    """

    key: str
    uid: str
    is_going: bool
    fits: str
    is_elastic: bool
    gates: str
    is_past: bool
    queue: str
    priority_class: str
    true: frozenset[str]
    readiness: str
    has_quota: bool
    reclaimed: tuple[tuple[str, int], ...]


def read_job(name: str, found: Any) -> KnownJob:
    """Read what is kept of a job; ``name``: of its kind.

    Raises:
        BadInput: the job says something that cannot be.
    """
    row, meta = table.BY_NAME[name], found.metadata
    metadata: Json = {"labels": meta.labels, "annotations": meta.annotations}
    job: Json = {"metadata": metadata, "spec": found.spec, "status": found.status}
    name_of_prebuilt = workloads.name_prebuilt(job)
    return KnownJob(
        row,
        pick_meta(meta),
        workloads.find_queue(job),
        "" if name_of_prebuilt else workloads.find_class(job),
        f"{meta.namespace}/{name_of_prebuilt}" if name_of_prebuilt else "",
        workloads.is_elastic(job),
        gates.find_gates(job),
        changes.is_suspended(row, job),
        meta.deletion_timestamp is not None,
        row.read_state(job),
        find_job_key(meta.owner_references, meta.namespace),
    )


def pick_meta(meta: wire.Meta) -> wire.Meta:
    """Return what is kept of an object's metadata."""
    return wire.Meta(
        name=meta.name, namespace=meta.namespace, uid=meta.uid, generation=meta.generation
    )


def is_ready(pod: wire.Pod) -> bool:
    """Whether a pod is ready."""
    found = pod.status.conditions or ()
    return any(one.type == "Ready" and one.status == "True" for one in found)


def is_finished(workload: Json) -> bool:
    """Whether a workload, as the API server has it, is finished."""
    return has_condition(workload, FINISHED)


def read_workload(found: kueue.Workload) -> KnownWorkload:
    """Read what is kept of a workload."""
    meta, spec, status = found.metadata, found.spec, found.status
    reference, found_conditions = spec.priority_class_ref, status.conditions or ()
    return KnownWorkload(
        f"{meta.namespace}/{meta.name}",
        meta.uid,
        meta.deletion_timestamp is not None,
        (meta.annotations or {}).get(names.FITS_GENERATION, ""),
        (meta.annotations or {}).get(names.KUEUE_ELASTIC) == "true",
        gates.cut_gates((meta.annotations or {}).get(names.KUEUE_GATED, "")),
        _is_past(found),
        spec.queue_name,
        reference.name if reference is not None else spec.priority_class_name,
        frozenset(one.type for one in found_conditions if one.status == "True"),
        next((one.status for one in found_conditions if one.type == PODS_READY), ""),
        status.admission is not None,
        tuple((one.name, one.count) for one in status.reclaimable_pods or ()),
    )


def _is_past(found: kueue.Workload) -> bool:
    is_held = names.KUEUE_IN_USE in (found.metadata.finalizers or ())
    return not is_held and any(
        one.type == FINISHED and one.status == "True" and one.reason in PAST
        for one in found.status.conditions or ()
    )


def needs_look(
    job: KnownJob | None,
    owned: list[KnownWorkload],
    *,
    is_known_to_fit: bool,
    watches_pods: bool,
) -> bool:
    """Whether there may be something to do for a job.

    Args:
        job: None if it is gone.
        owned: its workloads.
        is_known_to_fit: whether its only workload fits it.
        watches_pods: whether it is written on workloads that their pods are ready.
    """
    if job is None or job.is_going or len(owned) > 1:
        return bool(owned)
    if not owned:
        return job.state.end is None
    (one,) = owned
    is_other = bool(job.prebuilt) and job.prebuilt != one.key
    is_unlike = job.is_suspended and (job.is_elastic != one.is_elastic)
    if is_other or is_unlike or one.is_going or not is_known_to_fit or FINISHED in one.true:
        return True
    if job.state.end or job.state.is_on_hold or job.state.ended != one.reclaimed:
        return True
    return (watches_pods and _has_old_readiness(job, one)) or _is_elsewhere(job, one)


def _has_old_readiness(job: KnownJob, one: KnownWorkload) -> bool:
    if ADMITTED not in one.true:
        return one.readiness == "True"
    return one.readiness != ("True" if job.state.is_ready else "False")


def _is_elsewhere(job: KnownJob, one: KnownWorkload) -> bool:
    """Whether a job is not where its workload is: waiting, running or stopped, in the same queue and class."""
    if EVICTED in one.true:
        return not job.is_suspended or (one.has_quota and not job.state.is_active)
    if job.priority_class and job.priority_class != one.priority_class:
        return True
    if not job.prebuilt and gates.narrow(one.gates, job.gates) != one.gates:
        return True
    if job.is_suspended:
        return ADMITTED in one.true or one.queue != job.queue
    return ADMITTED not in one.true
