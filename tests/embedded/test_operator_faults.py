"""Binds that are refused, or whose answers are lost or late: nothing is lost, nothing given away twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from scheduler.api.names import GROUP
from scheduler.embedded.agents import hami_plugin, nodes
from tests.operator import servers, shared
from tests.operator.cases_hami import NODE_POLICY
from tests.operator.cases_policies import in_force
from tests.operator.faults import Call, Fault, injected, inside
from tests.operator.manifests import pod, policy, vgpu
from tests.operator.process import Operator
from tests.operator.world import NODES, PODS, POLICIES, World, enter, nothing_waits

_UNANSWERED = 6.0  # the operator waits five seconds for an answer


operator = shared.operator


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.fixture
async def world(server: servers.Server, operator: Operator) -> AsyncIterator[World]:
    async with enter(server, operator) as made:
        yield made


@pytest.mark.parametrize("status", [429, 500, 503, 0])
async def test_a_bind_that_is_refused_for_now_is_tried_again(world: World, status: int) -> None:
    """An API server that is busy for a second must not look like a pod that fits nowhere."""
    await world.create(nodes.make_plain_node("n0"), nodes.make_gpu_node("g0"))
    await world.settle()

    def choose(call: Call) -> Fault | None:
        return Fault(status=status) if call.is_binding and call.number < 3 else None

    with injected(world.server, choose) as faults:
        async with world.agents():
            await world.create(*(pod(f"p{i}") for i in range(5)), vgpu("g", mem=100))
            await world.running(*(f"p{i}" for i in range(5)), "g")
    assert len(faults.done) == 12
    for name in (*(f"p{i}" for i in range(5)), "g"):
        await world.told(name)
        assert len(await world.events("Scheduled", name)) == 1
        assert not await world.events("FailedScheduling", name)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(served=True, status=500),
        Fault(served=True, status=504),
        Fault(served=True, status=0),
        Fault(served=True, status=0, seconds=_UNANSWERED),
    ],
    ids=["500", "504", "broken", "late"],
)
async def test_cards_bound_by_a_call_whose_answer_was_lost_are_not_given_away_again(
    world: World, operator: Operator, fault: Fault
) -> None:
    """Every bind takes effect, and the operator is told that none did."""
    await world.create(nodes.make_gpu_node("g0", cards=1), nodes.make_gpu_node("g1", cards=1))
    names = [f"p{i}" for i in range(6)]

    def choose(call: Call) -> Fault | None:
        return fault if call.is_binding and call.number == 1 else None

    with injected(world.server, choose) as faults:
        async with world.agents() as played:
            await world.create(*(vgpu(name, mem=7501, cores=40) for name in names))
            found = await world.wait_until(
                world.pods,
                lambda pods: sum(p["status"].get("phase") == "Running" for p in pods) == 4,
                60.0,
            )
            assert len(played.allocations) == 4
    assert len(faults.done) == 4
    left = [p["metadata"]["name"] for p in found if "nodeName" not in p["spec"]]
    for name in left:
        await world.refused(name, "0/2 nodes are available")
    assert operator.is_running


async def test_while_nobody_can_say_whether_a_bind_took_effect_its_cards_stay_taken(
    world: World,
) -> None:
    """The answer is lost, the watch is silent and the question is refused: for as long as that lasts."""
    store = inside(world).cluster.store
    await world.create(vgpu("a", mem=15_000), vgpu("b", mem=15_000))
    await asyncio.gather(world.refused("a"), world.refused("b"))
    lost: list[str] = []
    lasts = True

    def choose(call: Call) -> Fault | None:
        if call.is_binding and not lost:
            lost.append(call.pod)
            store.drop_watches("pods")
            return Fault(served=True, status=0)
        asks = call.method == "GET" and (call.is_pods or call.pod in lost)
        return Fault(status=500) if lost and lasts and asks else None

    async def questions() -> int:
        return sum(call.method == "GET" and call.pod in lost for call in faults.done)

    with injected(world.server, choose) as faults:
        await world.create(nodes.make_gpu_node("g0", cards=1))
        await world.wait_until(faults.happened)
        (other,) = {"a", "b"} - {*lost}
        await world.refused(other, "0/1 nodes are available")
        await world.wait_until(questions, lambda n: n >= 3)
        assert not [call for call in faults.calls if call.is_binding and call.pod == other]
        lasts = False
        await world.told(*lost)
    assert "nodeName" not in (await world.pod(other))["spec"]


async def test_a_plugin_that_answers_before_the_bind_does_holds_nobody_up(world: World) -> None:
    """The answer to a bind may come after the plugin is long done; the next pod must not wait for it."""
    await world.create(nodes.make_gpu_node("g0", cards=1))

    def choose(call: Call) -> Fault | None:
        return (
            Fault(served=True, status=0, seconds=1.0)
            if call.is_binding and call.number == 1
            else None
        )

    with injected(world.server, choose):
        async with world.agents():
            await world.create(vgpu("first", mem=100), vgpu("second", mem=100))
            await world.running("first", "second")


async def test_a_pod_deleted_before_the_bind_is_answered_holds_nobody_up(world: World) -> None:
    """Nobody will ever answer for it; the next pod of its node must not wait until that is sure."""
    await world.create(nodes.make_gpu_node("g0", cards=1))

    def choose(call: Call) -> Fault | None:
        slow = call.is_binding and call.pod == "gone"
        return Fault(served=True, status=0, seconds=1.0) if slow and call.number == 1 else None

    with injected(world.server, choose) as faults:
        await world.create(vgpu("gone", mem=100))
        await world.all_bound(1)
        await world.create(vgpu("next", mem=100))
        await world.delete(f"{PODS}/gone")
        await world.bound("next")
    assert faults.done


async def test_a_pod_that_is_being_deleted_while_it_is_bound_is_let_go(
    world: World, operator: Operator
) -> None:
    """The API server refuses to bind it; trying again for ever would help nobody."""
    going = pod("going", requests={"cpu": "1"})
    going["metadata"]["finalizers"] = ["example.com/wait"]
    await world.create(nodes.make_plain_node("n0", cpu="1"))

    deleted = False

    def choose(call: Call) -> Fault | None:
        early = call.is_binding and call.pod == "going" and not deleted
        return Fault(status=503) if early else None

    with injected(world.server, choose) as faults:
        await world.create(going)
        await world.wait_until(faults.happened)
        await world.delete(f"{PODS}/going")
        deleted = True
        await world.create(pod("other", requests={"cpu": "1"}))
        await world.bound("other")
    await world.measured(operator, nothing_waits)
    await world.call("PATCH", f"{PODS}/going", {"metadata": {"finalizers": None}})


async def test_a_pod_steered_anew_while_its_bind_fails_is_placed_by_the_new_word(
    world: World,
) -> None:
    """Nothing shows the pod anew after the failure: its condition cannot be written either."""
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await world.settle()
    changed = failed = False

    def choose(call: Call) -> Fault | None:
        nonlocal failed
        if call.pod != "p" or call.method == "GET":
            return None
        if not call.is_binding:
            return Fault(status=500)
        if not changed:
            return Fault(status=429)
        failed, fails = True, not failed
        # Neither answer leaves a doubt about what became of the bind.
        return Fault(status=422) if fails else None

    async with world.agents():
        await world.create(vgpu("first", mem=100))
        (first,) = await world.running("first")
        with injected(world.server, choose) as faults:
            await world.create(vgpu("p", mem=100, annotations={NODE_POLICY: "binpack"}))
            await world.wait_until(faults.happened)
            await world.annotate(f"{PODS}/p", {NODE_POLICY: "spread"})
            await world.settle()
            changed = True
            (there,) = await world.bound("p")
    assert failed
    assert there != first["spec"]["nodeName"]


async def test_a_lock_that_cannot_be_taken_for_now_is_tried_again(world: World) -> None:
    """A node that cannot be read or written for a moment keeps its cards for those that wait."""
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))

    def choose(call: Call) -> Fault | None:
        about_lock = call.path.startswith(f"{NODES}/g")
        return Fault(status=500 + call.number % 4) if about_lock and call.number < 4 else None

    with injected(world.server, choose):
        async with world.agents(knobs=hami_plugin.Knobs(delay_seconds=0.01)):
            await world.create(*(vgpu(f"p{i}", mem=101) for i in range(6)))
            await world.running(*(f"p{i}" for i in range(6)))


@pytest.mark.parametrize("status", [400, 404, 410])
async def test_a_watch_of_policies_that_is_refused_ends_nothing(
    world: World, operator: Operator, status: int
) -> None:
    """kopf ends at such an answer. Pods are placed meanwhile; what has changed is heard of afterwards."""
    await world.create(
        nodes.make_plain_node("n0"), policy("first", scoring={"mode": "most-allocated"})
    )
    await in_force(world, "first")
    lasts = True

    def choose(call: Call) -> Fault | None:
        return Fault(status=status) if lasts and call.path == POLICIES else None

    async def ended() -> bool:
        return bool(
            operator.said(
                "the watch of policies and namespaces ended and starts again; their changes arrive late"
            )
        )

    with injected(world.server, choose):
        inside(world).run(lambda cluster: cluster.store.drop_watches(f"balancepolicies.{GROUP}"))
        await world.wait_until(ended)
        await world.create(pod("meanwhile"))
        await world.bound("meanwhile")
        await world.delete(f"{POLICIES}/first")
        await world.create(policy("second", nodePolicy="spread"))
        lasts = False
        await in_force(world, "second")
    recorded = operator.record_path.read_text()
    assert '"type":"Gone","kind":"BalancePolicy","key":"first"' in recorded
    assert operator.is_running
