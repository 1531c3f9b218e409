"""The jobs of Kubeflow's training operators: numbered pods of each role, and the launcher of an MPIJob."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scheduler.api import names, values, wire
from scheduler.simulate.reading import objects
from scheduler.simulate.workloads.contract import Idle, Made, Scene, find_idle
from scheduler.simulate.workloads.workload import PODS_MAX, Workload, take_template

_OVER = ("Succeeded", "Failed")
_LAUNCHER = "Launcher"
_LEADING = ("chief", "master")


class _Role(NamedTuple):
    """The pods of one role.

    Attributes:
        name: the name of the role, such as ``Worker``.
        size: how many pods it has.
        template: their template, and its path.
    """

    name: str
    size: int
    template: Any
    path: str


def make_maker(key: str, operator: str) -> Callable[[Workload, Scene], Made]:
    """Make the function that makes the missing pods of a job with roles under ``spec.KEY``, as its operator names them."""

    def make_pods(job: Workload, scene: Scene) -> Made:
        if (idle := _find_idle(job)) is not None:
            return Made(idle=idle)
        pods: list[wire.Pod] = []
        templates: dict[str, str] = {}
        for role in _list_roles(job, key):
            word = role.name.lower()
            labels = {
                names.TRAINING_NAME: job.key.name,
                names.TRAINING_OPERATOR: operator,
                names.TRAINING_PART: word,
                **({names.TRAINING_ROLE: "master"} if word in _LEADING else {}),
            }
            made = _make_numbered(job, scene, role, labels)
            pods += made
            templates |= {pod.metadata.uid: role.path for pod in made}
        return Made(pods, templates=templates)

    return make_pods


def make_mpi_pods(job: Workload, scene: Scene) -> Made:
    """Make the pods of an MPIJob that are missing; a launcher that is to start after its workers is made, too."""
    if (idle := _find_idle(job)) is not None:
        return Made(idle=idle)
    is_first = str(job.given.body.get("apiVersion")).endswith("/v1")
    operator = "mpijob-controller" if is_first else "mpi-operator"
    pods: list[wire.Pod] = []
    templates: dict[str, str] = {}
    for role in _list_roles(job, "mpiReplicaSpecs"):
        word = role.name.lower()
        labels = {
            names.TRAINING_NAME: job.key.name,
            names.TRAINING_OPERATOR: operator,
            names.TRAINING_ROLE: word,
            **({names.TRAINING_PART: word} if is_first else {}),
        }
        if role.name == _LAUNCHER:
            made = _make_launcher(job, scene, role, labels)
        else:
            made = _make_numbered(job, scene, role, labels)
        pods += made
        templates |= {pod.metadata.uid: role.path for pod in made}
    return Made(pods, templates=templates)


def _find_idle(job: Workload) -> Idle | None:
    run = objects.find_mapping({"spec": job.spec}, "spec", "runPolicy")
    return find_idle(job, run, _OVER)


def _list_roles(job: Workload, key: str) -> list[_Role]:
    """List the roles of a job, the leading one first."""
    given = objects.find_mapping({"spec": job.spec}, "spec", key)
    roles = []
    for name in sorted(given):
        at = f"spec.{key}.{name}"
        role = values.read_mapping(given[name], at)
        count = values.read_integer(role.get("replicas", 1), f"{at}.replicas", 0, PODS_MAX)
        roles.append(_Role(name, count, role.get("template"), f"{at}.template"))
    return roles


def _make_numbered(
    job: Workload, scene: Scene, role: _Role, labels: Mapping[str, str]
) -> list[wire.Pod]:
    """Make the pods of a role that neither exist nor have done their work."""
    there = {pod.metadata.name for pod in _list_there(job, scene)}
    wanted = {f"{job.key.name}-{role.name.lower()}-{i}": i for i in range(role.size)}
    missing = {name: i for name, i in wanted.items() if name not in there}
    if not missing:
        return []
    mold = scene.make_mold(take_template(job, role.template, role.path), len(missing))
    return [
        mold.make_pod(name, labels={**labels, names.TRAINING_INDEX: str(i)})
        for name, i in missing.items()
    ]


def _make_launcher(
    job: Workload, scene: Scene, role: _Role, labels: Mapping[str, str]
) -> list[wire.Pod]:
    """Make the launcher, which mpi-operator starts by a Job, and the older training operator as a pod."""
    there = (pod.metadata.labels or {} for pod in _list_there(job, scene))
    if any(labels.items() <= one.items() for one in there):
        return []
    mold = scene.make_mold(take_template(job, role.template, role.path), 1)
    name = f"{job.key.name}-launcher"
    if names.TRAINING_PART in labels:
        return [mold.make_pod(name, labels=labels)]
    owner = wire.Owner("Job", name, "batch/v1", controller=True)
    return [
        mold.make_pod(scene.names.make_name(job.key.namespace, name), labels=labels, owner=owner)
    ]


def _list_there(job: Workload, scene: Scene) -> list[wire.Pod]:
    launcher = job.key._replace(kind="Job", name=f"{job.key.name}-launcher")
    return [
        pod
        for key in (job.key, launcher)
        for pod in (*scene.owned.list_alive(key), *scene.owned.list_succeeded(key))
    ]
