"""Starting, stopping, and two at once: every case starts its own operators."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from scheduler.embedded.agents import cards, hami_plugin, nodes
from tests.operator import audit
from tests.operator.manifests import pod, vgpu
from tests.operator.process import START_SECONDS, Operator
from tests.operator.servers import OPERATOR_NAMESPACE
from tests.operator.world import PODS, World

Json = dict[str, Any]
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases/evenkeel"
# A stop gives the events that wait two seconds, which is enough for these.
_REPORTS = 30


async def _holder(world: World) -> str:
    holder: str = (await world.call("GET", _LEASE))["spec"].get("holderIdentity") or ""
    return holder


async def a_stopped_operator_gives_the_lease_back_and_ends_with_zero(world: World) -> None:
    took: list[float] = []
    await world.create(nodes.make_plain_node("n0"))
    # Stopping waits for nothing that takes kopf's five seconds; a slow machine may be late, but not every time.
    while not took or (took[-1] >= 5 and len(took) < 3):
        name = f"p{len(took)}"
        operator = await world.start_operator(name="only")
        await world.create(pod(name))
        await world.bound(name)
        assert (await _holder(world)).startswith("only_")
        ended = await asyncio.to_thread(operator.stop)
        assert ended.code == 0
        assert await _holder(world) == ""
        assert operator.said("stopped")
        took.append(ended.seconds)
    assert took[-1] < 5, took


async def binds_in_flight_are_finished_before_a_stop(world: World) -> None:
    """What was decided is written or given back, and the next one binds the rest."""
    await world.create(*(nodes.make_plain_node(f"n{i}", pods="200") for i in range(4)))
    operator = await world.start_operator()
    manifests = [pod(f"p{i}") for i in range(400)]
    creating = asyncio.create_task(world.create_all(manifests, at_once=4))
    await world.all_bound(50)
    await world.measured(operator, lambda m: m.get("evenkeel_reports_waiting", _REPORTS) < _REPORTS)
    ended = await asyncio.to_thread(operator.stop)
    assert ended.code == 0
    await creating
    found = await world.pods()
    assert audit.problems(await world.nodes(), found) == []
    # Whoever was bound got an event: nothing was dropped on the way out.
    bound = {p["metadata"]["name"] for p in found if "nodeName" in p["spec"]}
    events = await world.listed("/apis/events.k8s.io/v1/namespaces/default/events")
    told = {e["regarding"]["name"] for e in events if e["reason"] == "Scheduled"}
    assert told == bound
    await world.start_operator()
    await world.all_bound(400)


async def usage_is_rebuilt_from_annotations_after_a_restart(world: World) -> None:
    await world.create(
        nodes.make_gpu_node("g0", cards=2), nodes.make_gpu_node("g1", cards=2, register="text7")
    )
    async with world.agents():
        first = await world.start_operator()
        names = [f"a{i}" for i in range(6)]
        await world.create(*(vgpu(name, mem=5000 + i, cores=30) for i, name in enumerate(names)))
        await world.running(*names)
        await asyncio.to_thread(first.stop)
        # Room for two more of 10,000 MiB at most, on cards that have two of the six or none.
        await world.create(*(vgpu(f"b{i}", mem=10_001) for i in range(5)))
        await world.start_operator()
        await world.wait_until(
            world.pods, lambda pods: all(_is_settled(one) for one in pods), seconds=30
        )
    for node in await world.nodes():
        register = node["metadata"]["annotations"][cards.REGISTER]
        assert sum(card["id"] in register for card in _cards_of_all(2)) == 2
    assert _over(await world.pods()) == []
    # Each card that holds no more than 5,359 MiB could take one; none was left out either.
    by_card = _memory(await world.pods())
    waiting = [p for p in await world.pods() if "nodeName" not in p["spec"]]
    assert not waiting or all(
        used + 10_001 > 15_360 for used in (by_card.get(c["id"], 0) for c in _cards_of_all(2))
    )


def _cards_of_all(count: int) -> list[Json]:
    return [{"id": cards.make_card_id(f"g{n}", i)} for n in range(2) for i in range(count)]


def _memory(pods: list[Json]) -> dict[str, int]:
    used: dict[str, int] = {}
    for one in pods:
        for slot in audit.devices(one) if "nodeName" in one["spec"] else ():
            for uuid, mem, _ in slot:
                used[uuid] = used.get(uuid, 0) + mem
    return used


def _over(pods: list[Json]) -> list[str]:
    return [uuid for uuid, used in _memory(pods).items() if used > 15_360]


def _is_settled(one: Json) -> bool:
    if one["status"].get("phase") == "Running":
        return True
    conditions = one["status"].get("conditions", ())
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


async def one_of_two_leads_and_hands_over_when_it_is_stopped(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    first = await world.start_operator(name="first")
    await world.leads(first)
    second = await world.start_operator(name="second")
    await world.create(pod("p0"))
    await world.bound("p0")
    assert not second.is_deciding
    assert second.get("/readyz")[0] == 200
    await asyncio.to_thread(first.stop)
    began = asyncio.get_running_loop().time()
    await world.create(pod("p1"))
    await world.bound("p1")
    print(f"handed over in {asyncio.get_running_loop().time() - began:.1f} s")
    assert (await _holder(world)).startswith("second_")
    (told,) = await world.wait_until(lambda: world.events("Scheduled", "p1"))
    assert told["reportingInstance"].startswith("second_")


async def a_killed_leader_is_followed_after_its_short_lease(world: World) -> None:
    """What it left waiting is bound by the next; those that ask no card are fenced beside the binds."""
    short = ("--lease-seconds", "5")
    await world.create(nodes.make_gpu_node("g0", cards=2), nodes.make_plain_node("n0"))
    first = await world.start_operator(name="first", args=short)
    await world.leads(first)
    assert (await world.call("GET", _LEASE))["spec"]["leaseDurationSeconds"] == 5
    second = await world.start_operator(name="second", args=short)
    await asyncio.to_thread(first.kill)
    waiting = [vgpu("card", mem=100), *(pod(f"p{i}") for i in range(20))]
    await world.create(*waiting, pod("never", nodeSelector={"no": "where"}))
    version = (await world.pod("never"))["metadata"]["resourceVersion"]
    async with world.agents():
        await world.running(*(one["metadata"]["name"] for one in waiting))
    assert (await _holder(world)).startswith("second_")
    # A bind of the dead one that is still on its way can land on none of them any more.
    await world.measured(second, lambda m: m.get("evenkeel_unfenced_pods") == 0)
    assert (await world.pod("never"))["metadata"]["resourceVersion"] != version


async def a_lock_left_by_a_killed_leader_is_taken_over(world: World) -> None:
    """It died between its lock and its bind: the pod it locked for has no node."""
    await world.create(nodes.make_gpu_node("g0"), vgpu("next", mem=100))
    left = pod("left-alone", limits={"nvidia.com/gpu": 1}, nodeSelector={"no": "where"})
    await world.create(left)
    lock = "2026-01-01T00:00:00Z,default,left-alone"
    await world.annotate("/api/v1/nodes/g0", {audit.LOCK: lock})
    async with world.agents():
        await world.start_operator(lease=False)
        await world.running("next")


async def a_pod_that_a_killed_leader_bound_is_allocated_before_the_next(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    first = await world.start_operator(lease=False)
    await world.create(vgpu("a", mem=100))
    await world.bound("a")
    await asyncio.to_thread(first.kill)
    await world.create(vgpu("b", mem=100))
    await world.start_operator(lease=False, name="b")
    await world.settle()
    assert "nodeName" not in (await world.pod("b"))["spec"]
    async with world.agents(knobs=hami_plugin.Knobs(delay_seconds=0.1)) as played:
        await world.running("a", "b")
        assert [one.pod for one in played.allocations] == ["a", "b"]


async def a_node_malformed_before_the_start_is_told(world: World) -> None:
    """The list comes before leadership; what was wrong in it must not be forgotten."""
    bad = nodes.make_gpu_node("bad")
    bad["metadata"]["annotations"][cards.REGISTER] = "nonsense"
    await world.create(bad)
    operator = await world.start_operator()
    await world.leads(operator)
    await world.wait_until(lambda: world.events("MalformedNode", "bad"))


async def pods_and_policies_of_before_the_start_are_seen(world: World) -> None:
    policy = {
        "apiVersion": "scheduling.evenkeel.dev/v1alpha1",
        "kind": "BalancePolicy",
        "metadata": {"name": "spread"},
        "spec": {"gpuPolicy": "spread", "nodePolicy": "binpack"},
    }
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"), policy)
    names = [f"p{i}" for i in range(4)]
    await world.create(*(vgpu(name, mem=101) for name in names))
    async with world.agents():
        await world.start_operator()
        found = await world.running(*names)
    assert len({one["spec"]["nodeName"] for one in found}) == 1
    assert len({audit.devices(one)[0][0][0] for one in found}) == 4
    await world.delete(f"{PODS}/p0")


async def metrics_and_probes_are_served(world: World) -> None:
    await world.create(
        nodes.make_plain_node("n0"), pod("p"), pod("waits", nodeSelector={"no": "where"})
    )
    operator = await world.start_operator()
    await world.bound("p")
    await world.refused("waits")
    assert operator.get("/livez") == (200, "ok\n")
    assert operator.get("/readyz") == (200, "ok\n")
    metrics = await world.measured(
        operator, lambda m: m.get('scheduler_pending_pods{queue="active"}') == 0
    )
    attempts = "scheduler_schedule_attempts_total"
    assert metrics[f'{attempts}{{profile="evenkeel",result="scheduled"}}'] == 1
    assert metrics[f'{attempts}{{profile="evenkeel",result="unschedulable"}}'] == 1
    assert metrics['scheduler_pending_pods{queue="unschedulable"}'] == 1
    assert metrics['scheduler_pending_pods{queue="active"}'] == 0
    assert metrics["evenkeel_bind_duration_seconds_count"] == 1
    assert (metrics["evenkeel_leader"], metrics["evenkeel_nodes"]) == (1, 1)
    for stream in ("nodes", "pods-ours", "pods-others"):
        assert metrics[f'evenkeel_stream_age_seconds{{stream="{stream}"}}'] >= 0


async def a_port_that_is_taken_ends_the_start_with_the_reason(world: World) -> None:
    """An operator nobody can probe would be restarted for ever, and nobody would know why."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        operator = Operator(world.server, args=["--port", str(port)])
        try:
            await world.wait_until(
                lambda: asyncio.to_thread(lambda: not operator.is_running), seconds=START_SECONDS
            )
            ended = operator.stop()
        finally:
            operator.kill()
    assert ended.code == 2
    last = operator.log.strip().splitlines()[-1]
    assert [word for word in ("--port", str(port), "already in use") if word not in last] == []
    operator.check_log()


ALL = (
    a_stopped_operator_gives_the_lease_back_and_ends_with_zero,
    binds_in_flight_are_finished_before_a_stop,
    usage_is_rebuilt_from_annotations_after_a_restart,
    one_of_two_leads_and_hands_over_when_it_is_stopped,
    a_killed_leader_is_followed_after_its_short_lease,
    a_lock_left_by_a_killed_leader_is_taken_over,
    a_pod_that_a_killed_leader_bound_is_allocated_before_the_next,
    a_node_malformed_before_the_start_is_told,
    pods_and_policies_of_before_the_start_are_seen,
    metrics_and_probes_are_served,
    a_port_that_is_taken_ends_the_start_with_the_reason,
)
