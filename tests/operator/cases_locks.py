"""HAMi's node lock, which other schedulers and crashed ones hold too."""

from __future__ import annotations

import datetime as dt

from scheduler.embedded.agents import hami_plugin, nodes
from tests.operator import audit
from tests.operator.cases_hami import NODE_POLICY
from tests.operator.cases_preemption import create_classes
from tests.operator.foreign import bind_for_another
from tests.operator.manifests import pod, vgpu
from tests.operator.world import NODES, PODS, World

_LOCK_SECONDS = 20


def _lock(pod_name: str, *, age_seconds: float = 0.0) -> dict[str, str | None]:
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age_seconds)
    return {audit.LOCK: f"{since.strftime('%Y-%m-%dT%H:%M:%SZ')},default,{pod_name}"}


async def a_lock_of_another_schedulers_pod_is_waited_for(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"), nodes.make_plain_node("plain"))
    await bind_for_another(world, "foreign", "g0")
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


async def a_pod_that_waits_for_a_lock_is_taken_back_for_one_of_higher_priority(
    world: World,
) -> None:
    """It has no node yet, so nobody deletes it: it waits again."""
    await create_classes(world)
    await world.create(nodes.make_gpu_node("g0", cards=1))
    await bind_for_another(world, "foreign", "g0")
    await world.annotate(f"{NODES}/g0", _lock("foreign"))
    (low,) = await world.create(vgpu("low", mem=15_000, priorityClassName="low"))
    await world.settle()
    assert not await world.events("FailedScheduling", "low")
    await world.create(vgpu("high", mem=15_000, priorityClassName="high"))
    (event,) = await world.wait_until(lambda: world.events("Preempted", "low"))
    assert event["note"].endswith("on node g0 (in kube-scheduler memory).")
    await world.annotate(f"{PODS}/foreign", {"hami.io/bind-phase": "success"})
    await world.annotate(f"{NODES}/g0", {audit.LOCK: None})
    assert await world.bound("high") == ["g0"]
    found = (await world.pod("low"))["metadata"]
    assert found["uid"] == low["metadata"]["uid"]
    assert "deletionTimestamp" not in found
    await world.refused("low", "1 node(s) had no fitting GPU")


async def a_lock_whose_pod_is_gone_is_taken_over(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    await world.annotate(f"{NODES}/g0", _lock("vanished"))
    async with world.agents():
        await world.create(vgpu("p"))
        await world.running("p")
        await world.wait_until(world.nodes, lambda found: not audit.locked(found))


async def a_lock_whose_pod_is_done_is_taken_over(world: World) -> None:
    """A plugin that wrote its answer and died before it gave the lock back."""
    await world.create(nodes.make_gpu_node("g0"))
    await bind_for_another(world, "foreign", "g0")
    await world.annotate(f"{PODS}/foreign", {"hami.io/bind-phase": "success"})
    await world.annotate(f"{NODES}/g0", _lock("foreign"))
    await world.create(vgpu("p"))
    await world.bound("p")


async def an_old_lock_of_a_pod_without_a_node_is_taken_over(world: World) -> None:
    """Its scheduler died between lock and bind: nothing but age shows that."""
    await world.create(nodes.make_gpu_node("g0"), vgpu("foreign", schedulerName="another"))
    await world.annotate(f"{NODES}/g0", _lock("foreign", age_seconds=301))
    await world.create(vgpu("p"))
    await world.bound("p")


async def a_lock_is_kept_however_old_it_is_until_its_pod_starts(world: World) -> None:
    """A plugin that wakes up would give the pod that it finds in the lock to the one that it has to serve."""
    await world.create(nodes.make_gpu_node("g0"))
    await bind_for_another(world, "foreign", "g0")
    lock = _lock("foreign", age_seconds=86_400)
    await world.annotate(f"{NODES}/g0", lock)
    await world.create(vgpu("p"))
    await world.settle()
    assert "nodeName" not in (await world.pod("p"))["spec"]
    assert (await world.node("g0"))["metadata"]["annotations"][audit.LOCK] == lock[audit.LOCK]
    await world.call("PATCH", f"{PODS}/foreign/status", {"status": {"phase": "Running"}})
    await world.bound("p")


async def a_lock_of_a_pod_on_another_node_is_taken_over(world: World) -> None:
    """What a leader sent that was cut off may land when its pod has gone elsewhere."""
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await bind_for_another(world, "foreign", "g1")
    await world.annotate(f"{NODES}/g0", _lock("foreign"))
    await world.create(vgpu("p", nodeSelector={"kubernetes.io/hostname": "g0"}))
    assert await world.bound("p") == ["g0"]


async def pods_take_their_turns_by_priority_whenever_they_came(world: World) -> None:
    """The order is that of the queue, and the same after a restart, see tests/virtual/test_node_locks.py."""
    await create_classes(world)
    await world.create(nodes.make_gpu_node("g0"), vgpu("holder", mem=1000))
    await world.bound("holder")
    await world.create(vgpu("low", mem=1000, priorityClassName="low"))
    await world.settle()
    await world.create(vgpu("high", mem=1000, priorityClassName="high"))
    await world.settle()
    await world.delete(f"{PODS}/holder")
    assert await world.bound("high") == ["g0"]
    assert "nodeName" not in (await world.pod("low"))["spec"]


async def a_lock_that_nobody_can_read_is_taken_over(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    await world.annotate(f"{NODES}/g0", {audit.LOCK: "what,is,this,here"})
    await world.create(vgpu("p"))
    await world.bound("p")


async def a_pod_deleted_while_its_plugin_is_silent_frees_the_node(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    await world.create(vgpu("first"), vgpu("second"))
    found = await world.all_bound(1)
    (holder,) = (p["metadata"]["name"] for p in found if "nodeName" in p["spec"])
    await world.settle()
    (waiting,) = {"first", "second"} - {holder}
    assert "nodeName" not in (await world.pod(waiting))["spec"]
    await world.delete(f"{PODS}/{holder}")
    await world.bound(waiting)


async def a_silent_plugin_stops_its_own_node_only(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0", cards=1), nodes.make_gpu_node("g1", cards=1))
    await world.create(*(vgpu(f"p{i}", mem=1234) for i in range(4)))
    await world.all_bound(1)
    await world.settle()
    one_each = {"kubernetes.io/hostname": "g1"}
    found = [p for p in await world.pods() if "nodeName" in p["spec"]]
    assert len({p["spec"]["nodeName"] for p in found}) == len(found)
    async with world.agents():
        await world.create(vgpu("elsewhere", mem=1234, nodeSelector=one_each))
        await world.running("elsewhere", *(f"p{i}" for i in range(4)))


async def a_pod_whose_node_is_cordoned_before_its_turn_goes_elsewhere(world: World) -> None:
    """Else a drained node would get one more pod for every one that waited for its plugin."""
    await world.create(nodes.make_gpu_node("g0"), vgpu("first"), vgpu("second"))
    found = await world.all_bound(1)
    await world.settle()
    (waiting,) = (p["metadata"]["name"] for p in found if "nodeName" not in p["spec"])
    await world.create(nodes.make_gpu_node("g1"))
    await world.call("PATCH", f"{NODES}/g0", {"spec": {"unschedulable": True}})
    assert await world.bound(waiting) == ["g1"]


async def pods_behind_a_silent_plugin_move_to_a_node_with_room(world: World) -> None:
    """One hung plugin must not keep pods that another node could run."""
    config = world.server.folder / "short-lock.yaml"
    config.write_text(f"lockTimeoutSeconds: {_LOCK_SECONDS}\n")
    await world.create(nodes.make_gpu_node("g0", cards=1))
    names = [f"p{i}" for i in range(4)]
    silent = hami_plugin.Knobs(dead=True)
    async with world.agents(nodes=["g0"], knobs=silent), world.agents(nodes=["g1"]):
        await world.start_operator(args=["--config", str(config)])
        spread = {NODE_POLICY: "spread"}
        await world.create(*(vgpu(name, mem=3000, annotations=spread) for name in names))
        await world.all_bound(1)
        await world.settle()
        found = {p["metadata"]["name"]: "nodeName" in p["spec"] for p in await world.pods()}
        behind = [name for name in names if not found[name]]
        assert len(behind) == 3
        await world.create(nodes.make_gpu_node("g1", cards=4))
        await world.running(*behind, seconds=120.0)
        assert await world.bound(*behind) == ["g1"] * 3
        for name in behind:
            await world.refused(name, "the device plugin of node g0 does not answer")


async def a_lock_whose_pod_went_while_nobody_ran_is_removed_at_the_start(world: World) -> None:
    """No pod comes that would take it over."""
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await world.create(vgpu("waits", schedulerName="another"))
    kept = _lock("waits")
    await world.annotate(f"{NODES}/g0", _lock("vanished"))
    await world.annotate(f"{NODES}/g1", kept)
    await world.start_operator()
    await world.wait_until(lambda: world.node("g0"), lambda one: not audit.locked([one]))
    assert (await world.node("g1"))["metadata"]["annotations"][audit.LOCK] == kept[audit.LOCK]


async def nodes_move_from_another_scheduler_one_by_one(world: World) -> None:
    """On its nodes ours gets no cards; what it does on ours is told on the node, once."""
    config = world.server.folder / "node-by-node.yaml"
    config.write_text("hamiSchedulerNodes: scheduler=hami\n")
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await world.call("PATCH", f"{NODES}/g0", {"metadata": {"labels": {"scheduler": "hami"}}})
    async with world.agents():
        await world.start_operator(args=["--config", str(config)])
        await bind_for_another(world, "at-home", "g0")
        there = {"kubernetes.io/hostname": "g0"}
        await world.create(vgpu("anywhere"), vgpu("there", nodeSelector=there))
        assert await world.bound("anywhere") == ["g1"]
        await world.refused("there", "1 node(s) had devices that another scheduler allocates")
        for name in ("guest", "another-guest"):
            await bind_for_another(world, name, "g1")
        (event,) = await world.wait_until(lambda: world.events("ForeignAllocation", "g1"))
        assert "scheduler hami-scheduler" in event["note"]
        await world.call("PATCH", f"{NODES}/g0", {"metadata": {"labels": {"scheduler": None}}})
        assert await world.bound("there") == ["g0"]
        assert len(await world.events("ForeignAllocation", "g1")) == 1
        assert not await world.events("ForeignAllocation", "g0")


ALL = (
    a_lock_of_another_schedulers_pod_is_waited_for,
    a_pod_that_waits_for_a_lock_is_taken_back_for_one_of_higher_priority,
    a_lock_whose_pod_is_gone_is_taken_over,
    a_lock_whose_pod_is_done_is_taken_over,
    an_old_lock_of_a_pod_without_a_node_is_taken_over,
    a_lock_is_kept_however_old_it_is_until_its_pod_starts,
    a_lock_of_a_pod_on_another_node_is_taken_over,
    pods_take_their_turns_by_priority_whenever_they_came,
    a_lock_that_nobody_can_read_is_taken_over,
    a_pod_deleted_while_its_plugin_is_silent_frees_the_node,
    a_silent_plugin_stops_its_own_node_only,
    a_pod_whose_node_is_cordoned_before_its_turn_goes_elsewhere,
)
# These start operators of their own.
ALONE = (
    pods_behind_a_silent_plugin_move_to_a_node_with_room,
    a_lock_whose_pod_went_while_nobody_ran_is_removed_at_the_start,
    nodes_move_from_another_scheduler_one_by_one,
)
