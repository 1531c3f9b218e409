"""JobSets, and the jobs of Kubeflow's trainer, which makes a JobSet of each.

Source: Kueue (2026-08), ``pkg/controller/jobs/jobset/jobset_controller.go`` and ``pkg/controller/jobs/trainjob``.
"""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.jobs import batch
from scheduler.api.jobs.parts import (
    JobPart,
    JobState,
    Json,
    find_end,
    read_count,
    read_list,
    read_object,
    sum_counts,
)

_JOBS = "spec", "replicatedJobs"
_STATUSES = "status", "replicatedJobsStatus"


def list_parts(job: Json) -> list[JobPart]:
    """List the parts of a JobSet: one for each of its replicated jobs."""
    parts = []
    for i, one in enumerate(read_list(job, *_JOBS)):
        replicas = _count_replicas(job, i)
        place = (*_JOBS, i, "template", "spec", "template")
        parts.append(
            JobPart(
                str(one.get("name", "")).lower(),
                replicas * batch.count_pods(job, *_JOBS, i, "template", "spec"),
                dict(read_object(job, *place)),
                place,
                index_label=names.JOB_INDEX,
                inner=(names.JOBSET_INDEX, replicas),
            )
        )
    return parts


def _count_replicas(job: Json, i: int) -> int:
    found = read_count(job, *_JOBS, i, "replicas")
    return 1 if found is None else found


def read_state(job: Json) -> JobState:
    """Read how far a JobSet is."""
    statuses = {str(one.get("name", "")): one for one in read_list(job, *_STATUSES)}
    n_replicas, ended = 0, []
    for i, one in enumerate(read_list(job, *_JOBS)):
        name, replicas = str(one.get("name", "")), _count_replicas(job, i)
        n_replicas += replicas
        succeeded = read_count(statuses.get(name, {}), "succeeded") or 0
        if 0 < succeeded <= replicas:
            n_pods = succeeded * batch.count_pods(job, *_JOBS, i, "template", "spec")
            ended.append((name.lower(), n_pods))
    found = list(statuses.values())
    return JobState(
        is_active=sum_counts(found, "active") > 0,
        is_ready=sum_counts(found, "ready") + sum_counts(found, "succeeded") == n_replicas,
        end=find_end(job, succeeded="Completed", failed="Failed"),
        ended=tuple(ended),
    )


def read_train_state(job: Json) -> JobState:
    """Read how far a job of Kubeflow's trainer is."""
    statuses = read_list(job, "status", "jobsStatus")
    n_jobs = len(statuses)
    ready = sum_counts(statuses, "ready") + sum_counts(statuses, "succeeded")
    return JobState(
        is_active=sum_counts(statuses, "active") > 0,
        is_ready=0 < n_jobs <= ready,
        end=find_end(job, succeeded="Complete", failed="Failed"),
    )
