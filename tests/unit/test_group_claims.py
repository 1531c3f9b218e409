"""Claims of PodGroups: one for all pods with an equal entry, reserved for the group."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.api.door.decisions import Bind
from scheduler.engine.allowance import Unlimited
from scheduler.simulate import schedule
from tests import make
from tests.operator import devices
from tests.operator.devices import device
from tests.unit.test_claims_joined import SharedWorld
from tests.unit.test_simulate_claims import make_cluster, make_object

Json = dict[str, Any]
_GROUP = ("gang", "uid of gang")
_ENTRY = {"name": "domain", "resourceClaimTemplateName": "of-group"}


class GroupWorld(SharedWorld):
    """A gang of two whose claim is made from a template, and others."""

    def __init__(self, *, owner: str = "gang", minimum: int = 2) -> None:
        super().__init__()
        self.engine.handle(events.Seen(make.pod_group(minimum=minimum, resourceClaims=[_ENTRY])), 0.0)  # fmt: skip
        self.show_claim(owner=owner)

    def show_claim(self, *, owner: str = "gang", **status: Any) -> None:
        reference = {
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": owner,
            "uid": f"uid of {owner}", "controller": True,
        }  # fmt: skip
        body = devices.claim("made")
        body["metadata"] |= {"ownerReferences": [reference], "resourceVersion": str(self.now + 1)}
        self.see(objects.ResourceClaim, body | {"status": status})

    def show_member(self, name: str, *, entry: str = "domain", node: str = "") -> None:
        pod = make.member(make.pod(name=name, namespace="default", cpu="1", node=node))
        pod.metadata.uid = f"uid-{name}"
        pod.spec.resource_claims = [
            wire.PodClaim(entry, resource_claim_template_name=_ENTRY["resourceClaimTemplateName"])
        ]
        pod.status.resource_claim_statuses = [wire.PodClaimStatus(entry, "made")]
        self.engine.handle(events.Seen(pod), self.now)


def allocated(node: str = "n0", *users: Json) -> Json:
    return {"allocation": devices.allocation(node, "d0"), "reservedFor": list(users)}


def the_group(name: str = "gang") -> Json:
    return {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": name, "uid": f"uid of {name}"}  # fmt: skip


def read_groups(binds: dict[str, Bind]) -> set[tuple[str, str] | None]:
    return {one.group for bind in binds.values() for one in bind.allotted}


def test_the_claim_of_a_group_is_reserved_for_the_group() -> None:
    world = GroupWorld()
    for name in "ab":
        world.show_member(name)
    binds = world.decide_once()
    assert len(binds) == 2
    assert read_groups(binds) == {_GROUP}
    assert world.n_taken == 1
    world.check()


def test_a_pod_with_another_entry_has_the_claim_for_itself() -> None:
    """As in kube-scheduler, entries are compared by all their fields."""
    world = GroupWorld()
    world.show_member("a", entry="other")
    world.show_member("b")
    binds = world.decide_once()
    assert {bind.uid: bind.allotted[0].group for bind in binds.values()} == {
        "uid-a": None,
        "uid-b": _GROUP,
    }
    assert world.n_taken == 1
    world.check()


def test_a_claim_that_was_made_for_another_group_is_not_used() -> None:
    world = GroupWorld(owner="other")
    for name in "ab":
        world.show_member(name)
    assert world.decide_once() == {}


def test_more_pods_come_than_may_use_a_claim_each_for_itself() -> None:
    """Of 256 entries one is the group's."""
    world = GroupWorld(minimum=1)
    strangers = [{"resource": "pods", "name": f"s{i}", "uid": f"s{i}"} for i in range(255)]
    world.show_claim(**allocated("n0", *strangers, the_group()))
    world.show_member("a")
    assert set(world.decide_once()) == {"uid-a"}
    world = GroupWorld(minimum=1)
    strangers.append({"resource": "pods", "name": "s", "uid": "s"})
    world.show_claim(**allocated("n0", *strangers))
    world.show_member("a")
    assert world.decide_once() == {}


def test_who_comes_later_joins_the_group_where_its_devices_are() -> None:
    world = GroupWorld()
    for name in "ab":
        world.show_member(name)
    binds = world.decide_once()
    (node,) = {bind.node for bind in binds.values()}
    world.show_claim(**allocated(node, the_group()))
    for name in "ab":
        world.show_member(name, node=node)
    world.show_member("c")
    later = world.decide_once()
    assert later["uid-c"].node == node
    assert read_groups(later) == {_GROUP}
    assert world.n_taken == 1
    world.check()


@pytest.mark.parametrize("users", [(), ("gang",), ("gang", "other")])
def test_devices_that_are_in_the_way_of_a_group_are_freed_unless_others_have_them(
    users: tuple[str, ...],
) -> None:
    world = GroupWorld()
    world.engine.handle(events.Seen(make.node(name="n0", cpu="1")), 0.0)
    world.show_claim(**allocated("n0", *map(the_group, users)))
    for name in "ab":
        world.show_member(name)
    world.now += 1.0
    frees = [
        one for plan in world.engine.decide(world.now, Unlimited()).plans for one in plan.frees
    ]
    assert [one.key for one in frees] == ([] if "other" in users else [("default", "made")])


def test_simulate_makes_one_claim_for_a_group() -> None:
    group = make.pod_group(minimum=2, resourceClaims=[_ENTRY])
    body = msgspec.to_builtins(group) | {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}  # fmt: skip
    pods = []
    for name in "ab":
        pod = devices.pod_with(name)
        pod["spec"] |= {"schedulingGroup": {"podGroupName": "gang"}, "resourceClaims": [_ENTRY]}
        pods.append(make_object("Pod", pod))
    found = schedule(
        [
            *make_cluster(device("gpu-0")),
            make_object("ResourceClaimTemplate", devices.template("of-group")),
            body,
            *pods,
        ]
    )
    claims = {one["claim"] for pod in found["pods"] for one in pod["claims"]}
    assert found["summary"]["pending"] == 0
    assert claims == {"gang-domain"}
