"""Watches, conditions and events that break, expire or come late: everyone hears the truth in the end."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from scheduler.embedded.agents import nodes
from tests.operator import audit, servers, shared
from tests.operator.faults import Call, Fault, injected, inside
from tests.operator.manifests import pod, vgpu
from tests.operator.process import Operator
from tests.operator.world import NODES, PODS, World, enter

_LISTS = 'evenkeel_stream_lists_total{stream="pods-ours"}'


operator = shared.operator


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.fixture
async def world(server: servers.Server, operator: Operator) -> AsyncIterator[World]:
    async with enter(server, operator) as made:
        yield made


async def _condition(world: World, name: str) -> dict[str, str]:
    """The pod's condition PodScheduled; empty before it is written, which may be after the event."""
    conditions = (await world.pod(name))["status"].get("conditions", [])
    return next((dict(c) for c in conditions if c["type"] == "PodScheduled"), {})


async def test_what_a_broken_watch_missed_of_a_plugins_answer_is_found_in_the_list(
    world: World, operator: Operator
) -> None:
    """The plugin answers while the operator hears nothing, and the changes are forgotten since."""
    await world.create(nodes.make_gpu_node("g0", cards=1))
    await world.create(vgpu("first", mem=100), vgpu("second", mem=100))
    found = await world.all_bound(1)
    await world.settle()
    (first,) = (p["metadata"]["name"] for p in found if "nodeName" in p["spec"])
    (second,) = {"first", "second"} - {first}
    embedded = inside(world)
    operator.pause()
    try:
        embedded.run(lambda c: c.store.drop_watches())
        async with world.agents():
            await world.running(first)
            await world.wait_until(world.nodes, lambda all_of_them: not audit.locked(all_of_them))
        embedded.run(lambda c: c.store.compact())
    finally:
        operator.resume()
    await world.bound(second)


async def test_watches_that_expire_again_and_again_lose_nothing(
    world: World, operator: Operator
) -> None:
    """Many changes at once can outrun what the API server remembers of them."""
    await world.create(*(nodes.make_plain_node(f"n{i}", pods="200") for i in range(2)))
    await world.settle()
    lists = operator.metrics()[_LISTS]
    embedded = inside(world)
    for turn in range(5):
        operator.pause()
        try:
            embedded.run(lambda c: c.store.drop_watches())
            await world.create_all([pod(f"p{turn}-{i}") for i in range(40)], at_once=4)
            await world.call("PATCH", f"{NODES}/n{turn % 2}", {"spec": {"unschedulable": True}})
            await world.call("PATCH", f"{NODES}/n{1 - turn % 2}", {"spec": {"unschedulable": None}})
            embedded.run(lambda c: c.store.compact())
        finally:
            operator.resume()
    await world.all_bound(200)
    assert operator.metrics()[_LISTS] > lists


async def test_a_condition_that_is_written_late_is_not_put_on_a_bound_pod(world: World) -> None:
    """Autoscalers would add a node for a pod that runs: PodScheduled must not turn False again."""
    await world.create(pod("p", requests={"cpu": "1"}))
    # The fault below is for the conditions after this one.
    await world.wait_until(partial(_condition, world, "p"))

    def choose(call: Call) -> Fault | None:
        slow = call.method == "PATCH" and call.path.endswith("/status") and call.pod == "p"
        return Fault(held=True, seconds=0.7) if slow else None

    with injected(world.server, choose) as faults:
        await world.create(nodes.make_plain_node("small", cpu="500m"))
        # A change of the pod makes it active at once: refused, and bound a moment later.
        await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
        await world.wait_until(faults.happened)
        await world.create(nodes.make_plain_node("big", cpu="4"))
        await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "c"}}})
        assert await world.bound("p") == ["big"]
        await world.told("p")
        await world.wait_until(faults.are_over)
    assert (await _condition(world, "p"))["status"] == "True"


