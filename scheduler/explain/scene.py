"""The objects that can be explained, by name, and an engine that has seen them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from scheduler.api import names, wire
from scheduler.config import Config
from scheduler.simulate.reading import kinds, objects
from scheduler.simulate.situation import Situation, make_engine

_FINISHED = frozenset({"Succeeded", "Failed"})


class Scene:
    """Objects and the engine; questions do not change them.

    Attributes:
        pods: pods that are not finished, by ``namespace/name``; ``finished`` has the others.
        nodes: nodes by name.
        unread, malformed: why a pod, or a node, cannot be read, by the same names.
        engine: an engine that answers questions.
        is_live: whether the objects are from a cluster, in which pods of other schedulers stay with these.
    """

    def __init__(self, situation: Situation, config: Config, *, is_live: bool) -> None:
        inventory = situation.inventory
        # This is read before pods of other schedulers get our name.
        self.schedulers = {pod.metadata.uid: pod.spec.scheduler_name for pod in inventory.pods}
        self.engine = make_engine(inventory, config, only_ours=is_live)
        self.situation, self.config, self.is_live = situation, config, is_live
        self.pods: dict[str, wire.Pod] = {}
        self.finished: dict[str, wire.Pod] = {}
        for pod in inventory.pods:
            key = f"{pod.metadata.namespace}/{pod.metadata.name}"
            if pod.status.phase in _FINISHED:
                self.finished[key] = pod
            else:
                self.pods[key] = pod
        self.nodes: Mapping[str, wire.Node] = {one.metadata.name: one for one in inventory.nodes}
        self.unread = {f"{one.namespace}/{one.name}": str(one.problem) for one in inventory.unread}
        self.malformed = {
            kinds.read_key(inventory.objects[one.position]).name: str(one.mistake)
            for one in inventory.mistakes.values()
            if kinds.find_kind(inventory.objects[one.position]) == "Node"
        }

    @cached_property
    def come_again(self) -> frozenset[str]:
        """The uids of pods that a DaemonSet would make again at once, or that a kubelet runs from a file."""
        return frozenset(
            pod.metadata.uid
            for pod in self.situation.inventory.pods
            if names.MIRROR in (pod.metadata.annotations or {})
            or ((owner := objects.find_owner(pod)) is not None and owner.kind == "DaemonSet")
        )
