"""JobSets: several Jobs, each with pods of its own; and TrainJobs, of which the trainer makes a JobSet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from scheduler.api import names, values, wire
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads import jobs
from scheduler.simulate.workloads.contract import NOTHING, Made, Scene, find_idle
from scheduler.simulate.workloads.workload import PODS_MAX, Workload, prefix_errors

_FIELD = "spec.replicatedJobs"
_OVER = ("Completed", "Failed")


def make_job_set_pods(job_set: Workload, scene: Scene) -> Made:
    """Make the pods of the Jobs of a JobSet that do not exist yet; a Job that exists makes its own.

    Jobs that are to start only after others are made, too: their pods come as soon as the others run.
    """
    if (idle := find_idle(job_set, job_set.spec, _OVER)) is not None:
        return Made(idle=idle)
    pods: list[wire.Pod] = []
    templates: dict[str, str] = {}
    for i, job in _list_jobs(job_set):
        if job.key in scene.there:
            continue
        path = f"{_FIELD}[{i}].template"
        with prefix_errors(path):
            made = jobs.make_job_pods(job, scene)
        pods += [_mark(pod, job.meta.labels or {}) for pod in made.pods]
        templates |= {pod.metadata.uid: f"{path}.{job.template}" for pod in made.pods}
    return Made(pods, templates=templates)


def _list_jobs(job_set: Workload) -> Iterator[tuple[int, Workload]]:
    """Yield the Jobs of a JobSet, each with the place of its template."""
    given = values.read_items(job_set.spec.get("replicatedJobs"), _FIELD, dict)
    for i, one in enumerate(given):
        at = f"{_FIELD}[{i}]"
        replicas = values.read_integer(one.get("replicas", 1), f"{at}.replicas", 0, PODS_MAX)
        with prefix_errors(at):
            spec = _set_defaults(objects.find_mapping(one, "template", "spec"))
        for index in range(replicas):
            labels = {
                names.JOBSET_NAME: job_set.key.name,
                names.JOBSET_PART: str(one.get("name", "")),
                names.JOBSET_REPLICAS: str(replicas),
                names.JOBSET_INDEX: str(index),
            }
            name = f"{job_set.key.name}-{one.get('name', '')}-{index}"
            key = ObjectKey("Job", job_set.key.namespace, name)
            meta = wire.Meta(name=name, namespace=key.namespace, labels=labels)
            meta.owner_references = [job_set.owner]
            yield i, Workload(job_set.given, key, meta, spec, {})


def _set_defaults(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set what the webhook of JobSets and the API server set in the spec of a Job."""
    completions = {} if "parallelism" in spec else {"completions": 1}
    return {"completionMode": "Indexed", **completions, **spec, "suspend": False}


def _mark(pod: wire.Pod, labels: Mapping[str, str]) -> wire.Pod:
    """Write the labels of a Job on its pod; a JobSet writes each of them as an annotation, too."""
    meta = structs.replace(
        pod.metadata,
        labels={**(pod.metadata.labels or {}), **labels},
        annotations={**(pod.metadata.annotations or {}), **labels},
    )
    return structs.replace(pod, metadata=meta)


def make_train_job_pods(train_job: Workload, scene: Scene) -> Made:
    """Make nothing: the JobSet of a TrainJob makes the pods. Only its runtime, which is not read, says what is in it."""
    if (idle := find_idle(train_job, train_job.spec, ("Complete", "Failed"))) is not None:
        return Made(idle=idle)
    _, namespace, name = train_job.key
    if ObjectKey("JobSet", namespace, name) in scene.there:
        return NOTHING
    text = (
        f"TrainJob {namespace}/{name}: its pods are those of the JobSet that its runtime describes, and that JobSet is not "
        "among the objects, so no pod is made for it; add the JobSet"
    )
    return Made(remark=text)