async def test_of_two_conditions_the_later_stays(world: World) -> None:
    """A slow write must not put yesterday's reason over today's."""
    await world.create(pod("p", requests={"cpu": "1"}))
    # The fault below is for the condition after this one.
    await world.wait_until(partial(_condition, world, "p"))

    def choose(call: Call) -> Fault | None:
        first = call.method == "PATCH" and call.pod == "p" and call.number == 1
        return Fault(held=True, seconds=0.7) if first else None

    with injected(world.server, choose) as faults:
        for i in range(2):
            await world.create(nodes.make_plain_node(f"small{i}", cpu="500m"))
            await world.settle()
            # A change of the pod makes it active at once.
            await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": str(i)}}})
            await world.refused("p", f"{i + 1} Insufficient cpu")
        await world.wait_until(faults.happened)
        await world.wait_until(faults.are_over)
        await world.wait_until(
            partial(_condition, world, "p"), lambda c: "2 Insufficient cpu" in c.get("message", "")
        )


async def test_conditions_that_wait_in_the_queue_are_not_written_on_bound_pods(
    world: World,
) -> None:
    """Many pods have waited and are bound at once: the audit finds what was written behind that."""
    names = [f"p{i}" for i in range(60)]

    def choose(call: Call) -> Fault | None:
        slow = call.method == "PATCH" and call.path.endswith("/status")
        return Fault(held=True, seconds=0.15) if slow else None

    with injected(world.server, choose) as faults:
        await world.create_all([pod(name, requests={"cpu": "10m"}) for name in names])
        await world.wait_until(faults.happened)
        await world.create(nodes.make_plain_node("n0", pods="100"))
        await world.bound(*names)
        await world.told(*names)
        await world.wait_until(faults.are_over)


async def test_a_policy_that_slipped_past_validation_is_not_ready_and_the_rest_goes_on(
    world: World,
) -> None:
    """The embedded server knows the schema and no CEL, as an old API server with the CRD edited."""
    path = "/apis/scheduling.evenkeel.dev/v1alpha1/balancepolicies"
    curve = {"curve": [{"utilization": 50, "score": 1}, {"utilization": 50, "score": 2}]}
    mode = {"mode": "requested-to-capacity-ratio"}
    body = {
        "apiVersion": "scheduling.evenkeel.dev/v1alpha1",
        "kind": "BalancePolicy",
        "metadata": {"name": "bad"},
        "spec": {"scoring": {**mode, **curve}},
    }
    await world.create(nodes.make_plain_node("n0"), body, pod("p"))
    assert await world.bound("p") == ["n0"]

    async def ready() -> tuple[str, str]:
        found = await world.call("GET", f"{path}/bad")
        (condition,) = found.get("status", {}).get("conditions", [{"status": "", "message": ""}])
        return condition["status"], condition["message"]

    status, message = await world.wait_until(ready, lambda found: found[0])
    assert status == "False"
    assert "spec.scoring.curve" in message
    assert "rise strictly" in message
    curve["curve"][1]["utilization"] = 60
    await world.call("PATCH", f"{path}/bad", {"spec": {"scoring": {**mode, **curve}}})
    await world.wait_until(ready, lambda found: found[0] == "True")


async def test_a_mistake_is_told_though_events_are_refused_for_a_while(world: World) -> None:
    """An API server that has just started refuses much; what is wrong with the node is said once only."""
    refuse = True

    def choose(call: Call) -> Fault | None:
        return Fault(status=503) if refuse and call.path.endswith("/events") else None

    with injected(world.server, choose) as faults:
        bad = nodes.make_gpu_node("bad")
        bad["metadata"]["annotations"]["hami.io/node-nvidia-register"] = "[nonsense"
        await world.create(bad)
        await world.wait_until(faults.happened)
        await asyncio.sleep(4.0)
        refuse = False
        await world.wait_until(lambda: world.events("MalformedNode", "bad"), seconds=40.0)
