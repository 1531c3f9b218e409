"""An engine with pods that request extended resources of classes; its binds are written as the operator writes them."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api import names, wire
from scheduler.api.claims import extended, objects
from scheduler.api.claims.answers import Allotment
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind, Free, Outcome
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.simulate.reading.objects import decode
from scheduler.state import checks
from scheduler.telling import sayings
from tests import make
from tests.operator import devices
from tests.operator.manifests import pod

Json = dict[str, Any]
RESOURCE = "example.com/gpu"


def make_class(name: str = "gpu", resource: str = RESOURCE, **meta: Any) -> Json:
    made = devices.device_class(name)
    made["metadata"] |= meta
    made["spec"]["extendedResourceName"] = resource
    return made


class World:
    """An engine, the pods that are bound, and what the API server has of their claims."""

    def __init__(self, config: Config | None = None, *, of_class: Json | None = None) -> None:
        self.engine, self.now = Engine(config or Config()), 0.0
        self.pods: dict[str, Json] = {}
        self.claims: dict[str, Json] = {}
        self.bound: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.freed: list[Free] = []
        self.victims: list[list[str]] = []
        self.binds: dict[str, Bind] = {}
        self.n = 0
        if of_class != {}:
            self.see(objects.DeviceClass, of_class or make_class())

    def see(self, shape: type[Any], body: Json) -> None:
        self.n += 1
        made = {"uid": f"uid-{body['metadata']['name']}", "resourceVersion": str(self.n)}
        if shape in {objects.ResourceClaim, wire.Pod}:
            made["namespace"] = "default"
        body = body | {"metadata": made | body["metadata"] | {"resourceVersion": str(self.n)}}
        self.engine.handle(events.Seen(decode(body, shape)), self.now)

    def gone(self, kind: str, key: str) -> None:
        self.engine.handle(events.Gone(kind, key), self.now)

    def node(self, name: str, **more: Any) -> None:
        self.engine.handle(events.Seen(make.node(name=name, **more)), self.now)

    def slice(self, node: str, n: int, **more: Any) -> None:
        found = [devices.device(f"gpu-{i}", **more) for i in range(n)]
        self.see(objects.ResourceSlice, devices.device_slice(node, found))

    def pod(self, name: str, n: int = 1, resource: str = RESOURCE, **more: Any) -> None:
        self.pods[name] = pod(name, requests={resource: str(n)}, **more)
        self.see(wire.Pod, self.pods[name])

    def decide(self, *, writes: bool = True) -> list[str]:
        """Decide for longer than any backoff; return the names of the pods that were bound, in order."""
        found = []
        for _ in range(15):
            self.now += 1.0
            outcome = self.engine.decide(self.now, Unlimited())
            self._note(outcome)
            for bind in outcome.binds:
                name = bind.uid.removeprefix("uid-")
                found.append(name)
                self.binds[name] = bind
                if writes:
                    self.write(name)
            self.verify()
        return found

    def _note(self, outcome: Outcome) -> None:
        self.freed += outcome.frees
        self.victims += [list(evict.victims) for evict in outcome.evicts]
        for hold in outcome.holds:
            self.why[hold.uid.removeprefix("uid-")] = sayings.say_why(hold).message

    def write(self, name: str) -> None:
        """Write the claim of a pod that was placed, and its bind."""
        bind = self.binds[name]
        self.bound[name] = bind.node
        for one in bind.allotted:
            if one.made:
                self.make_claim(name)
                self.allocate(name, one)
        made = self.pods[name]
        made["spec"]["nodeName"] = bind.node
        self.see(wire.Pod, made)
        self.engine.handle(events.BindDone(bind.uid), self.now)

    def make_claim(self, name: str) -> None:
        """Make the claim of a pod, as the first write of its bind does."""
        (one,) = (one for one in self.binds[name].allotted if one.made)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"}
        made, _ = extended.make_name(name, f"uid-{name}")
        self.claims[name] = {
            "metadata": {
                "name": made,
                "annotations": {names.EXTENDED_CLAIM: "true"},
                "ownerReferences": [owner | {"controller": True}],
            },
            "spec": {"devices": {"requests": msgspec.json.decode(one.made)["requests"]}},
        }
        self.see(objects.ResourceClaim, self.claims[name])

    def allocate(self, name: str, one: Allotment) -> None:
        """Give the claim of a pod its devices, as the second write of its bind does."""
        consumer = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
        given = msgspec.json.decode(one.allocation)
        self.claims[name]["status"] = {"allocation": given, "reservedFor": [consumer]}
        self.see(objects.ResourceClaim, self.claims[name])

    def fail(self, name: str, *, written: bool = False) -> None:
        """Let the bind of a pod fail; ``written``: its claim may have been written."""
        (one,) = self.binds[name].allotted
        claims = ((*one.key, str(self.n)),) if written else ()
        self.engine.handle(events.BindFailed(f"uid-{name}", "refused", claims=claims), self.now)

    def end(self, name: str) -> None:
        """Let a pod end, and the controller delete its claim."""
        self.gone("Pod", f"uid-{name}")
        if name in self.claims:
            self.drop_claim(name)

    def drop_claim(self, name: str) -> None:
        made = self.claims.pop(name)["metadata"]["name"]
        self.gone("ResourceClaim", f"default/{made}")

    def verify(self) -> None:
        checks.verify(self.engine._cluster)

    def list_devices(self, name: str) -> list[str]:
        return [str(given.device.name) for one in self.binds[name].allotted for given in one.given]
