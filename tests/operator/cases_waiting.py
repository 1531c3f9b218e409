"""Pods that cannot be placed wait, say why once, and are tried again when something could help."""

from __future__ import annotations

import asyncio

from scheduler.embedded.agents import nodes
from tests.operator.manifests import pod, vgpu
from tests.operator.world import NODES, PODS, World, nothing_waits

_UNSCHEDULABLE = 'scheduler_schedule_attempts_total{profile="evenkeel",result="unschedulable"}'


async def _attempts(world: World) -> float:
    assert world.operator is not None
    metrics = await asyncio.to_thread(world.operator.metrics)
    return metrics.get(_UNSCHEDULABLE, 0.0)


async def an_unschedulable_pod_says_why_once(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="1", memory="1Gi"))
    # What is told is looked at again every five seconds at most, and told anew when the cluster differs by then.
    # Such a look may fall into the middle of one try, and not into each of three.
    tries = [await _times_it_says_why(world, f"p{i}") for i in range(3)]
    assert 1 in tries, tries


async def _times_it_says_why(world: World, name: str) -> int:
    """How often a pod says why it waits, while nodes come and go that do not help it."""
    await world.create(pod(name, requests={"cpu": "2", "memory": "2Gi"}))
    text = (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling. "
        "Insufficient cpu: requested 2, the most free is 1 on n0. "
        "Insufficient memory: requested 2Gi, the most free is 1Gi on n0."
    )
    event = await world.refused(name, text)
    assert (event["type"], event["action"]) == ("Warning", "Scheduling")
    assert (event["note"], event["reportingController"]) == (text, "evenkeel")

    async def condition() -> list[dict[str, str]]:
        conditions = (await world.pod(name))["status"].get("conditions", [])
        return [c for c in conditions if c["type"] == "PodScheduled"]

    (scheduled,) = await world.wait_until(condition)
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    assert scheduled["message"] == text
    for i in range(3):
        await world.create(nodes.make_plain_node(f"small{i}", cpu="1"))
        await world.annotate(f"{NODES}/small{i}", {"beat": str(i)})
    for i in range(3):
        await world.delete(f"{NODES}/small{i}")
    await world.settle()
    times = len(await world.events("FailedScheduling", name))
    assert times > 1 or await condition() == [scheduled]
    await world.delete(f"{PODS}/{name}")
    return times


async def a_node_that_helps_moves_the_pods_it_helps_and_no_others(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="1"))
    await world.create(
        *(pod(f"cpu{i}", requests={"cpu": "2"}) for i in range(3)),
        *(pod(f"disk{i}", nodeSelector={"disk": "ssd"}) for i in range(3)),
        *(vgpu(f"gpu{i}") for i in range(3)),
    )
    everyone = [f"{kind}{i}" for kind in ("cpu", "disk", "gpu") for i in range(3)]
    await asyncio.gather(*(world.refused(name) for name in everyone))
    before = await _attempts(world)
    await world.create(nodes.make_plain_node("big", cpu="8"))
    assert await world.bound("cpu0", "cpu1", "cpu2") == ["big"] * 3
    await world.settle()
    # The marker of settle itself, and no pod that the node could not help.
    assert await _attempts(world) == before + 1
    await world.call("PATCH", f"{NODES}/big", {"metadata": {"labels": {"disk": "ssd"}}})
    assert await world.bound("disk0", "disk1", "disk2") == ["big"] * 3
    await world.create(nodes.make_gpu_node("gpu", cards=2))
    async with world.agents():
        assert await world.bound("gpu0", "gpu1", "gpu2") == ["gpu"] * 3
    await world.settle()
    assert await _attempts(world) == before + 2


async def a_pod_with_gates_waits_until_the_last_is_gone(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
    await world.create(pod("gated", schedulingGates=gates))
    await world.settle()
    assert "nodeName" not in (await world.pod("gated"))["spec"]
    await world.call("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": gates[1:]}})
    await world.settle()
    found = await world.pod("gated")
    assert "nodeName" not in found["spec"]
    assert not await world.events("FailedScheduling", "gated")
    await world.call("PATCH", f"{PODS}/gated", {"spec": {"schedulingGates": []}})
    assert await world.bound("gated") == ["n0"]


