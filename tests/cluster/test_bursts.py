"""Bursts on a real API server with something going wrong in their middle: nothing lost, nothing twice."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator import audit, servers
from tests.operator.manifests import pod, vgpu
from tests.operator.process import Operator
from tests.operator.world import NODES, World

SMALL = {"cpu": "100m", "memory": "100Mi"}


async def _burst(world: World, *, n_nodes: int, n_pods: int) -> None:
    await world.create_all([nodes.make_plain_node(f"n{i:03}") for i in range(n_nodes)])
    await world.create_all([pod(f"p{i:04}", requests=SMALL) for i in range(n_pods)])


@asynccontextmanager
async def _mid_burst(world: World, manifests: list[dict[str, Any]]) -> AsyncIterator[None]:
    """Pods keep arriving while the block runs. It begins when some are bound and most are not.

    An operator leads already, so that no pile of pods is bound at once.
    """
    arriving = asyncio.create_task(world.create_all(manifests, at_once=8))
    found = await world.all_bound(10)
    bound = sum("nodeName" in one["spec"] for one in found)
    assert bound < len(manifests) // 2, "the burst was over before it could be disturbed"
    yield
    with suppress(Exception):
        # The API server may have been away for a moment.
        await arriving
    there = {one["metadata"]["name"] for one in await world.pods()}
    await world.create_all([m for m in manifests if m["metadata"]["name"] not in there])


async def _bound_once(world: World, n_pods: int) -> None:
    """All pods are bound, and each is told so once: a second bind would be a second Scheduled event."""
    found = await world.all_bound(n_pods)
    assert len(found) == n_pods
    assert audit.problems(await world.nodes(), found) == []
    told = Counter(
        event["regarding"]["uid"]
        for event in await world.listed("/apis/events.k8s.io/v1/namespaces/default/events")
        if event["reason"] == "Scheduled"
    )
    assert [uid for uid, times in told.items() if times > 1] == []


async def test_two_thousand_plain_pods_on_five_hundred_nodes(world: World) -> None:
    await world.start_operator(lease=False)
    await _burst(world, n_nodes=500, n_pods=2000)
    await _bound_once(world, 2000)


async def test_two_hundred_hami_pods_on_twenty_nodes(world: World) -> None:
    """All run, every lock is given back, and no card holds more than it has."""
    await world.create_all([nodes.make_gpu_node(f"g{i:02}") for i in range(20)])
    await world.start_operator()
    async with world.agents() as played:
        # However the others are placed, they can close no more than 58 of the 80 cards by memory and 17 by cores to the
        # last pod. In which order the pods come, and so where they go, depends on how busy the machine is.
        sizes = (2000, 3000, 4500)
        await world.create_all(
            [vgpu(f"p{i:03}", mem=sizes[i % 3], cores=(i % 4) * 5) for i in range(200)]
        )

        async def not_running() -> list[dict[str, Any]]:
            return [p for p in await world.pods() if p["status"].get("phase") != "Running"]

        await world.wait_until(not_running, lambda found: not found, 120.0)
        await world.wait_until(world.nodes, lambda found: not audit.locked(found))
        for one in await world.pods():
            name = one["metadata"]["name"]
            given = [
                [(share.uuid, share.mem_mib, share.cores) for share in allocation.shares]
                for allocation in played.list_allocated(name)
            ]
            assert given == audit.devices(one), name
    assert audit.problems(await world.nodes(), await world.pods()) == []


async def test_a_restart_in_mid_burst_loses_nothing(world: World) -> None:
    first = await world.start_operator(name="first")
    await world.leads(first)
    await _burst(world, n_nodes=50, n_pods=0)
    async with _mid_burst(world, [pod(f"p{i:04}", requests=SMALL) for i in range(1500)]):
        ended = await asyncio.to_thread(first.stop)
        assert ended.code == 0
        await world.start_operator(name="second")
    await _bound_once(world, 1500)


async def test_the_leader_killed_in_mid_burst_is_followed_and_every_pod_bound_once(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    await world.create_all([nodes.make_gpu_node(f"g{i:02}") for i in range(10)])
    replicas = [await world.start_operator(name=name) for name in ("one", "two")]
    leader = await world.wait_until(lambda: _leader(replicas), lambda found: found is not None)
    assert leader is not None
    async with world.agents():
        plain = [pod(f"c{i:04}", requests=SMALL) for i in range(1000)]
        sharing = [vgpu(f"g{i:03}", mem=3000) for i in range(60)]
        async with _mid_burst(world, sharing + plain):
            await asyncio.to_thread(leader.kill)
            killed_at = time.monotonic()
            (survivor,) = (one for one in replicas if one is not leader)
            await world.leads(survivor)
            record_property("seconds from SIGKILL to take-over", time.monotonic() - killed_at)
        await _bound_once(world, 1060)
    world.operators.remove(leader)


async def _leader(replicas: list[Operator]) -> Operator | None:
    for one in replicas:
        if await asyncio.to_thread(getattr, one, "is_deciding"):
            return one
    return None


async def test_the_api_server_restarted_in_mid_burst_ends_with_everything_bound(
    world: World, server: servers.Server
) -> None:
    operator = await world.start_operator()
    await world.leads(operator)
    await _burst(world, n_nodes=50, n_pods=0)
    assert server.plane is not None
    world.rights_in_doubt = True
    async with _mid_burst(world, [pod(f"p{i:04}", requests=SMALL) for i in range(1500)]):
        await asyncio.to_thread(server.plane.restart_apiserver)
    await _bound_once(world, 1500)
    assert operator.is_running


async def test_a_watch_that_expires_is_followed_by_a_list_that_finds_what_was_missed(
    world: World, server: servers.Server
) -> None:
    """etcd is compacted while the API server is down, so the version to resume from is gone."""
    operator = await world.start_operator()
    await world.create(nodes.make_plain_node("before"), pod("first", requests=SMALL))
    await world.bound("first")
    lists = (await asyncio.to_thread(operator.metrics))[
        'evenkeel_stream_lists_total{stream="nodes"}'
    ]
    assert server.plane is not None
    world.rights_in_doubt = True
    await asyncio.to_thread(operator.pause)
    # Its watches end, or the changes would wait for it in its socket.
    await asyncio.to_thread(server.plane.restart_apiserver)
    await world.delete(f"{NODES}/before")
    await world.create(nodes.make_plain_node("after", labels={"only": "here"}))
    await world.create(pod("second", requests=SMALL, nodeSelector={"only": "here"}))
    await asyncio.to_thread(server.plane.compact)
    await asyncio.to_thread(server.plane.restart_apiserver)
    await asyncio.to_thread(operator.resume)
    assert await world.bound("second", seconds=60.0) == ["after"]
    now = await asyncio.to_thread(operator.metrics)
    assert now['evenkeel_stream_lists_total{stream="nodes"}'] > lists
    assert now["evenkeel_nodes"] == 1


async def test_a_node_deleted_with_pods_on_it_comes_back_with_them_counted(world: World) -> None:
    await world.start_operator()
    body = nodes.make_gpu_node("g0", cards=1)
    await world.create(body)
    async with world.agents():
        await world.create(vgpu("kept", mem=10_000))
        await world.running("kept")
    await world.delete(f"{NODES}/g0")
    await world.create(vgpu("waits", mem=10_000))
    await world.refused("waits", "no nodes available to schedule pods")
    await world.create(nodes.make_gpu_node("g0", cards=1))
    await world.refused("waits", "CardInsufficientMemory on 1 GPU:")
    assert "nodeName" not in (await world.pod("waits"))["spec"]
