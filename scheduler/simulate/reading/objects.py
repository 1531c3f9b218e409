"""Reads objects as a user writes them into the form in which the API server would serve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from scheduler.api import kai, kinds, kueue, selectors, steering, values, wire
from scheduler.api.claims import devices
from scheduler.api.claims.objects import KINDS as OF_DEVICES
from scheduler.api.claims.objects import (
    DeviceObject,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from scheduler.api.claims.requests import ClaimShapes
from scheduler.api.groups.objects import GroupObject, TopologyObject
from scheduler.api.queues import reading as queues
from scheduler.api.queues.workloads import Shapes, read_workload
from scheduler.api.storage import (
    KINDS,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageObject,
)
from scheduler.errors import BadInput
from scheduler.simulate.reading import shapes
from scheduler.simulate.reading.priorities import Priorities
from scheduler.state.claims.objects import read_claim
from scheduler.state.volumes import reading

T = TypeVar("T", bound=msgspec.Struct)

# The queue goes by age: a pod that is not in a cluster yet comes after the pods that are.
NOT_YET = "9999-12-31T23:59:59Z"


def decode(body: Mapping[str, Any], kind: type[T]) -> T:
    """Decode the typed form of an object.

    Raises:
        BadInput: a field has the wrong type; the error names the field.
    """
    try:
        return msgspec.convert(_drop_nulls(body), kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at ")
        # If a key is no text, the field is the map: "`key` in `$.metadata.labels`".
        field = path.rpartition(" in ")[2].strip("`").removeprefix("$.")
        if several := shapes.describe_several(field, problem, body):
            raise BadInput(*several) from error
        field = shapes.add_keys(field, problem, body)
        raise BadInput(field or "object", shapes.describe_type(problem)) from error


def _drop_nulls(value: Any) -> Any:
    """Drop nulls from an object: for the API server a null is an absent field, and kubectl prints some."""
    if isinstance(value, Mapping):
        return {k: _drop_nulls(v) for k, v in value.items() if v is not None}
    return [_drop_nulls(item) for item in value] if isinstance(value, list) else value


def read_pod(body: Mapping[str, Any], priorities: Priorities, position: int) -> wire.Pod:
    """Read a pod, with what admission would have filled in.

    Args:
        body: the object.
        priorities: all PriorityClasses that are given.
        position: its place among the objects, for names the API server would make up.

    Raises:
        BadInput: as ``decode``, or as ``Priorities.resolve_priority``.
    """
    result = admit_pod(body, priorities)
    meta = result.metadata
    meta.namespace = meta.namespace or "default"
    if not meta.name:
        meta.name = f"{(body.get('metadata') or {}).get('generateName') or 'pod-'}{position}"
    meta.uid = meta.uid or f"{meta.namespace}/{meta.name}"
    meta.creation_timestamp = meta.creation_timestamp or NOT_YET
    return result


def admit_pod(body: Mapping[str, Any], priorities: Priorities) -> wire.Pod:
    """Read a pod, or the template of pods, with what admission fills into a spec.

    Raises:
        BadInput: as ``read_pod``.
    """
    # A template has no kind; if one is written there, it means nothing.
    result = decode({**body, "kind": kinds.PODS.name}, wire.Pod)
    spec = result.spec
    spec.scheduler_name = spec.scheduler_name or "default-scheduler"
    if not spec.containers:
        raise BadInput("spec.containers", "at least one container is needed")
    for container in (*spec.containers, *(spec.init_containers or ())):
        _set_default_requests(container)
    if spec.host_network:
        written = body["spec"]
        _set_default_ports(spec.containers, written["containers"])
        _set_default_ports(spec.init_containers or [], written.get("initContainers") or [])
    spec.priority = priorities.resolve_priority(body.get("spec") or {})
    spec.preemption_policy = spec.preemption_policy or priorities.find_policy(
        body.get("spec") or {}
    )
    return result


def read_storage(body: Mapping[str, Any]) -> StorageObject:
    """Read a claim, a volume or another object of storage, as an API server and its controllers would have it.

    Raises:
        BadInput: as ``decode``; or a quantity or a selector is malformed.
    """
    found: StorageObject = decode(body, KINDS[body["kind"]])
    meta = found.metadata
    if isinstance(found, PersistentVolumeClaim | CSIStorageCapacity):
        meta.namespace = meta.namespace or "default"
    meta.uid = meta.uid or f"{meta.namespace}/{meta.name}"
    if isinstance(found, PersistentVolume) and not found.status.phase:
        # A manifest that no controller has seen has no phase.
        found.status.phase = "Bound" if found.spec.claim_ref else "Available"
    reading.read_object(found)
    return found


def read_claiming(body: Mapping[str, Any]) -> DeviceObject | ResourceClaimTemplate:
    """Read a ResourceClaim or its template, or an object that says which devices there are.

    Raises:
        BadInput: as ``decode``; or an amount is no quantity.
    """
    kind = body["kind"]
    if kind == kinds.CLAIM_TEMPLATES.name:
        found: DeviceObject | ResourceClaimTemplate = decode(body, ResourceClaimTemplate)
    else:
        found = decode(body, OF_DEVICES[kind])
    meta = found.metadata
    if kinds.BY_NAME[kind].is_namespaced:
        meta.namespace = meta.namespace or "default"
    meta.uid = meta.uid or "/".join(filter(None, (meta.namespace, meta.name)))
    if isinstance(found, ResourceSlice):
        devices.read_slice(found)
    if isinstance(found, ResourceClaim):
        read_claim(found, ClaimShapes())
    return found


def read_peer_object(body: Mapping[str, Any]) -> steering.PeerObject:
    """Read a Service, or another object that selects pods.

    Raises:
        BadInput: as ``decode``, or an API server would refuse its selector.
    """
    found: steering.PeerObject = decode(body, kinds.BY_NAME[body["kind"]].shape)
    selectors.read_selector(found.selector, "spec.selector")
    found.metadata.namespace = found.metadata.namespace or "default"
    return found


def read_grouping(body: Mapping[str, Any], kind: str) -> GroupObject | TopologyObject:
    """Read an object that says which pods are a group, or a topology; ``kind`` as the table of kinds names it.

    Raises:
        BadInput: as ``decode``.
    """
    found: GroupObject | TopologyObject = decode({**body, "kind": kind}, kinds.BY_NAME[kind].shape)
    meta = found.metadata
    if kinds.BY_NAME[kind].is_namespaced:
        meta.namespace = meta.namespace or "default"
    meta.uid = meta.uid or f"{meta.namespace}/{meta.name}"
    return found


def read_queueing(
    body: Mapping[str, Any], kind: str, position: int
) -> kueue.QueueObject | kai.Queue:
    """Read an object of queues; ``kind`` as the table of kinds names it.

    A Workload that is in no cluster yet comes after those that are; of several the first one that is given comes first.

    Raises:
        BadInput: as ``decode``, or as the reader of queues.
    """
    found: kueue.QueueObject | kai.Queue = decode({**body, "kind": kind}, kinds.BY_NAME[kind].shape)
    meta = found.metadata
    if kinds.BY_NAME[kind].is_namespaced:
        meta.namespace = meta.namespace or "default"
    if isinstance(found, kueue.Workload):
        meta.uid = meta.uid or f"{position:010} {meta.namespace}/{meta.name}"
        meta.creation_timestamp = meta.creation_timestamp or NOT_YET
        read_workload(found, Shapes())
    else:
        queues.check_object(found)
    return found


def read_budget(body: Mapping[str, Any]) -> steering.PodDisruptionBudget:
    """Read a PodDisruptionBudget; without a status none of its pods may go.

    Raises:
        BadInput: as ``read_peer_object``.
    """
    found = decode(body, steering.PodDisruptionBudget)
    selectors.read_selector(found.spec.selector, "spec.selector")
    found.metadata.namespace = found.metadata.namespace or "default"
    return found


def find_owner(pod: wire.Pod) -> wire.Owner | None:
    """Find the controller of a pod; None for a pod without one."""
    return next((one for one in pod.metadata.owner_references or () if one.controller), None)


def find_mapping(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Find an object within an object; empty when it is absent.

    Raises:
        BadInput: it is something else; the error names the field.
    """
    found: Any = body
    for depth, name in enumerate(path):
        found = values.read_mapping(found.get(name), ".".join(path[: depth + 1]))
    return found  # type: ignore[no-any-return]


def _set_default_ports(containers: list[wire.Container], written: list[Mapping[str, Any]]) -> None:
    """Make every port of a container a host port, as the API server does for pods on the network of the node."""
    for container, as_written in zip(containers, written, strict=True):
        for port, raw in zip(container.ports or (), as_written.get("ports") or (), strict=True):
            number = raw.get("containerPort")
            if not port.host_port and isinstance(number, int):
                port.host_port = number


def _set_default_requests(container: wire.Container) -> None:
    """Copy limits into requests that are missing, as the API server does."""
    resources = container.resources
    if resources is not None and resources.limits:
        resources.requests = {**resources.limits, **(resources.requests or {})}
