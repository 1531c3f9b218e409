"""JobSets: several Jobs, each with pods of its own; and TrainJobs, of which the trainer makes a JobSet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from scheduler.api import names, values, wire
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads import exclusive, jobs
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
        pods += [exclusive.admit_in_job_set(_mark(pod, job.meta)) for pod in made.pods]
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
            notes = _read_notes(job_set, one)
        for index in range(replicas):
            labels = {
                names.JOBSET_NAME: job_set.key.name,
                names.JOBSET_PART: str(one.get("name", "")),
                names.JOBSET_REPLICAS: str(replicas),
                names.JOBSET_INDEX: str(index),
            }
            name = f"{job_set.key.name}-{one.get('name', '')}-{index}"
            key = ObjectKey("Job", job_set.key.namespace, name)
            labels[exclusive.JOB_KEY] = exclusive.hash_name(key.namespace, name)
            meta = wire.Meta(
                name=name, namespace=key.namespace, labels=labels, annotations=labels | notes
            )
            meta.owner_references = [job_set.owner]
            yield i, Workload(job_set.given, key, meta, spec, {})


def _set_defaults(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set what the webhook of JobSets and the API server set in the spec of a Job."""
    completions = {} if "parallelism" in spec else {"completions": 1}
    return {"completionMode": "Indexed", **completions, **spec, "suspend": False}


def _read_notes(job_set: Workload, one: Mapping[str, Any]) -> dict[str, str]:
    """Read the annotations about exclusive topology that the Jobs of a template get; its own go before those of the JobSet."""
    own = objects.find_mapping(one, "template", "metadata", "annotations")
    found: dict[str, str] = {}
    for texts in (job_set.meta.annotations or {}, own):
        if names.JOBSET_EXCLUSIVE in texts:
            keys = names.JOBSET_EXCLUSIVE, names.JOBSET_BY_SELECTOR
            found |= {key: str(texts[key]) for key in keys if key in texts}
    return found


def _mark(pod: wire.Pod, job: wire.Meta) -> wire.Pod:
    """Write the labels and annotations of a Job on its pod."""
    meta = structs.replace(
        pod.metadata,
        labels={**(pod.metadata.labels or {}), **(job.labels or {})},
        annotations={**(pod.metadata.annotations or {}), **(job.annotations or {})},
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
