"""Deployments, ReplicaSets and ReplicationControllers: alike pods with generated names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api import steering, wire
from scheduler.simulate.reading import objects
from scheduler.simulate.workloads import molds
from scheduler.simulate.workloads.contract import Made, Scene, sort_by_deletion
from scheduler.simulate.workloads.owned import HASH
from scheduler.simulate.workloads.workload import Workload

_REVISION = "deployment.kubernetes.io/revision"


def make_set_pods(workload: Workload, scene: Scene) -> Made:
    """Make the missing pods of a ReplicaSet or a ReplicationController."""
    there = scene.owned.list_alive(workload.key)
    missing = workload.read_count("replicas", 1) - len(there)
    if missing <= 0:
        return Made(surplus=sort_by_deletion(there)[:-missing])
    mold = scene.make_mold(workload, missing)
    namespace, name = workload.key.namespace, workload.key.name
    return Made([mold.make_pod(scene.names.make_name(namespace, name)) for _ in range(missing)])


def make_deployment_pods(workload: Workload, scene: Scene) -> Made:
    """Make the missing pods of a Deployment, in the ReplicaSet that its template has or would have."""
    there = scene.owned.list_alive(workload.key)
    missing = workload.read_count("replicas", 1) - len(there)
    if missing <= 0:
        return Made(surplus=sort_by_deletion(there)[:-missing])
    mold = scene.make_mold(workload, missing)
    namespace, template = workload.key.namespace, _read_template(workload)
    groups: list[steering.PeerObject] = []
    present = _find_current(template, scene.replica_sets.get(workload.key, []))
    if present is None:
        hashed = molds.hash_template(template)
        set_name = f"{workload.key.name}-{hashed}"
        labels = {HASH: hashed}
        metadata = {"name": set_name, "namespace": namespace}
        body = {**workload.given.body, "kind": "ReplicaSet", "metadata": metadata}
        group = objects.read_peer_object(body)
        selector = steering.SetSpec(_add_labels(group, labels))
        groups.append(steering.ReplicaSet(group.metadata, selector))
    else:
        set_name = present.key.name
        hashed = _read_labels(_read_template(present)).get(HASH, "")
        labels = {HASH: hashed} if hashed else {}
    owner = wire.Owner("ReplicaSet", set_name, "apps/v1", controller=True)
    pods = [
        mold.make_pod(scene.names.make_name(namespace, set_name), labels=labels, owner=owner)
        for _ in range(missing)
    ]
    return Made(pods, groups)


def _find_current(template: Mapping[str, Any], sets: list[Workload]) -> Workload | None:
    """Find the ReplicaSet with the Deployment's template; None if it would have to be made."""
    wanted = _drop_hash(template)
    same = [one for one in sets if _drop_hash(_read_template(one)) == wanted]
    return max(same, key=_read_revision, default=None)


def _read_revision(workload: Workload) -> int:
    text = (workload.meta.annotations or {}).get(_REVISION, "")
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _read_template(workload: Workload) -> Mapping[str, Any]:
    return objects.find_mapping({"spec": workload.spec}, "spec", "template")


def _read_labels(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return objects.find_mapping(template, "metadata", "labels")


def _drop_hash(template: Mapping[str, Any]) -> tuple[object, ...]:
    metadata = objects.find_mapping(template, "metadata")
    labels = {key: value for key, value in _read_labels(template).items() if key != HASH}
    return labels, metadata.get("annotations") or {}, template.get("spec")


def _add_labels(group: steering.PeerObject, labels: dict[str, str]) -> wire.LabelSelector:
    selector = group.selector or wire.LabelSelector()
    return wire.LabelSelector(
        {**(selector.match_labels or {}), **labels}, selector.match_expressions
    )
