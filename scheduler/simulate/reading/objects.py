"""From objects as a user writes them to the form in which the API server would serve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from scheduler.api import kinds, selectors, steering, values, wire
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
from scheduler.state.volumes import reading

T = TypeVar("T", bound=msgspec.Struct)

# The queue goes by age: a pod that is not in a cluster yet comes after those that are.
NOT_YET = "9999-12-31T23:59:59Z"


def decode(body: Mapping[str, Any], kind: type[T]) -> T:
    """The typed form of an object.

    Raises:
        BadInput: a field has the wrong type; names it.
    """
    try:
        return msgspec.convert(_without_nulls(body), kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at ")
        # Of a key that is no text, the map: "`key` in `$.metadata.labels`".
        field = path.rpartition(" in ")[2].strip("`").removeprefix("$.")
        if several := shapes.of_several(field, problem, body):
            raise BadInput(*several) from error
        field = shapes.with_keys(field, problem, body)
        raise BadInput(field or "object", shapes.said(problem)) from error


def _without_nulls(value: Any) -> Any:
    """The object without nulls: for the API server a null is a field that is absent, and kubectl prints some."""
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def pod(body: Mapping[str, Any], priorities: Priorities, position: int) -> wire.Pod:
    """A pod with what admission would have filled in.

    Args:
        body: the object.
        priorities: every PriorityClass given.
        position: its place among the objects, for names the API server would make up.

    Raises:
        BadInput: as ``decode``, or as ``Priorities.resolve_priority``.
    """
    result = admitted(body, priorities)
    meta = result.metadata
    meta.namespace = meta.namespace or "default"
    if not meta.name:
        meta.name = f"{(body.get('metadata') or {}).get('generateName') or 'pod-'}{position}"
    meta.uid = meta.uid or f"{meta.namespace}/{meta.name}"
    meta.creation_timestamp = meta.creation_timestamp or NOT_YET
    return result


def admitted(body: Mapping[str, Any], priorities: Priorities) -> wire.Pod:
    """A pod, or the template of pods, with what admission fills into a spec.

    Raises:
        BadInput: as ``pod``.
    """
    # A template has no kind; one that is written there means nothing.
    result = decode({**body, "kind": kinds.PODS.name}, wire.Pod)
    spec = result.spec
    spec.scheduler_name = spec.scheduler_name or "default-scheduler"
    if not spec.containers:
        raise BadInput("spec.containers", "at least one container is needed")
    for container in (*spec.containers, *(spec.init_containers or ())):
        _default_requests(container)
    if spec.host_network:
        written = body["spec"]
        _default_ports(spec.containers, written["containers"])
        _default_ports(spec.init_containers or [], written.get("initContainers") or [])
    spec.priority = priorities.resolve_priority(body.get("spec") or {})
    spec.preemption_policy = spec.preemption_policy or priorities.policy_of(body.get("spec") or {})
    return result


def storage(body: Mapping[str, Any]) -> StorageObject:
    """A claim, a volume or another object of storage, as an API server and its controllers would have it.

    Raises:
        BadInput: as ``decode``; or a quantity or a selector is malformed.
    """
    found: StorageObject = decode(body, KINDS[body["kind"]])
    meta = found.metadata
    if isinstance(found, PersistentVolumeClaim | CSIStorageCapacity):
        meta.namespace = meta.namespace or "default"
    meta.uid = meta.uid or f"{meta.namespace}/{meta.name}"
    if isinstance(found, PersistentVolume) and not found.status.phase:
        # Of a manifest that no controller has seen.
        found.status.phase = "Bound" if found.spec.claim_ref else "Available"
    reading.read_object(found)
    return found


def group(body: Mapping[str, Any]) -> steering.Group:
    """A Service, or another object that selects pods.

    Raises:
        BadInput: as ``decode``, or its selector is not what an API server takes.
    """
    found: steering.Group = decode(body, kinds.BY_NAME[body["kind"]].shape)
    selectors.read_selector(found.selector, "spec.selector")
    found.metadata.namespace = found.metadata.namespace or "default"
    return found


def budget(body: Mapping[str, Any]) -> steering.PodDisruptionBudget:
    """A PodDisruptionBudget; without a status none of its pods may go.

    Raises:
        BadInput: as ``group``.
    """
    found = decode(body, steering.PodDisruptionBudget)
    selectors.read_selector(found.spec.selector, "spec.selector")
    found.metadata.namespace = found.metadata.namespace or "default"
    return found


def owner_of(pod: wire.Pod) -> wire.Owner | None:
    """The controller of a pod, None for a pod that nothing made."""
    return next((one for one in pod.metadata.owner_references or () if one.controller), None)


def mapping(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """An object within an object, empty when it is absent.

    Raises:
        BadInput: it is something else; names the field.
    """
    found: Any = body
    for depth, name in enumerate(path):
        found = values.read_mapping(found.get(name), ".".join(path[: depth + 1]))
    return found  # type: ignore[no-any-return]


def _default_ports(containers: list[wire.Container], written: list[Mapping[str, Any]]) -> None:
    """On the node's own network, where the API server makes every port of a container one of the host."""
    for container, as_written in zip(containers, written, strict=True):
        for port, raw in zip(container.ports or (), as_written.get("ports") or (), strict=True):
            number = raw.get("containerPort")
            if not port.host_port and isinstance(number, int):
                port.host_port = number


def _default_requests(container: wire.Container) -> None:
    """The API server copies limits into requests that are missing."""
    resources = container.resources
    if resources is not None and resources.limits:
        resources.requests = {**resources.limits, **(resources.requests or {})}
