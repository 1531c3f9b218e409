"""What the webhook refuses of jobs that change their size while they run.

Source: Kueue (2026-08), ``ValidateElasticJobAnnotation`` and ``validatedUpdateForEnabledWorkloadSlice`` of
``pkg/controller/jobframework/validation.go``, ``pkg/controller/jobs/job/job_webhook.go`` and
``pkg/controller/jobs/raycluster/common.go`` (``ValidateCreate``).
"""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import names
from scheduler.api.jobs import ray, workloads
from scheduler.api.jobs.table import JobKind
from scheduler.errors import BadInput
from scheduler.kube.webhook.known import Request, read_texts

_FIELD = f"metadata.annotations[{names.KUEUE_ELASTIC}]"
_NEEDS_ALL = (
    names.KUEUE_REQUIRED,
    names.KUEUE_PREFERRED,
    names.KUEUE_SLICE_LEVEL,
    names.KUEUE_SLICES,
)


def check_resizing(request: Request, row: JobKind, *, is_waiting: bool) -> None:
    """Check whether a job may change its size while it runs; ``is_waiting``: whether it has waited, and goes on so.

    Raises:
        BadInput: it may not.
    """
    job, before = request.found, request.before
    is_elastic, was_elastic = (
        one is not None and workloads.is_elastic(one) for one in (job, before)
    )
    if before is not None and is_elastic != was_elastic and not is_waiting:
        raise BadInput(_FIELD, "may not change while the job runs")
    if is_elastic and not was_elastic and (why := row.refuse_slices()):
        raise BadInput(_FIELD, why)
    if is_elastic and names.KUEUE_LEAST in read_texts(job, "metadata", "annotations"):
        field = f"metadata.annotations[{names.KUEUE_LEAST}]"
        raise BadInput(field, f"cannot be used together with {names.KUEUE_ELASTIC}")
    place = ray.find_autoscaling(row.kind.kind, job)
    was_scaled = before is not None and bool(ray.find_autoscaling(row.kind.kind, before))
    if place and not was_scaled and not is_elastic:
        known = ": only for a RayCluster with" if not row.has_slices else ": only with"
        text = f'the annotation {names.KUEUE_ELASTIC}: "true"'
        raise BadInput(place, f"has quota for one size{known} {text}")


def check_topology(request: Request, part: str, texts: Mapping[str, str]) -> None:
    """Check what a job that changes its size requests of a topology; ``texts``: the annotations of the pods of a part.

    Raises:
        BadInput: it requests what pods cannot have that come later than the others.
    """
    for key in _NEEDS_ALL if workloads.is_elastic(request.found) else ():
        if key in texts:
            where = f"pod set {part}: metadata.annotations[{key}]"
            raise BadInput(where, f"cannot be used together with {names.KUEUE_ELASTIC}")