async def a_pod_deleted_while_it_waits_is_forgotten(world: World) -> None:
    assert world.operator is not None
    await world.create(pod("gone", requests={"cpu": "1"}), pod("stays", requests={"cpu": "1"}))
    await world.refused("gone")
    await world.delete(f"{PODS}/gone")
    await world.create(pod("gone", requests={"cpu": "3"}))
    await world.create(nodes.make_plain_node("n0", cpu="4"))
    assert await world.bound("gone", "stays") == ["n0", "n0"]
    await world.measured(world.operator, nothing_waits)


async def a_waiting_pod_that_is_being_deleted_is_not_placed(world: World) -> None:
    """A finalizer keeps it in the API; the API server would refuse to bind it for ever."""
    waiting = pod("going", requests={"cpu": "1"})
    waiting["metadata"]["finalizers"] = ["example.com/wait"]
    await world.create(waiting)
    await world.refused("going")
    await world.delete(f"{PODS}/going")
    await world.create(nodes.make_plain_node("n0"), pod("other"))
    await world.bound("other")
    await world.settle()
    assert "nodeName" not in (await world.pod("going"))["spec"]
    assert len(await world.events("FailedScheduling", "going")) == 1
    await world.call("PATCH", f"{PODS}/going", {"metadata": {"finalizers": None}})


async def a_pod_changed_while_it_waits_is_tried_again(world: World) -> None:
    await world.create(
        nodes.make_gpu_node("g0"),
        nodes.make_plain_node("tainted", taints=[{"key": "team", "effect": "NoSchedule"}]),
    )
    await world.settle()
    await world.create(
        vgpu("picky", annotations={"nvidia.com/use-gputype": "A100"}),
        pod("tolerant", nodeSelector={"kubernetes.io/hostname": "tainted"}),
    )
    await world.refused("picky", "CardTypeMismatch on 4 GPUs: requested A100")
    await world.refused("tolerant", "1 node(s) had untolerated taint(s)")
    await world.annotate(f"{PODS}/picky", {"nvidia.com/use-gputype": "T4,A100"})
    assert await world.bound("picky") == ["g0"]
    tolerations = (await world.pod("tolerant"))["spec"]["tolerations"]
    more = [*tolerations, {"key": "team", "operator": "Exists"}]
    await world.call("PATCH", f"{PODS}/tolerant", {"spec": {"tolerations": more}})
    assert await world.bound("tolerant") == ["tainted"]


async def room_made_by_a_deleted_pod_is_used(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="2"), pod("first", requests={"cpu": "2"}))
    await world.bound("first")
    await world.create(*(pod(f"next{i}", requests={"cpu": "1"}) for i in range(3)))
    await asyncio.gather(*(world.refused(f"next{i}") for i in range(3)))
    await world.delete(f"{PODS}/first")
    found = await world.all_bound(2)
    assert sum("nodeName" in one["spec"] for one in found) == 2


async def many_waiting_pods_are_bound_with_their_condition_put_right(world: World) -> None:
    """Reports go out behind the binds: an old "unschedulable" must not land on a bound pod."""
    names = [f"p{i}" for i in range(150)]
    await world.create_all([pod(name, requests={"cpu": "10m"}) for name in names])
    await world.create(nodes.make_plain_node("n0", pods="200"))
    await world.bound(*names)
    await world.settle()


ALL = (
    an_unschedulable_pod_says_why_once,
    a_node_that_helps_moves_the_pods_it_helps_and_no_others,
    a_pod_with_gates_waits_until_the_last_is_gone,
    a_pod_deleted_while_it_waits_is_forgotten,
    a_waiting_pod_that_is_being_deleted_is_not_placed,
    a_pod_changed_while_it_waits_is_tried_again,
    room_made_by_a_deleted_pod_is_used,
    many_waiting_pods_are_bound_with_their_condition_put_right,
)
