"""Finds the existing pods of each workload, through the ReplicaSets and Jobs between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from scheduler.api import wire
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads.workload import Workload

HASH = "pod-template-hash"
_DONE = frozenset({"Succeeded", "Failed"})


class Owned:
    """Pods by their owners. Owners are found by kind and name: a dump has uids, but manifests have none."""

    def __init__(self, pods: Iterable[wire.Pod], workloads: Iterable[Workload]) -> None:
        """Index these pods, and the workloads that may be between a pod and its topmost owner."""
        self._above: dict[ObjectKey, ObjectKey] = {}
        for one in workloads:
            if above := one.controller:
                namespace = one.key.namespace
                self._above[one.key] = ObjectKey(above.kind, namespace, above.name)
        self._alive: dict[ObjectKey, list[wire.Pod]] = defaultdict(list)
        self._succeeded: dict[ObjectKey, list[wire.Pod]] = defaultdict(list)
        for pod in pods:
            self._see(pod)

    def _see(self, pod: wire.Pod) -> None:
        if pod.status.phase == "Succeeded":
            into = self._succeeded
        elif pod.status.phase in _DONE or pod.metadata.deletion_timestamp is not None:
            return  # its controller makes another pod in its place
        else:
            into = self._alive
        owner = self.find_controller(pod)
        for key in dict.fromkeys((owner, self.find_top(pod))):
            if key is not None:
                into[key].append(pod)

    def list_alive(self, key: ObjectKey) -> list[wire.Pod]:
        """List the pods of a workload, or of its ReplicaSets or Jobs, that are neither finished nor being deleted."""
        return self._alive.get(key, [])

    def list_succeeded(self, key: ObjectKey) -> list[wire.Pod]:
        """List the pods of a workload that have done their work."""
        return self._succeeded.get(key, [])

    def find_controller(self, pod: wire.Pod) -> ObjectKey | None:
        """Find the controller of a pod."""
        owner = objects.find_owner(pod)
        if owner is None:
            return None
        return ObjectKey(owner.kind, pod.metadata.namespace, owner.name)

    def find_top(self, pod: wire.Pod) -> ObjectKey | None:
        """Find the owner of a pod's controller, if it is known."""
        key = self.find_controller(pod)
        if key is None:
            return None
        if above := self._above.get(key):
            return above
        # The name of a ReplicaSet that is missing contains the name of its Deployment.
        template = (pod.metadata.labels or {}).get(HASH)
        if key.kind == "ReplicaSet" and template and key.name.endswith(f"-{template}"):
            name = key.name.removesuffix(f"-{template}")
            return ObjectKey("Deployment", key.namespace, name)
        return key
