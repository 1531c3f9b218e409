"""HAMi's node lock, which other schedulers and crashed ones hold too."""

from __future__ import annotations

import datetime as dt

from scheduler.embedded import nodes
from tests.operator import audit
from tests.operator.world import NODES, PODS, World, pod, vgpu


def _lock(pod_name: str, *, age_seconds: float = 0.0) -> dict[str, str | None]:
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age_seconds)
    return {audit.LOCK: f"{since.strftime('%Y-%m-%dT%H:%M:%SZ')},default,{pod_name}"}


async def _foreign(world: World, name: str = "foreign") -> None:
    """A pod that another scheduler has bound, whose cards are being allocated."""
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}
    await world.create(pod(name, limits=limits, schedulerName="hami-scheduler"))
    card = next(iter(audit.cards(await world.node("g0"))))
    devices = f"{card},NVIDIA,100,0:;"
    annotations = {
        "hami.io/vgpu-node": "g0",
        "hami.io/vgpu-time": "1",
        audit.TO_ALLOCATE: devices,
        audit.ALLOCATED: devices,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1",
    }
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": annotations},
        "target": {"kind": "Node", "name": "g0"},
    }
    await world.call("POST", f"{PODS}/{name}/binding", binding)


async def a_lock_of_another_schedulers_pod_is_waited_for(world: World) -> None:
    await world.create(nodes.gpu_node("g0"), nodes.plain_node("plain"))
    await _foreign(world)
    lock = _lock("foreign")
    await world.annotate(f"{NODES}/g0", lock)
    await world.create(vgpu("ours"), vgpu("ours-too"), pod("no-gpu"))
    # Others do not queue behind it, and pods that need no lock do not either.
    assert await world.bound("no-gpu") == ["plain"]
    await world.settle()
    for name in ("ours", "ours-too"):
        assert "nodeName" not in (await world.pod(name))["spec"]
        assert not await world.events("FailedScheduling", name)
    assert (await world.node("g0"))["metadata"]["annotations"][audit.LOCK] == lock[audit.LOCK]
    await world.annotate(f"{PODS}/foreign", {"hami.io/bind-phase": "success"})
    await world.call("PATCH", f"{PODS}/foreign/status", {"status": {"phase": "Running"}})
    await world.annotate(f"{NODES}/g0", {audit.LOCK: None})
    async with world.agents():
        await world.running("ours", "ours-too")


async def a_lock_whose_pod_is_gone_is_taken_over(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    await world.annotate(f"{NODES}/g0", _lock("vanished"))
    async with world.agents():
        await world.create(vgpu("p"))
        await world.running("p")
        await world.wait_until(world.nodes, lambda found: not audit.locked(found))


async def a_lock_whose_pod_is_done_is_taken_over(world: World) -> None:
    """A plugin that wrote its answer and died before it gave the lock back."""
    await world.create(nodes.gpu_node("g0"))
    await _foreign(world)
    await world.annotate(f"{PODS}/foreign", {"hami.io/bind-phase": "success"})
    await world.annotate(f"{NODES}/g0", _lock("foreign"))
    await world.create(vgpu("p"))
    await world.bound("p")


async def a_lock_older_than_five_minutes_is_taken_over(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    await _foreign(world)
    await world.annotate(f"{NODES}/g0", _lock("foreign", age_seconds=301))
    await world.create(vgpu("p"))
    await world.bound("p")


async def a_lock_that_nobody_can_read_is_taken_over(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    await world.annotate(f"{NODES}/g0", {audit.LOCK: "what,is,this,here"})
    await world.create(vgpu("p"))
    await world.bound("p")


async def a_pod_deleted_while_its_plugin_is_silent_frees_the_node(world: World) -> None:
    await world.create(nodes.gpu_node("g0"))
    await world.create(vgpu("first"), vgpu("second"))
    found = await world.all_bound(1)
    (holder,) = (p["metadata"]["name"] for p in found if "nodeName" in p["spec"])
    await world.settle()
    (waiting,) = {"first", "second"} - {holder}
    assert "nodeName" not in (await world.pod(waiting))["spec"]
    await world.delete(f"{PODS}/{holder}")
    await world.bound(waiting)


async def a_silent_plugin_stops_its_own_node_only(world: World) -> None:
    await world.create(nodes.gpu_node("g0", cards=1), nodes.gpu_node("g1", cards=1))
    await world.create(*(vgpu(f"p{i}", mem=1234) for i in range(4)))
    await world.all_bound(1)
    await world.settle()
    one_each = {"kubernetes.io/hostname": "g1"}
    found = [p for p in await world.pods() if "nodeName" in p["spec"]]
    assert len({p["spec"]["nodeName"] for p in found}) == len(found)
    async with world.agents():
        await world.create(vgpu("elsewhere", mem=1234, nodeSelector=one_each))
        await world.running("elsewhere", *(f"p{i}" for i in range(4)))


ALL = (
    a_lock_of_another_schedulers_pod_is_waited_for,
    a_lock_whose_pod_is_gone_is_taken_over,
    a_lock_whose_pod_is_done_is_taken_over,
    a_lock_older_than_five_minutes_is_taken_over,
    a_lock_that_nobody_can_read_is_taken_over,
    a_pod_deleted_while_its_plugin_is_silent_frees_the_node,
    a_silent_plugin_stops_its_own_node_only,
)
