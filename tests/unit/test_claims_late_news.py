"""Devices that come, or become free, after a pod was refused: the pod gets them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.simulate.reading.objects import decode
from scheduler.state.claims import recount
from tests import make
from tests.operator import devices
from tests.operator.devices import device, device_slice

Json = dict[str, Any]


class World:
    """An engine with a node, and what it decides."""

    def __init__(self) -> None:
        self.engine, self.now = Engine(Config()), 0.0
        self.engine.handle(events.Seen(make.node(name="n0")), 0.0)
        self.see(objects.DeviceClass, devices.device_class())

    def see(self, shape: type[Any], body: Json) -> None:
        made = {"uid": f"uid-{body['metadata']['name']}", "resourceVersion": "1"}
        if shape in {objects.ResourceClaim, wire.Pod}:
            made["namespace"] = "default"
        body = body | {"metadata": made | body["metadata"]}
        self.engine.handle(events.Seen(decode(body, shape)), self.now)

    def gone(self, kind: str, key: str) -> None:
        self.engine.handle(events.Gone(kind, key), self.now)

    def pod_with(self, name: str, claim: str) -> None:
        self.see(wire.Pod, devices.pod_with(name, claim))

    def decide(self) -> set[str]:
        """Decide for longer than any backoff; return the uids of the pods that got a node."""
        bound = set()
        for _ in range(15):
            self.now += 1.0
            for plan in self.engine.decide(self.now, Unlimited()).plans:
                bound |= {bind.uid for bind in plan.binds}
        return bound


@pytest.fixture
def world() -> World:
    return World()


def test_a_bind_that_ended_is_not_in_doubt_when_its_node_and_its_pod_go(world: World) -> None:
    world.see(objects.ResourceSlice, device_slice("n0", [device("gpu-0")]))
    world.see(objects.ResourceClaim, devices.claim("a"))
    world.pod_with("p", "a")
    assert world.decide() == {"uid-p"}
    world.engine.handle(events.BindDone("uid-p"), world.now)
    user = {"resource": "pods", "name": "p", "uid": "uid-p"}
    given = {"allocation": devices.allocation("n0", "gpu-0"), "reservedFor": [user]}
    world.see(objects.ResourceClaim, devices.claim("a") | {"status": given})
    world.gone("Node", "n0")
    world.see(objects.ResourceClaim, devices.claim("a"))
    world.gone("Pod", "uid-p")
    assert recount.find_difference(world.engine._cluster.claims) == ""
    # The device is given away again.
    world.engine.handle(events.Seen(make.node(name="n0")), world.now)
    world.pod_with("q", "a")
    assert world.decide() == {"uid-q"}


def test_devices_of_a_claim_whose_pod_is_gone_are_given_away_when_the_claim_is_freed(
    world: World,
) -> None:
    world.see(objects.ResourceSlice, device_slice("n0", [device("gpu-0")]))
    given = {"status": {"allocation": devices.allocation("n0", "gpu-0")}}
    world.see(objects.ResourceClaim, devices.claim("a") | given)
    world.see(objects.ResourceClaim, devices.claim("b"))
    world.pod_with("p", "b")
    assert world.decide() == set()
    world.see(objects.ResourceClaim, devices.claim("a"))
    assert world.decide() == {"uid-p"}


def test_devices_that_go_and_come_back_are_given_away(world: World) -> None:
    """Between the two a pod was refused for want of any."""
    world.see(objects.ResourceClaim, devices.claim("a"))
    # Of another name, so that nothing is known of it before.
    world.see(objects.ResourceClaim, devices.claim("b", devices.request("other")))
    offered = device_slice("n0", [device("gpu-0")])
    world.see(objects.ResourceSlice, offered)
    world.pod_with("first", "a")
    assert world.decide() == {"uid-first"}
    world.gone("Pod", "uid-first")
    world.gone("ResourceClaim", "default/a")
    world.gone("ResourceSlice", offered["metadata"]["name"])
    world.pod_with("p", "b")
    assert world.decide() == set()
    world.see(objects.ResourceSlice, offered)
    assert world.decide() == {"uid-p"}


def test_a_claim_for_all_devices_gets_them_when_their_pool_is_complete(world: World) -> None:
    world.see(objects.ResourceClaim, devices.claim("c", devices.request(allocationMode="All")))
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 2}
    first = device_slice("n0", [device(f"gpu-{i}") for i in range(4)], pool=pool)
    second = device_slice("n0", [device(f"gpu-{i}") for i in range(4, 9)], pool=pool)
    world.see(objects.ResourceSlice, first)
    world.pod_with("p", "c")
    assert world.decide() == set()
    world.see(objects.ResourceSlice, second | {"metadata": {"name": "second"}})
    assert world.decide() == {"uid-p"}


def test_a_pod_is_tried_when_its_status_names_the_claim_that_was_made_for_it(world: World) -> None:
    world.see(objects.ResourceSlice, device_slice("n0", [device("gpu-0")]))
    made = devices.pod_with("p", of_template="t")
    world.see(wire.Pod, made)
    assert world.decide() == set()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    of_pod = devices.claim("p-own-x")
    of_pod["metadata"]["ownerReferences"] = [owner]
    world.see(objects.ResourceClaim, of_pod)
    assert world.decide() == set()
    named = {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "p-own-x"}]}
    world.see(wire.Pod, made | {"status": named})
    assert world.decide() == {"uid-p"}


def test_a_claim_that_a_second_pod_shares_stays_charged(world: World) -> None:
    world.see(objects.ResourceSlice, device_slice("n0", [device("gpu-0")]))
    for name in "ab":
        world.see(objects.ResourceClaim, devices.claim(name))
    world.pod_with("first", "a")
    assert world.decide() == {"uid-first"}
    given = {"allocation": devices.allocation("n0", "gpu-0")}
    for names in (["first"], ["first", "second"]):
        users = [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in names]
        world.see(objects.ResourceClaim, devices.claim("a") | {"status": given | {"reservedFor": users}})  # fmt: skip
    world.pod_with("third", "b")
    assert world.decide() == set()
