"""Answers of the API server that are refused, lost or late: nothing is lost, nothing given away twice."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

import pytest

from scheduler.embedded import agents, nodes
from tests.operator import audit, servers
from tests.operator.cases_hami import NODE_POLICY
from tests.operator.faults import Call, Fault, injected
from tests.operator.process import Operator
from tests.operator.world import NODES, PODS, World, enter, pod, vgpu

_UNANSWERED = 6.0  # the operator waits five seconds for an answer
_LISTS = 'evenkeel_stream_lists{stream="pods-ours"}'


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: servers.Server) -> Iterator[Operator]:
    running = Operator(server, lease=False)
    try:
        running.wait_ready()
        yield running
    finally:
        ended = running.stop()
    assert ended.code == 0


@pytest.fixture
async def world(server: servers.Server, operator: Operator) -> AsyncIterator[World]:
    async with enter(server, operator) as made:
        yield made


def _inside(world: World) -> servers.Embedded:
    assert world.server.embedded is not None
    return world.server.embedded


async def _told(world: World, *names: str) -> None:
    """Wait until these pods have their event of success, which comes behind all said before."""
    for name in names:
        await world.wait_until(partial(world.events, "Scheduled", name))


async def _condition(world: World, name: str) -> dict[str, str]:
    conditions = (await world.pod(name))["status"]["conditions"]
    (scheduled,) = (c for c in conditions if c["type"] == "PodScheduled")
    return dict(scheduled)


@pytest.mark.parametrize("status", [429, 500, 503, 0])
async def test_a_bind_that_is_refused_for_now_is_tried_again(world: World, status: int) -> None:
    """An API server that is busy for a second must not look like a pod that fits nowhere."""
    await world.create(nodes.plain_node("n0"), nodes.gpu_node("g0"))
    await world.settle()

    def choose(call: Call) -> Fault | None:
        return Fault(status=status) if call.is_binding and call.number < 3 else None

    with injected(world.server, choose) as faults:
        async with world.agents():
            await world.create(*(pod(f"p{i}") for i in range(5)), vgpu("g", mem=100))
            await world.running(*(f"p{i}" for i in range(5)), "g")
    assert len(faults.done) == 12
    for name in (*(f"p{i}" for i in range(5)), "g"):
        await _told(world, name)
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
    await world.create(nodes.gpu_node("g0", cards=1), nodes.gpu_node("g1", cards=1))
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
    store = _inside(world).cluster.store
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
        await world.create(nodes.gpu_node("g0", cards=1))
        await world.wait_until(faults.happened)
        (other,) = {"a", "b"} - {*lost}
        await world.refused(other, "0/1 nodes are available")
        await world.wait_until(questions, lambda n: n >= 3)
        assert not [call for call in faults.calls if call.is_binding and call.pod == other]
        lasts = False
        await _told(world, *lost)
    assert "nodeName" not in (await world.pod(other))["spec"]


async def test_a_plugin_that_answers_before_the_bind_does_holds_nobody_up(world: World) -> None:
    """The answer to a bind may come after the plugin is long done; the next pod must not wait for it."""
    await world.create(nodes.gpu_node("g0", cards=1))

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
    await world.create(nodes.gpu_node("g0", cards=1))

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


async def test_what_a_broken_watch_missed_of_a_plugins_answer_is_found_in_the_list(
    world: World, operator: Operator
) -> None:
    """The plugin answers while the operator hears nothing, and the changes are forgotten since."""
    await world.create(nodes.gpu_node("g0", cards=1))
    await world.create(vgpu("first", mem=100), vgpu("second", mem=100))
    found = await world.all_bound(1)
    await world.settle()
    (first,) = (p["metadata"]["name"] for p in found if "nodeName" in p["spec"])
    (second,) = {"first", "second"} - {first}
    inside = _inside(world)
    operator.pause()
    try:
        inside.run(lambda c: c.store.drop_watches())
        async with world.agents():
            await world.running(first)
            await world.wait_until(world.nodes, lambda all_of_them: not audit.locked(all_of_them))
        inside.run(lambda c: c.store.compact())
    finally:
        operator.resume()
    await world.bound(second)


async def test_watches_that_expire_again_and_again_lose_nothing(
    world: World, operator: Operator
) -> None:
    """Many changes at once can outrun what the API server remembers of them."""
    await world.create(*(nodes.plain_node(f"n{i}", pods="200") for i in range(2)))
    await world.settle()
    lists = operator.metrics()[_LISTS]
    inside = _inside(world)
    for turn in range(5):
        operator.pause()
        try:
            inside.run(lambda c: c.store.drop_watches())
            await world.create_all([pod(f"p{turn}-{i}") for i in range(40)], at_once=4)
            await world.call("PATCH", f"{NODES}/n{turn % 2}", {"spec": {"unschedulable": True}})
            await world.call("PATCH", f"{NODES}/n{1 - turn % 2}", {"spec": {"unschedulable": None}})
            inside.run(lambda c: c.store.compact())
        finally:
            operator.resume()
    await world.all_bound(200)
    assert operator.metrics()[_LISTS] > lists


async def test_a_condition_that_is_written_late_is_not_put_on_a_bound_pod(world: World) -> None:
    """Autoscalers would add a node for a pod that runs: PodScheduled must not turn False again."""
    await world.create(pod("p", requests={"cpu": "1"}))
    await world.refused("p")

    def choose(call: Call) -> Fault | None:
        slow = call.method == "PATCH" and call.path.endswith("/status") and call.pod == "p"
        return Fault(held=True, seconds=0.7) if slow else None

    with injected(world.server, choose) as faults:
        await world.create(nodes.plain_node("small", cpu="500m"))
        # A change of the pod makes it active at once: refused, and bound a moment later.
        await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
        await world.wait_until(faults.happened)
        await world.create(nodes.plain_node("big", cpu="4"))
        await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "c"}}})
        assert await world.bound("p") == ["big"]
        await _told(world, "p")
        await world.wait_until(faults.are_over)
    assert (await _condition(world, "p"))["status"] == "True"


async def test_of_two_conditions_the_later_stays(world: World) -> None:
    """A slow write must not put yesterday's reason over today's."""
    await world.create(pod("p", requests={"cpu": "1"}))
    await world.refused("p")

    def choose(call: Call) -> Fault | None:
        first = call.method == "PATCH" and call.pod == "p" and call.number == 1
        return Fault(held=True, seconds=0.7) if first else None

    with injected(world.server, choose) as faults:
        for i in range(2):
            await world.create(nodes.plain_node(f"small{i}", cpu="500m"))
            await world.settle()
            # A change of the pod makes it active at once.
            await world.call("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": str(i)}}})
            await world.refused("p", f"{i + 1} Insufficient cpu")
        await world.wait_until(faults.happened)
        await world.wait_until(faults.are_over)
        await world.wait_until(
            partial(_condition, world, "p"), lambda c: "2 Insufficient cpu" in c["message"]
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
        await world.create(nodes.plain_node("n0", pods="100"))
        await world.bound(*names)
        await _told(world, *names)
        await world.wait_until(faults.are_over)


async def test_a_pod_that_is_being_deleted_while_it_is_bound_is_let_go(
    world: World, operator: Operator
) -> None:
    """The API server refuses to bind it; trying again for ever would help nobody."""
    going = pod("going", requests={"cpu": "1"})
    going["metadata"]["finalizers"] = ["example.com/wait"]
    await world.create(nodes.plain_node("n0", cpu="1"))

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
    pending = {k: n for k, n in operator.metrics().items() if "pending_pods" in k}
    assert not any(pending.values())
    await world.call("PATCH", f"{PODS}/going", {"metadata": {"finalizers": None}})


async def test_a_pod_steered_anew_while_its_bind_fails_is_placed_by_the_new_word(
    world: World,
) -> None:
    """Nothing shows the pod anew after the failure: its condition cannot be written either."""
    await world.create(nodes.gpu_node("g0"), nodes.gpu_node("g1"))
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
    await world.create(nodes.gpu_node("g0"), nodes.gpu_node("g1"))

    def choose(call: Call) -> Fault | None:
        about_lock = call.path.startswith(f"{NODES}/g")
        return Fault(status=500 + call.number % 4) if about_lock and call.number < 4 else None

    with injected(world.server, choose):
        async with world.agents(knobs=agents.Knobs(delay_seconds=0.01)):
            await world.create(*(vgpu(f"p{i}", mem=101) for i in range(6)))
            await world.running(*(f"p{i}" for i in range(6)))


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
    await world.create(nodes.plain_node("n0"), body, pod("p"))
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
        bad = nodes.gpu_node("bad")
        bad["metadata"]["annotations"]["hami.io/node-nvidia-register"] = "[nonsense"
        await world.create(bad)
        await world.wait_until(faults.happened)
        await asyncio.sleep(4.0)
        refuse = False
        await world.wait_until(lambda: world.events("MalformedNode", "bad"), seconds=40.0)
