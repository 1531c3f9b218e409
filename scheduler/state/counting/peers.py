"""Groups of pods: a group is what a Service, ReplicaSet, StatefulSet or ReplicationController selects."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.api import selectors, wire
from scheduler.api.names import PeerKind
from scheduler.api.pods import spread
from scheduler.api.selectors import Labels, Selector
from scheduler.errors import BadInput

# API version, kind and name of the controller that made a pod.
Controller = tuple[str, str, str]
_API_VERSIONS = {
    PeerKind.REPLICATION_CONTROLLER: "v1",
    PeerKind.REPLICA_SET: "apps/v1",
    PeerKind.STATEFUL_SET: "apps/v1",
}


class Peers:
    """The selectors of all objects that select pods.

    Attributes:
        version: rises with every change.
    """

    def __init__(self) -> None:
        # By namespace and name.
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        self._controllers: dict[tuple[str, Controller], Mapping[str, str] | Selector] = {}
        self.version = 0
        # The version of the last change in each namespace.
        self._changed: dict[str, int] = {}

    @property
    def are_there(self) -> bool:
        """Whether there is any such object."""
        return bool(self._services or self._controllers)

    def find_version(self, namespace: str) -> int:
        """Return a version that changes when a group of the namespace changes, and only then."""
        return self._changed.get(namespace, 0)

    def see(
        self, kind: PeerKind, namespace: str, name: str, given: wire.LabelSelector | None
    ) -> None:
        """Add an object or its new state; a selector that no API server accepts selects nothing."""
        labels = (given.match_labels if given else None) or {}
        if kind == PeerKind.SERVICE:
            there = self._services.setdefault(namespace, {})
            if not labels:
                self.drop(kind, namespace, name)
            elif there.get(name) != labels:
                there[name] = labels
                self._note_change(namespace)
            return
        key = namespace, (_API_VERSIONS[kind], str(kind), name)
        read: Mapping[str, str] | Selector = labels
        if kind != PeerKind.REPLICATION_CONTROLLER:
            try:
                read = selectors.read_selector(given, "spec.selector")
            except BadInput:
                read = selectors.NOTHING
        if self._controllers.get(key) != read:
            self._controllers[key] = read
            self._note_change(namespace)

    def drop(self, kind: PeerKind, namespace: str, name: str) -> None:
        """Drop an object that was deleted."""
        if kind == PeerKind.SERVICE:
            there = self._services.get(namespace, {})
            was = there.pop(name, None)
            if not there:
                self._services.pop(namespace, None)
        else:
            key = namespace, (_API_VERSIONS[kind], str(kind), name)
            was = self._controllers.pop(key, None)  # type: ignore[assignment]
        if was is not None:
            self._note_change(namespace)

    def list_of_kind(self, kind: PeerKind) -> set[tuple[str, str]]:
        """List the namespace and name of all objects of one kind."""
        if kind == PeerKind.SERVICE:
            return {
                (namespace, name) for namespace, there in self._services.items() for name in there
            }
        return {
            (namespace, name) for namespace, (_, of, name) in self._controllers if of == str(kind)
        }

    def find_selector(
        self, namespace: str, labels: Labels, controller: Controller | None
    ) -> Selector:
        """Find the selector of a pod's group; ``selectors.EVERYTHING`` for a pod without a group."""
        replication: Mapping[str, str] = {}
        owner = selectors.EVERYTHING
        found = self._controllers.get((namespace, controller)) if controller else None
        if isinstance(found, Selector):
            owner = found
        elif found is not None:
            replication = found
        services = self._services.get(namespace, {}).values()
        return spread.make_implicit_selector(labels, services, replication, owner)

    def _note_change(self, namespace: str) -> None:
        self.version += 1
        self._changed[namespace] = self.version
