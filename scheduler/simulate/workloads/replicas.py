"""Deployments, ReplicaSets and ReplicationControllers: like pods with generated names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api import steering, wire
from scheduler.simulate.reading import objects
from scheduler.simulate.workloads import molds
from scheduler.simulate.workloads.contract import Made, Scene, first_to_go
from scheduler.simulate.workloads.owned import HASH
from scheduler.simulate.workloads.workload import Workload

_REVISION = "deployment.kubernetes.io/revision"


def of_set(workload: Workload, scene: Scene) -> Made:
    """The missing pods of a ReplicaSet or a ReplicationController."""
    there = scene.owned.alive(workload.key)
    missing = workload.count("replicas", 1) - len(there)
    if missing <= 0:
        return Made(surplus=first_to_go(there)[:-missing])
    mold = scene.mold(workload, missing)
    namespace, name = workload.key.namespace, workload.key.name
    return Made([mold.make(scene.names.new(namespace, name)) for _ in range(missing)])


def of_deployment(workload: Workload, scene: Scene) -> Made:
    """The missing pods, in the ReplicaSet that its template has or would have."""
    there = scene.owned.alive(workload.key)
    missing = workload.count("replicas", 1) - len(there)
    if missing <= 0:
        return Made(surplus=first_to_go(there)[:-missing])
    mold = scene.mold(workload, missing)
    namespace, template = workload.key.namespace, _template(workload)
    groups: list[steering.Group] = []
    present = _current(template, scene.replica_sets.get(workload.key, []))
    if present is None:
        hashed = molds.hash_of(template)
        set_name = f"{workload.key.name}-{hashed}"
        labels = {HASH: hashed}
        metadata = {"name": set_name, "namespace": namespace}
        body = {**workload.given.body, "kind": "ReplicaSet", "metadata": metadata}
        group = objects.group(body)
        selector = steering.SetSpec(_and(group, labels))
        groups.append(steering.ReplicaSet(group.metadata, selector))
    else:
        set_name = present.key.name
        hashed = _labels(_template(present)).get(HASH, "")
        labels = {HASH: hashed} if hashed else {}
    owner = wire.Owner("ReplicaSet", set_name, "apps/v1", controller=True)
    pods = [
        mold.make(scene.names.new(namespace, set_name), labels=labels, owner=owner)
        for _ in range(missing)
    ]
    return Made(pods, groups)


def _current(template: Mapping[str, Any], sets: list[Workload]) -> Workload | None:
    """The ReplicaSet whose template is the Deployment's; else none, as one would be made."""
    wanted = _without_hash(template)
    same = [one for one in sets if _without_hash(_template(one)) == wanted]
    return max(same, key=_revision, default=None)


def _revision(workload: Workload) -> int:
    text = (workload.meta.annotations or {}).get(_REVISION, "")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _template(workload: Workload) -> Mapping[str, Any]:
    return objects.mapping({"spec": workload.spec}, "spec", "template")


def _labels(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return objects.mapping(template, "metadata", "labels")


def _without_hash(template: Mapping[str, Any]) -> tuple[object, ...]:
    metadata = objects.mapping(template, "metadata")
    labels = {key: value for key, value in _labels(template).items() if key != HASH}
    return labels, metadata.get("annotations") or {}, template.get("spec")


def _and(group: steering.Group, labels: dict[str, str]) -> wire.LabelSelector:
    selector = group.selector or wire.LabelSelector()
    return wire.LabelSelector(
        {**(selector.match_labels or {}), **labels}, selector.match_expressions
    )
