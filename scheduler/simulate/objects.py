"""From objects as a user writes them to the form in which the API server would serve them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from scheduler.api import selectors, values, wire
from scheduler.api.door import events
from scheduler.api.names import GroupKind
from scheduler.errors import BadInput

T = TypeVar("T", wire.Pod, wire.Node, wire.Namespace, wire.Service, wire.PodSet)

_SYSTEM_PRIORITIES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}

_PRIORITY_MIN, _PRIORITY_MAX = -(2**31), 2**31 - 1


def decode(body: Mapping[str, Any], kind: type[T]) -> T:
    """The typed form of an object.

    Raises:
        BadInput: a field has the wrong type; names it.
    """
    try:
        return msgspec.convert(_without_nulls(body), kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at ")
        raise BadInput(path.strip("`").removeprefix("$.") or "object", problem) from error


def _without_nulls(value: Any) -> Any:
    """The object without nulls: for the API server a null is a field that is absent, and kubectl prints some."""
    if isinstance(value, Mapping):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def pod(body: Mapping[str, Any], priorities: Mapping[str, int], position: int) -> wire.Pod:
    """A pod with what admission would have filled in.

    Args:
        body: the object.
        priorities: value of every PriorityClass given.
        position: its place among the objects, for names the API server would make up.

    Raises:
        BadInput: as ``decode``, or the pod's PriorityClass is not among the objects.
    """
    result = decode(body, wire.Pod)
    meta, spec = result.metadata, result.spec
    meta.namespace = meta.namespace or "default"
    if not meta.name:
        meta.name = f"{(body.get('metadata') or {}).get('generateName') or 'pod-'}{position}"
    meta.uid = meta.uid or f"{meta.namespace}/{meta.name}"
    spec.scheduler_name = spec.scheduler_name or "default-scheduler"
    if not spec.containers:
        raise BadInput("spec.containers", "at least one container is needed")
    if not _PRIORITY_MIN <= spec.priority <= _PRIORITY_MAX:
        raise BadInput(
            "spec.priority", f"{spec.priority} is not within {_PRIORITY_MIN}..{_PRIORITY_MAX}"
        )
    for container in (*spec.containers, *(spec.init_containers or ())):
        _default_requests(container)
    class_name = (body.get("spec") or {}).get("priorityClassName")
    if class_name and not spec.priority:
        known = {**_SYSTEM_PRIORITIES, **priorities}
        if class_name not in known:
            raise BadInput(
                "spec.priorityClassName", f'no PriorityClass "{class_name}" is among the objects'
            )
        spec.priority = known[class_name]
    return result


_SERVICES = frozenset({GroupKind.SERVICE, GroupKind.REPLICATION_CONTROLLER})


def group(body: Mapping[str, Any], kind: GroupKind) -> events.GroupSeen:
    """A Service, or another object that selects pods.

    Raises:
        BadInput: as ``decode``, or its selector is not what an API server takes.
    """
    found = decode(body, wire.Service) if kind in _SERVICES else decode(body, wire.PodSet)
    selectors.of_wire(found.selector, "spec.selector")
    namespace = found.metadata.namespace or "default"
    return events.GroupSeen(kind, namespace, found.metadata.name, found.selector)


def priority_class(body: Mapping[str, Any]) -> dict[str, int]:
    """Value by name of a PriorityClass, nothing for other objects.

    Raises:
        BadInput: it has no name, or its value is not what Kubernetes allows.
    """
    if body.get("kind") != "PriorityClass":
        return {}
    name = values.mapping(body.get("metadata"), "metadata").get("name")
    if not name:
        raise BadInput("metadata.name", "is missing")
    return {str(name): values.integer(body.get("value"), "value", _PRIORITY_MIN, 10**9)}


def _default_requests(container: wire.Container) -> None:
    """The API server copies limits into requests that are missing."""
    resources = container.resources
    if resources is not None and resources.limits:
        resources.requests = {**resources.limits, **(resources.requests or {})}
