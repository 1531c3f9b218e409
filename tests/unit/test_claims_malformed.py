"""Slices that cannot be read: an event names the field, and the other slices serve claims."""

from __future__ import annotations

from typing import Any
from unittest.mock import create_autospec

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.kube.device_maps import DeviceMapHands
from scheduler.kube.report.reporter import Reporter
from scheduler.simulate.reading.objects import decode
from tests import make
from tests.operator import devices

Json = dict[str, Any]


class World:
    """An engine with two nodes, and the shell that hears what it notes."""

    def __init__(self) -> None:
        self.engine = Engine(Config())
        self.reporter = create_autospec(Reporter, instance=True)
        self.hands = DeviceMapHands(self.reporter, [], lambda _: None, lambda: True)
        for name in ("n0", "n1"):
            self.engine.handle(events.Seen(make.node(name=name)), 0.0)
        self.see(objects.DeviceClass, devices.device_class())

    def see(self, shape: type[Any], body: Json) -> None:
        made = {"uid": f"uid-{body['metadata']['name']}", "resourceVersion": "1"}
        if shape in {objects.ResourceClaim, wire.Pod}:
            made["namespace"] = "default"
        body = body | {"metadata": made | body["metadata"]}
        self.hands.hear(self.engine.handle(events.Seen(decode(body, shape)), 0.0))

    def see_slice(self, node: str, memory: str) -> None:
        has_memory = {"capacity": {"memory": {"value": memory}}}
        one = devices.device("gpu-0") | has_memory
        self.see(objects.ResourceSlice, devices.device_slice(node, [one]))

    def list_reported(self) -> list[tuple[str, str, str]]:
        """The objects with events since the last call: name, reason and text."""
        calls = self.reporter.report_on_object.call_args_list
        found = [(call.args[1].name, call.args[2][1], call.args[2][2]) for call in calls]
        self.reporter.report_on_object.reset_mock()
        return found

    def list_bound(self) -> dict[str, str]:
        """Decide; return the node of each pod that got one."""
        plans = self.engine.decide(1.0, Unlimited()).plans
        return {bind.uid: bind.node for plan in plans for bind in plan.binds}


def test_a_slice_that_cannot_be_read_is_named_and_counts_as_deleted() -> None:
    world = World()
    world.see_slice("n0", "lots")
    ((name, reason, text),) = world.list_reported()
    assert (name, reason) == ("n0-gpu.example.com", "MalformedResourceSlice")
    assert "spec.devices[0].capacity[memory]" in text
    assert text.endswith("; it counts as deleted")
    world.see_slice("n1", "80Gi")
    world.see(objects.ResourceClaim, devices.claim("c"))
    world.see(wire.Pod, devices.pod_with("p", "c"))
    assert world.list_bound() == {"uid-p": "n1"}


def test_a_slice_that_becomes_malformed_loses_its_devices_until_it_is_corrected() -> None:
    world = World()
    world.see_slice("n0", "80Gi")
    assert world.list_reported() == []
    for _ in range(2):
        world.see_slice("n0", "lots")
    assert len(world.list_reported()) == 1
    world.see(objects.ResourceClaim, devices.claim("c"))
    world.see(wire.Pod, devices.pod_with("p", "c"))
    assert world.list_bound() == {}
    world.see_slice("n0", "80Gi")
    world.hands.report_all()
    assert world.list_reported() == []
    assert world.engine.decide(100.0, Unlimited()).plans[0].binds[0].node == "n0"


def test_a_malformed_slice_that_is_gone_is_not_reported_again() -> None:
    world = World()
    for node in ("n0", "n1"):
        world.see_slice(node, "lots")
    gone = events.Gone("ResourceSlice", "n0-gpu.example.com")
    world.hands.hear(world.engine.handle(gone, 0.0))
    world.list_reported()
    world.hands.report_all()
    assert [name for name, _, _ in world.list_reported()] == ["n1-gpu.example.com"]
