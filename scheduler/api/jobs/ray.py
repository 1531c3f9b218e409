"""Clusters, jobs and services of Ray.

Source: Kueue (2026-08), ``raycluster``, ``rayjob`` and ``rayservice`` below ``pkg/controller/jobs``; what KubeRay adds to
pods is as it stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api.jobs.parts import (
    JobEnd,
    JobPart,
    JobState,
    Json,
    Place,
    get_in,
    has_condition,
    read_count,
    read_list,
    read_object,
)

_HEAD, _SUBMITTER = "head", "submitter"
_OF_JOB = "spec", "rayClusterSpec"
_OF_SERVICE = "spec", "rayClusterConfig"
_UNDER: dict[str, Place] = {
    "RayCluster": ("spec",),
    "RayJob": _OF_JOB,
    "RayService": _OF_SERVICE,
}
_SUBMITTER_PLACE = "spec", "submitterPodTemplate"
_BY_JOB, _BY_SIDECAR = "K8sJobMode", "SidecarMode"
_SUBMITS: Json = {
    "requests": {"cpu": "500m", "memory": "200Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}
_SCALES: Json = {key: {"cpu": "500m", "memory": "512Mi"} for key in ("requests", "limits")}


def list_cluster_parts(job: Json) -> list[JobPart]:
    """List the parts of a RayCluster: the head, and its groups of workers."""
    return _list_parts(job, ("spec",))


def _list_parts(job: Json, under: Place) -> list[JobPart]:
    place = (*under, "headGroupSpec", "template")
    head = dict(read_object(job, *place))
    if get_in(job, (*under, "enableInTreeAutoscaling")) is True:
        options = read_object(job, *under, "autoscalerOptions")
        scaler = {"name": "autoscaler", "resources": options.get("resources") or _SCALES}
        head = _add_container(head, scaler)
    parts = [JobPart(_HEAD, 1, head, place)]
    for i, one in enumerate(read_list(job, *under, "workerGroupSpecs")):
        place = (*under, "workerGroupSpecs", i, "template")
        template = dict(read_object(job, *place))
        name = str(one.get("groupName", "")).lower()
        parts.append(JobPart(name, _count_workers(job, *place[:-1]), template, place))
    return parts


def _count_workers(job: Json, *group: str | int) -> int:
    replicas, hosts = (read_count(job, *group, key) for key in ("replicas", "numOfHosts"))
    return (1 if replicas is None else replicas) * max(1, hosts or 1)


def _add_container(template: Json, container: Json) -> Json:
    spec = read_object(template, "spec")
    return template | {
        "spec": {**spec, "containers": [*read_list(template, "spec", "containers"), container]}
    }


def list_job_parts(job: Json) -> list[JobPart]:
    """List the parts of a RayJob: those of its cluster, and the pod that submits it if that is one of its own."""
    parts = _list_parts(job, _OF_JOB)
    mode = get_in(job, ("spec", "submissionMode"))
    if mode == _BY_JOB:
        given = get_in(job, _SUBMITTER_PLACE)
        template = dict(given) if isinstance(given, Mapping) else _make_submitter(parts[0])
        parts.append(JobPart(_SUBMITTER, 1, template, _SUBMITTER_PLACE))
    elif mode == _BY_SIDECAR:
        sidecar = {"name": "ray-job-submitter", "resources": _SUBMITS}
        parts[0] = parts[0]._replace(template=_add_container(parts[0].template, sidecar))
    return parts


def list_service_parts(job: Json) -> list[JobPart]:
    """List the parts of a RayService: those of its cluster."""
    return _list_parts(job, _OF_SERVICE)


def _make_submitter(head: JobPart) -> Json:
    """Make the template of the pod that submits a job, as KubeRay makes it where the job has none."""
    containers = read_list(head.template, "spec", "containers")
    image = str(containers[0].get("image", "")) if containers else ""
    container = {"name": "ray-job-submitter", "image": image, "resources": _SUBMITS}
    return {"spec": {"containers": [container], "restartPolicy": "Never"}}


def find_autoscaling(kind: str, job: Json) -> str:
    """Find the field by which the cluster of a job of Ray changes its size; empty if it does not."""
    place = (*_UNDER[kind], "enableInTreeAutoscaling") if kind in _UNDER else ()
    return ".".join(map(str, place)) if place and get_in(job, place) is True else ""


def is_elsewhere(job: Json) -> bool:
    """Whether a RayJob runs in a cluster that is there already, so it needs no quota."""
    return bool(get_in(job, ("spec", "clusterSelector")))


def read_cluster_state(job: Json) -> JobState:
    """Read how far a RayCluster is; it has no end."""
    is_ready = _read_text(job, "state") == "ready"
    return JobState(is_active=is_ready, is_ready=is_ready)


def read_service_state(job: Json) -> JobState:
    """Read how far a RayService is; it has no end."""
    is_ready = has_condition(job, "Ready")
    return JobState(is_active=is_ready, is_ready=is_ready)


def read_job_state(job: Json) -> JobState:
    """Read how far a RayJob is."""
    deployed = _read_text(job, "jobDeploymentStatus")
    end = None
    if deployed in {"Failed", "Complete"}:
        has_succeeded = _read_text(job, "jobStatus") == "SUCCEEDED"
        end = JobEnd(has_succeeded, _read_text(job, "message"))
    return JobState(
        is_active=deployed not in {"", "Suspended"},
        is_ready=get_in(job, ("status", "rayClusterStatus", "state")) == "ready",
        end=end,
        is_on_hold=deployed == "ValidationFailed",
    )


def _read_text(job: Json, key: str) -> str:
    found: Any = get_in(job, ("status", key))
    return found if isinstance(found, str) else ""
