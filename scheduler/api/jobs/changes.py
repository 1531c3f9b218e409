"""How a job is started and stopped: as operations of JSON patches, one patch after the other.

Source: Kueue (2026-08), ``RunWithPodSetsInfo``, ``Stop`` and ``RestorePodSetsInfo`` of the kinds below
``pkg/controller/jobs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scheduler.api import kinds, names
from scheduler.api.jobs import batch, templates
from scheduler.api.jobs.parts import (
    JobPart,
    Json,
    Place,
    get_in,
    has_condition,
    read_count,
    read_list,
    read_object,
)
from scheduler.api.jobs.table import JobKind
from scheduler.api.jobs.templates import Addition, CannotStart, write_changes, write_operation

_STOPPING: Place = ("metadata", "annotations", names.KUEUE_STOPPING)
_START_TIME: Place = ("status", "startTime")
_PATCHES: Place = ("spec", "runtimePatches")
_MANAGER = "kueue.x-k8s.io/manager"
_OF_PATCH: Place = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")


class Change(NamedTuple):
    """One write to a job.

    Attributes:
        operations: of a JSON patch.
        is_status: whether the status is written.
        decides: whether the job is started or stopped by this one.
    """

    operations: list[Json]
    is_status: bool = False
    decides: bool = False


def is_suspended(row: JobKind, job: Json) -> bool:
    """Whether a job may not run, and is as it was before its start."""
    return _is_held(row, job) and get_in(job, _STOPPING) != "true"


def _is_held(row: JobKind, job: Json) -> bool:
    return get_in(job, row.suspend) is True


def find_start(
    row: JobKind, job: Json, parts: Sequence[JobPart], additions: Sequence[Addition]
) -> Change:
    """Find the next write by which a job starts.

    Args:
        row: its kind.
        job: the job, suspended.
        parts: its parts.
        additions: what is added to each of them, in the same order.

    Raises:
        CannotStart: what is added contradicts the templates, or is not for these parts.
    """
    if len(parts) != len(additions):
        raise CannotStart(f"the job has {len(parts)} pod sets, and {len(additions)} have quota")
    if row.made is not None:
        return _find_patched_start(row, job, additions)
    made = [write_suspend(row, job, is_on=False)]
    for part, addition in zip(parts, additions, strict=True):
        fields = templates.merge(part.template, addition)
        if get_in(job, part.place) is None:
            made.append(write_operation("add", part.place, _put_fields(part.template, fields)))
            continue
        if row.kind == kinds.JOBS:
            _keep_written_labels(job, part, fields)
        made += write_changes(job, part.place, fields)
    if row.kind == kinds.JOBS:
        made += _write_parallelism(job, additions[0].n_pods)
    return Change(made, decides=True)


def _put_fields(template: Json, fields: Json) -> Json:
    """Return a template with fields."""
    made = {key: dict(read_object(template, key)) for key in ("metadata", "spec")}
    for name, value in fields.items():
        under, _, key = name.partition(".")
        if value:
            made[under][key] = value
    return template | made


def _keep_written_labels(job: Json, part: JobPart, fields: Json) -> None:
    """Keep the labels that a Job's own controller has written: they may not change."""
    labels = read_object(job, *part.place, "metadata", "labels")
    fields["metadata.labels"] |= {key: labels[key] for key in batch.KEPT if key in labels}


def write_suspend(row: JobKind, job: Json, *, is_on: bool) -> Json:
    """Write the operation of a JSON patch by which a job may not run, or may."""
    *under, key = row.suspend
    if get_in(job, tuple(under)) is None:
        return write_operation("add", tuple(under), {key: is_on})
    return write_operation("add", row.suspend, is_on)


def _write_parallelism(job: Json, count: int) -> list[Json]:
    """Write how many pods a Job that may have fewer has at once."""
    if batch.read_least(job) is None or read_count(job, "spec", "parallelism") == count:
        return []
    made = [write_operation("add", ("spec", "parallelism"), count)]
    if batch.follows_parallelism(job):
        made.append(write_operation("add", ("spec", "completions"), count))
    return made


