"""RayClusters: a head and groups of workers; RayJobs and RayServices, each of which has a RayCluster made for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from scheduler.api import names, values, wire
from scheduler.api.groups.readers.workloads import count_ray_pods
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.contract import NOTHING, Idle, Made, Scene
from scheduler.simulate.workloads.workload import Workload, take_template

_OVER = ("SUCCEEDED", "FAILED", "STOPPED", "Complete", "Failed")


class _Group(NamedTuple):
    """The head, or the workers of one group.

    Attributes:
        name: the name of the group.
        kind: ``head`` or ``worker``.
        size: how many pods it has.
        hosts: how many pods a replica has.
        template: their template, and its path.
    """

    name: str
    kind: str
    size: int
    hosts: int
    template: Any
    path: str


def make_cluster_pods(cluster: Workload, scene: Scene) -> Made:
    """Make the pods of a RayCluster that are missing."""
    if cluster.spec.get("suspend") is True:
        return Made(idle=Idle.SUSPENDED)
    pods: list[wire.Pod] = []
    templates: dict[str, str] = {}
    for group in _list_groups(cluster):
        made = _make_group_pods(cluster, scene, group)
        pods += made
        templates |= {pod.metadata.uid: group.path for pod in made}
    return Made(pods, templates=templates)


def make_ray_job_pods(job: Workload, scene: Scene) -> Made:
    """Make the pods of the RayCluster of a RayJob; the pod that submits the job comes when these run."""
    states = job.status.get("jobStatus"), job.status.get("jobDeploymentStatus")
    if any(state in _OVER for state in states):
        return Made(idle=Idle.FINISHED)
    if job.spec.get("suspend") is True:
        return Made(idle=Idle.SUSPENDED)
    if job.spec.get("clusterSelector"):
        return NOTHING
    return _make_pods_of_cluster(job, scene, job.status.get("rayClusterName"), "rayClusterSpec")


def make_ray_service_pods(service: Workload, scene: Scene) -> Made:
    """Make the pods of the RayCluster from which a RayService serves."""
    active = service.status.get("activeServiceStatus")
    name = active.get("rayClusterName") if isinstance(active, dict) else None
    return _make_pods_of_cluster(service, scene, name, "rayClusterConfig")


def _make_pods_of_cluster(job: Workload, scene: Scene, name: Any, under: str) -> Made:
    """Make the pods of the RayCluster that is made of a job or a service.

    Args:
        job: the job or the service.
        scene: all that the pods depend on.
        name: of the cluster, if it has one.
        under: where its spec has that of the cluster.
    """
    namespace = job.key.namespace
    if not isinstance(name, str) or not name:
        name = scene.names.make_name(namespace, job.key.name)
    key = ObjectKey("RayCluster", namespace, name)
    if key in scene.there:
        return NOTHING
    spec = objects.find_mapping({"spec": job.spec}, "spec", under)
    # The annotations of the owner are copied to its cluster; one of them may make it a group.
    meta = wire.Meta(name=name, namespace=namespace, labels=job.meta.labels)
    body = {
        "apiVersion": "ray.io/v1",
        "kind": key.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": job.meta.annotations or {},
        },
        "spec": spec,
    }
    cluster = replace(job, key=key, meta=meta, spec=spec, status={})
    made = make_cluster_pods(cluster, scene)
    templates = {
        uid: path.replace("spec.", f"spec.{under}.", 1) for uid, path in made.templates.items()
    }
    grouping = [objects.read_grouping(body, key.kind)]
    return replace(made, templates=templates, grouping=grouping)


def _list_groups(cluster: Workload) -> Iterator[_Group]:
    head = objects.find_mapping({"spec": cluster.spec}, "spec", "headGroupSpec")
    yield _Group(names.RAY_HEAD, "head", 1, 1, head.get("template"), "spec.headGroupSpec.template")
    field = "spec.workerGroupSpecs"
    given = values.read_items(cluster.spec.get("workerGroupSpecs"), field, dict)
    for i, one in enumerate(given):
        at = f"{field}[{i}]"
        hosts = values.read_integer(one.get("numOfHosts", 1), f"{at}.numOfHosts", 1, 2**31 - 1)
        yield _Group(
            str(one.get("groupName", "")),
            "worker",
            count_ray_pods(one, at),
            hosts,
            one.get("template"),
            f"{at}.template",
        )


def _make_group_pods(cluster: Workload, scene: Scene, group: _Group) -> list[wire.Pod]:
    namespace, name = cluster.key.namespace, cluster.key.name
    there = [
        pod.metadata.labels or {}
        for pod in scene.owned.list_alive(cluster.key)
        if (pod.metadata.labels or {}).get(names.RAY_PART) == group.name
    ]
    missing = group.size - len(there)
    if missing <= 0:
        return []
    mold = scene.make_mold(take_template(cluster, group.template, group.path), missing)
    taken = {(one.get(names.RAY_REPLICA), one.get(names.RAY_HOST)) for one in there}
    places = (divmod(i, group.hosts) for i in range(group.size))
    free = [(str(i), str(j)) for i, j in places if (str(i), str(j)) not in taken]
    base = f"{name}-head" if group.kind == "head" else f"{name}-{group.name}-worker"
    labels = {
        names.RAY_CLUSTER: name,
        names.RAY_PART: group.name,
        "ray.io/node-type": group.kind,
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": f"{name}-{group.kind}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    pods = []
    for replica, host in free[:missing]:
        place = {names.RAY_REPLICA: replica, names.RAY_HOST: host} if group.hosts > 1 else {}
        owner = wire.Owner(cluster.key.kind, name, "ray.io/v1", controller=True)
        pod_name = scene.names.make_name(namespace, base)
        pods.append(mold.make_pod(pod_name, labels={**labels, **place}, owner=owner))
    return pods
