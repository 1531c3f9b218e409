"""The life of an engine whose pods have ResourceClaims: slices, taints and claims come, change and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.simulate.claims import WrittenClaims
from tests import make
from tests.model.engine_stories import Story
from tests.operator import devices

Json = dict[str, Any]
RESOURCE = "example.com/device"
_NODES = [f"node-{i:03}" for i in range(8)]


class ClaimStory(Story):
    """A story in which pods have claims of their own, share some, or request extended resources of a class."""

    def __init__(self, seed: int, *, pauses: bool = False) -> None:
        self._written = WrittenClaims(())
        self._pods: dict[str, wire.Pod] = {}
        super().__init__(seed, pauses=pauses)
        # By name the claims that pods may share.
        self._shared: list[str] = []
        self._generation = 1
        of_class = devices.device_class()
        of_class["spec"]["extendedResourceName"] = RESOURCE
        self._see(of_class, objects.DeviceClass)
        for name in _NODES:
            self._publish(name)

    def _see(self, body: Json, kind: type[Any]) -> None:
        self.tell(events.Seen(msgspec.convert(body, kind)))

    def _publish(self, node: str) -> None:
        """Publish whole devices, and one from which parts are cut."""
        self._generation += 1
        pool = {"name": node, "generation": self._generation, "resourceSliceCount": 2}
        sets = [{"name": "cut", "counters": {"memory": {"value": "40Gi"}}}]
        parts = [
            devices.device(
                f"part-{i}",
                consumesCounters=[{"counterSet": "cut", "counters": {"memory": {"value": size}}}],
            )
            for i, size in enumerate(("40Gi", "20Gi", "20Gi"))
        ]
        whole = [devices.device(f"whole-{i}") for i in range(self.rng.randrange(3))]
        counted = devices.device_slice(node, [], pool=pool, sharedCounters=sets)
        counted["metadata"]["name"] += "-counters"
        del counted["spec"]["devices"]
        self._see(counted, objects.ResourceSlice)
        if self.rng.random() < 0.9:
            self._see(devices.device_slice(node, [*whole, *parts], pool=pool), objects.ResourceSlice)  # fmt: skip

    def tell(self, event: events.Event) -> None:
        """After a bind its pod and its claims are there as the API server has them; of deleted claims none is bound."""
        bound = event.uid if isinstance(event, events.BindDone) else ""
        pod = self.engine._cluster.pods.get(bound)
        there = self._written._by_uid
        if pod is not None and any(not one.made and one.uid not in there for one in pod.allotted):
            event = events.BindFailed(bound, "a claim is gone")
        super().tell(event)
        if pod is None or not isinstance(event, events.BindDone):
            return
        bind: Any = SimpleNamespace(uid=pod.uid, allotted=pod.allotted)
        for one in self._written.bind_pod(bind, pod):
            super().tell(events.Seen(one))
        words = self._pods.get(bound)
        if words is not None and self.engine._cluster.nodes.find_row(pod.node) >= 0:
            spec = msgspec.structs.replace(words.spec, node_name=pod.node)
            super().tell(events.Seen(msgspec.structs.replace(words, spec=spec)))

    def _comes_with(self, pod: wire.Pod) -> None:
        self._pods[pod.metadata.uid] = pod
        super().tell(events.Seen(pod))

    def happen(self) -> None:
        match self.rng.randrange(8):
            case 0 | 1:
                self._claimant_comes()
            case 2:
                self._requester_comes()
            case 3:
                self._publish(self.rng.choice(_NODES))
            case 4:
                self._taint_changes()
            case 5 if self._shared:
                self._claim_changes(self.rng.choice(self._shared))
        super().happen()

    def _claimant_comes(self) -> None:
        """A pod comes with a claim: a new one, or one that others have."""
        self._n += 1
        name = f"pod-{self._n}"
        if self._shared and self.rng.random() < 0.4:
            claim = self.rng.choice(self._shared)
        else:
            claim = f"claim-{self._n}"
            self._shared.append(claim)
            body = devices.claim(claim, devices.request(count=self.rng.choice([1, 1, 2])))
            body["metadata"] |= {"namespace": "default", "uid": f"uid-{claim}", "resourceVersion": str(self._n)}  # fmt: skip
            found = msgspec.convert(body, objects.ResourceClaim)
            self._written._by_uid[found.metadata.uid] = found
            super().tell(events.Seen(found))
        pod = make.pod(name=name, cpu="100m")
        pod.spec.resource_claims = [wire.PodClaim("own", claim)]
        self._comes_with(pod)

    def _requester_comes(self) -> None:
        self._n += 1
        containers = [make.container(limits={RESOURCE: self.rng.choice([1, 2])})]
        self._comes_with(make.pod(name=f"pod-{self._n}", containers=containers))

    def _taint_changes(self) -> None:
        selector = {"driver": devices.DRIVER, "pool": self.rng.choice(_NODES)}
        spec = {"deviceSelector": selector, "taint": {"key": "bad", "effect": "NoSchedule"}}
        if self.rng.random() < 0.5:
            self._see({"metadata": {"name": "rule"}, "spec": spec}, objects.DeviceTaintRule)
        else:
            super().tell(events.Gone("DeviceTaintRule", "rule"))

    def _claim_changes(self, name: str) -> None:
        """A claim loses its devices, or goes."""
        there = self._written._by_uid[f"uid-{name}"]
        if self.rng.random() < 0.5:
            found = msgspec.structs.replace(there, status=objects.ClaimStatus())
            self._written._by_uid[f"uid-{name}"] = found
            super().tell(events.Seen(found))
        else:
            self._shared.remove(name)
            del self._written._by_uid[f"uid-{name}"]
            super().tell(events.Gone("ResourceClaim", f"default/{name}"))
