"""Groups of Kubernetes itself on a real API server: placed whole or not at all, in one domain, and room is made for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.embedded.agents import nodes
from tests.operator import crds, servers
from tests.operator.manifests import pod
from tests.operator.world import Refused, World

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """An API server that knows pod groups."""
    with servers.real(extra_apiserver_flags=crds.FLAGS) as running:
        yield running


def group(name: str, minimum: int, *, topology: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {"metadata": {"name": name}, "spec": spec}


def member(name: str, of: str, cpu: str = "2") -> dict[str, Any]:
    return pod(name, requests={"cpu": cpu}, schedulingGroup={"podGroupName": of})


def node(name: str, rack: str) -> dict[str, Any]:
    made = nodes.make_plain_node(name)
    made["metadata"]["labels"]["rack"] = rack
    made["status"]["allocatable"] = {"cpu": "4", "memory": "32Gi", "pods": "100"}
    return made


async def test_a_gang_waits_for_its_object_and_its_last_pod_and_is_then_bound_in_one_rack(
    world: World,
) -> None:
    await world.create_all([node(f"n{i}", f"rack-{i // 2}") for i in range(4)])
    await world.start_operator()
    await world.create_all([member(f"p{i}", "train") for i in range(3)])
    await world.create(pod("alone", requests={"cpu": "1"}))
    assert await world.bound("alone")
    await world.call("POST", GROUPS, group("train", 4, topology="rack"))
    await world.settle()
    assert all(
        "nodeName" not in one["spec"]
        for one in await world.pods()
        if one["metadata"]["name"] != "alone"
    )
    await world.create(member("p3", "train"))
    places = await world.bound(*(f"p{i}" for i in range(4)))
    assert len({place[:2] for place in places}) == 2
    racks = {
        one["metadata"]["name"]: one["metadata"]["labels"]["rack"] for one in await world.nodes()
    }
    assert len({racks[place] for place in places}) == 1


async def test_a_gang_that_does_not_fit_whole_binds_nothing(world: World) -> None:
    await world.create_all([node("n0", "rack-0"), node("n1", "rack-1")])
    await world.start_operator()
    await world.call("POST", GROUPS, group("large", 5))
    await world.create_all([member(f"p{i}", "large") for i in range(5)])
    await world.settle()
    assert not [one for one in await world.pods() if "nodeName" in one["spec"]]
    assert await condition(world, "large") == ("False", "Unschedulable")
    conditions = [one["status"]["conditions"][0]["reason"] for one in await world.pods()]
    assert conditions == ["Unschedulable"] * 5
    assert len(await world.events("FailedScheduling", "large")) == 1
    assert not await world.events("FailedScheduling", "p0")
    await world.create(node("n2", "rack-2"))
    assert len(await world.bound(*(f"p{i}" for i in range(5)))) == 5
    placed = ("True", "Scheduled")
    await world.wait_until(lambda: condition(world, "large"), lambda found: found == placed)


async def test_room_is_made_for_a_gang_in_the_one_rack_where_it_costs_least(world: World) -> None:
    await world.create_all([node(f"n{i}", f"rack-{i // 2}") for i in range(4)])
    await world.start_operator()
    # In each rack a gang of two would have to go three pods; in the second one two of them are of no use.
    low = [
        pod(f"low-{i}", requests={"cpu": "3"}, nodeSelector={"kubernetes.io/hostname": f"n{i}"})
        for i in range(3)
    ]
    await world.create_all(low)
    await world.bound("low-0", "low-1", "low-2")
    urgent_class = {"metadata": {"name": "urgent"}, "value": 100}
    await world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent_class)
    made = group("urgent", 2, topology="rack")
    made["spec"]["priorityClassName"] = "urgent"
    # The API server's admission may not have heard of the class yet.
    await world.wait_until(lambda: _try_to_create(world, made), bool)
    urgent = [
        pod(f"p{i}", requests={"cpu": "4"}, priorityClassName="urgent",
            schedulingGroup={"podGroupName": "urgent"})
        for i in range(2)
    ]  # fmt: skip
    await world.create_all(urgent)
    assert sorted(await world.bound("p0", "p1")) == ["n2", "n3"]
    left = {one["metadata"]["name"] for one in await world.pods()}
    assert left == {"low-0", "low-1", "p0", "p1"}


async def _try_to_create(world: World, made: dict[str, Any]) -> bool:
    try:
        await world.call("POST", GROUPS, made)
    except Refused as error:
        if "no PriorityClass" not in str(error):
            raise
        return False
    return True


async def condition(world: World, name: str) -> tuple[str, str]:
    """The status and the reason of a group's only condition."""

    async def read() -> list[dict[str, Any]]:
        found = await world.call("GET", f"{GROUPS}/{name}")
        conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
        return conditions

    (found,) = await world.wait_until(read, bool)
    return found["status"], found["reason"]


async def test_a_group_without_an_object_that_does_not_fit_has_one_event(world: World) -> None:
    await world.create_all([node("n0", "rack-0")])
    await world.start_operator()
    for name in ("q", "r"):
        labels = {"kueue.x-k8s.io/pod-group-name": name}
        notes = {"kueue.x-k8s.io/pod-group-total-count": "3"}
        pods = [
            pod(f"{name}-{i}", requests={"cpu": "2"}, labels=labels, annotations=notes)
            for i in range(3)
        ]
        await world.create(*pods)
    await world.settle()

    async def name_waiting() -> list[str]:
        events = await world.listed("/apis/events.k8s.io/v1/events")
        said = (one for one in events if "2 of the 3 pods" in one["note"])
        return sorted(one["regarding"]["name"].partition("-")[0] for one in said)

    await world.wait_until(name_waiting, lambda found: len(found) >= 2)
    await world.settle()
    assert await name_waiting() == ["q", "r"]