def find_stop(
    row: JobKind, job: Json, pod_sets: Sequence[Json] | None, *, is_active: bool
) -> Change | None:
    """Find the next write by which a job stops; None if it has stopped, or has to end first.

    Args:
        row: its kind.
        job: the job.
        pod_sets: those of its workload, as they were before the start; None if there is no workload.
        is_active: whether it has pods that run.
    """
    if row.kind == kinds.JOBS:
        return _find_batch_stop(row, job, pod_sets, is_active=is_active)
    is_held = _is_held(row, job)
    if row.made is not None:
        if not is_held:
            return Change([write_suspend(row, job, is_on=True)], decides=True)
        found = _find_patch(job)
        if is_active or found is None or get_in(job, (*_PATCHES, found, *_OF_PATCH)) is None:
            return None
        return Change([write_operation("remove", (*_PATCHES, found, *_OF_PATCH))])
    if is_held and not _is_marked(row, job):
        return None
    operations = [] if is_held else [write_suspend(row, job, is_on=True)]
    parts = row.list_parts(job)
    if pod_sets is not None and len(parts) == len(pod_sets):
        for part, pod_set in zip(parts, pod_sets, strict=True):
            if get_in(job, part.place) is not None:
                fields = templates.restore(dict(read_object(pod_set, "template")), {})
                operations += write_changes(job, part.place, fields)
    return Change(operations, decides=not is_held) if operations else None


def _is_marked(row: JobKind, job: Json) -> bool:
    """Whether the templates of a job are as a start has left them, though somebody else has suspended it."""
    return any(
        names.KUEUE_POD_SET in read_object(one.template, "metadata", "labels")
        for one in row.list_parts(job)
    )


def _find_batch_stop(
    row: JobKind, job: Json, pod_sets: Sequence[Json] | None, *, is_active: bool
) -> Change | None:
    """A Job's template may change only once its start is forgotten, so an annotation says that more is to be done."""
    if not _is_held(row, job):
        made = [write_suspend(row, job, is_on=True), *_write_annotation(job)]
        return Change(made, decides=True)
    if get_in(job, _STOPPING) != "true":
        return Change(_write_annotation(job)) if pod_sets and _is_marked(row, job) else None
    if get_in(job, _START_TIME) is not None:
        # Its controller says when its pods are gone; before, the API server keeps the template as it is.
        has_stopped = has_condition(job, "Suspended") and not is_active
        return (
            Change([write_operation("remove", _START_TIME)], is_status=True)
            if has_stopped
            else None
        )
    operations = [write_operation("remove", _STOPPING)]
    (part,) = row.list_parts(job)
    if pod_sets:
        labels = read_object(job, *part.place, "metadata", "labels")
        kept = {key: labels[key] for key in batch.KEPT if key in labels}
        fields = templates.restore(dict(read_object(pod_sets[0], "template")), kept)
        operations += write_changes(job, part.place, fields)
        operations += _write_parallelism(job, pod_sets[0].get("count", 0))
    return Change(operations)


def _write_annotation(job: Json) -> list[Json]:
    if get_in(job, ("metadata", "annotations")) is None:
        value = {names.KUEUE_STOPPING: "true"}
        return [write_operation("add", ("metadata", "annotations"), value)]
    return [write_operation("add", _STOPPING, "true")]


def _find_patched_start(row: JobKind, job: Json, additions: Sequence[Addition]) -> Change:
    """A job of which another object is made says in patches what is added to the templates of that one."""
    wanted = [_write_patch(one) for one in additions]
    found = _find_patch(job)
    if found is not None and get_in(job, (*_PATCHES, found, *_OF_PATCH)) == wanted:
        return Change([write_suspend(row, job, is_on=False)], decides=True)
    patch = {"manager": _MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": wanted}}}}  # fmt: skip
    if found is not None:
        return Change([write_operation("replace", (*_PATCHES, found), patch)])
    if get_in(job, _PATCHES) is None:
        return Change([write_operation("add", _PATCHES, [patch])])
    return Change([write_operation("add", (*_PATCHES, "-"), patch)])


def _find_patch(job: Json) -> int | None:
    for i, one in enumerate(read_list(job, *_PATCHES)):
        if one.get("manager") == _MANAGER:
            return i
    return None


def _write_patch(one: Addition) -> Json:
    meta = {"annotations": dict(one.annotations), "labels": dict(one.labels)}
    spec: Json = {}
    if one.selector:
        spec["nodeSelector"] = dict(one.selector)
    if one.tolerations:
        spec["tolerations"] = list(one.tolerations)
    return {"name": one.name, "template": {"spec": {"template": {"metadata": meta, "spec": spec}}}}
