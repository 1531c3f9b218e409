"""A pod while it is admitted: what of it is read, and what it gets, as operations of a JSON patch.

A vendor sees what the vendors before it have added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler.api import quantities, wire
from scheduler.api.wire import Quantities, Resources, Wire
from scheduler.errors import BadInput, join_lines

Json = dict[str, Any]
_ABSENT = (b"", b"null")


class _Env(Wire):
    name: str = ""
    value: str = ""
    value_from: msgspec.Raw = msgspec.Raw()


class _Security(Wire):
    privileged: bool | None = None


class _Container(Wire):
    name: str = ""
    resources: Resources | None = None
    env: list[_Env] | None = None
    security_context: _Security | None = None


class _Spec(Wire):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    scheduler_name: str | None = None
    node_name: str | None = None
    runtime_class_name: str | None = None
    node_selector: dict[str, str] | None = None


class _Meta(Wire):
    annotations: dict[str, str] | None = None


class _Pod(Wire):
    metadata: _Meta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_Pod)
_PODS = msgspec.json.Decoder(wire.Pod)


class ContainerDraft:
    """A container, and what it gets.

    Attributes:
        name: its name.
        is_privileged: whether it is.
    """

    def __init__(self, container: _Container, path: str) -> None:
        """``path``: where the container is in the pod."""
        resources, security = container.resources or Resources(), container.security_context
        self.name = container.name
        self.is_privileged = security is not None and security.privileged is True
        self._path = path
        self._has_resources = container.resources is not None
        self._has_limits = resources.limits is not None
        self._limits: Quantities = resources.limits or {}
        self._requests: Quantities = resources.requests or {}
        for given in (self._limits, self._requests):
            # Settings name a resource so that pods cannot request.
            given.pop("", None)
        self._env = container.env
        self._new_limits: dict[str, str] = {}
        self._new_requests: dict[str, str] = {}
        self._new_env: dict[str, str] = {}
        # The sections and resources that the container loses.
        self._dropped: list[tuple[str, str]] = []

    def has_limit(self, resource: str) -> bool:
        """Whether the limits name a resource."""
        return resource in self._limits or resource in self._new_limits

    def has_resource(self, resource: str) -> bool:
        """Whether the limits or the requests name a resource."""
        return self.has_limit(resource) or resource in self._requests

    def read_limit(self, resource: str) -> int | None:
        """Read the limit of a resource, rounded up; None if there is none.

        Raises:
            BadInput: it is no quantity.
        """
        found = self._new_limits.get(resource, self._limits.get(resource))
        return None if found is None else self._read_amount(resource, found)

    def read_resource(self, resource: str) -> int | None:
        """Read the limit of a resource, or else what is requested of it.

        Raises:
            BadInput: it is no quantity.
        """
        if self.has_limit(resource) or resource not in self._requests:
            return self.read_limit(resource)
        return self._read_amount(resource, self._requests[resource])

    def read_whole(self, resource: str) -> int | None:
        """Read a limit, or else what is requested, that has to be a whole number.

        Raises:
            BadInput: it is none.
        """
        found = self.read_resource(resource)
        given = self._limits.get(resource, self._requests.get(resource, 0))
        if found is not None and quantities.read_milli(given) % 1000:
            raise BadInput(f"container {self.name}: {resource}", f"{given} is no whole number")
        return found

    def _read_amount(self, resource: str, found: str | float) -> int:
        try:
            return quantities.read_value(found)
        except ValueError as error:
            # A number of thousands of digits is one as well.
            where = f"container {self.name}: {resource}"
            raise BadInput(where, join_lines(error)) from error

    def add_limit(self, resource: str, amount: int) -> None:
        """Add a limit that is not there; the API server requests as much of it."""
        self._new_limits[resource] = str(amount)

    def set_amount(self, resource: str, amount: int) -> None:
        """Set a limit, and what is requested, so that both are equal; a limit that is so stays as it is."""
        for given, new in (
            (self._limits, self._new_limits),
            (self._requests, self._new_requests),
        ):
            is_there = given is self._limits or resource in given
            if is_there and str(given.get(resource, "")) != str(amount):
                new[resource] = str(amount)

    def show(self, resource: str) -> str:
        """Show the limit of a resource, or else what is requested of it, as it is written."""
        return str(self._limits.get(resource, self._requests.get(resource, "")))

    def drop(self, resource: str) -> None:
        """Drop a resource from the limits and the requests."""
        for section, given in (("limits", self._limits), ("requests", self._requests)):
            if given.pop(resource, None) is not None:
                self._dropped.append((section, resource))

    def has_env(self, name: str) -> bool:
        """Whether there is an environment variable of this name."""
        return name in self._new_env or any(one.name == name for one in self._env or ())

    def list_resources(self) -> set[str]:
        """List the resources that the limits or the requests name."""
        return {*self._limits, *self._requests, *self._new_limits}

    def make_resources(self) -> Resources:
        """Make the requests and limits as they are after the changes; what is limited is requested, too."""
        limits = {**self._limits, **self._new_limits}
        return Resources({**limits, **self._requests, **self._new_requests}, limits)

    def add_env(self, name: str, value: str) -> None:
        """Add an environment variable, so that it has this value.

        Of several with the same name the last one counts. Nothing is added if that one is as it should be, so a pod that
        comes a second time stays as it is.
        """
        last = next((one for one in reversed(self._env or ()) if one.name == name), None)
        if last is None or last.value != value or bytes(last.value_from) not in _ABSENT:
            self._new_env[name] = value

    def list_operations(self) -> list[Json]:
        """List the operations of a JSON patch by which the container gets what was added."""
        made: list[Json] = []
        path = f"{self._path}/resources"
        made += [
            {"op": "remove", "path": f"{path}/{section}/{_escape(resource)}"}
            for section, resource in self._dropped
        ]
        if self._new_limits and not self._has_resources:
            made.append(_add(path, {"limits": self._new_limits}))
        elif self._new_limits and not self._has_limits:
            made.append(_add(f"{path}/limits", self._new_limits))
        else:
            for resource, amount in self._new_limits.items():
                made.append(_add(f"{path}/limits/{_escape(resource)}", amount))
        for resource, amount in self._new_requests.items():
            # Only what was requested is changed, so there are requests.
            made.append(_add(f"{path}/requests/{_escape(resource)}", amount))
        added = [{"name": name, "value": value} for name, value in self._new_env.items()]
        if added and self._env is None:
            return [*made, _add(f"{self._path}/env", added)]
        return made + [_add(f"{self._path}/env/-", one) for one in added]


class PodDraft:
    """A pod, and what it gets.

    Attributes:
        namespace: where it is created.
        init_containers, containers: its containers.
        scheduler_name: the scheduler that it names; empty for none. May be changed.
        node_name: the node that it names already; empty for none.
        runtime_class: its RuntimeClass; None for none. May be changed.
        node_selector: its node selector. More may be added.
        annotations: its annotations. More may be added.
    """

    def __init__(self, raw: bytes | msgspec.Raw, namespace: str) -> None:
        """Read a pod, as JSON.

        Raises:
            BadInput: a field that is read is not as the API server has it.
        """
        try:
            found = _DECODER.decode(raw)
            spec = found.spec or _Spec()
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise BadInput("pod", f"cannot be read: {join_lines(error)}") from error
        self.namespace = namespace
        self._raw = raw
        self.init_containers = _make_drafts(spec.init_containers, "/spec/initContainers")
        self.containers = _make_drafts(spec.containers, "/spec/containers")
        self._had = spec
        self.scheduler_name = spec.scheduler_name or ""
        self.node_name = spec.node_name or ""
        self.runtime_class = spec.runtime_class_name
        self.node_selector = dict(spec.node_selector or {})
        self._had_notes = found.metadata.annotations if found.metadata is not None else None
        self.annotations = dict(self._had_notes or {})

    def read_pod(self) -> wire.Pod | None:
        """Read the pod as it is after the changes; None if it is no pod that can be placed."""
        try:
            pod = _PODS.decode(self._raw)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        containers = [*(pod.spec.init_containers or ()), *pod.spec.containers]
        for draft, container in zip(self.list_all_containers(), containers, strict=True):
            container.resources = draft.make_resources()
        pod.metadata.namespace = self.namespace
        pod.metadata.annotations = dict(self.annotations)
        pod.spec.node_selector = dict(self.node_selector)
        pod.spec.scheduler_name = self.scheduler_name
        return pod

    def list_all_containers(self) -> list[ContainerDraft]:
        """List all containers, those first that run first."""
        return self.init_containers + self.containers

    def list_operations(self) -> list[Json]:
        """List the operations of a JSON patch by which the pod becomes what it is now."""
        made = [
            one for container in self.list_all_containers() for one in container.list_operations()
        ]
        made += _add_texts("/metadata/annotations", self._had_notes, self.annotations)
        made += _add_texts("/spec/nodeSelector", self._had.node_selector, self.node_selector)
        if self.runtime_class != self._had.runtime_class_name:
            made.append(_add("/spec/runtimeClassName", self.runtime_class))
        if self.scheduler_name != (self._had.scheduler_name or ""):
            made.append(_add("/spec/schedulerName", self.scheduler_name))
        return made


def _add_texts(path: str, had: Mapping[str, str] | None, now: Mapping[str, str]) -> list[Json]:
    """List the operations by which a mapping gets what it did not have."""
    added = {key: text for key, text in now.items() if (had or {}).get(key) != text}
    if added and had is None:
        return [_add(path, added)]
    return [_add(f"{path}/{_escape(key)}", text) for key, text in added.items()]


def _make_drafts(found: list[_Container] | None, path: str) -> list[ContainerDraft]:
    return [ContainerDraft(one, f"{path}/{i}") for i, one in enumerate(found or ())]


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}
