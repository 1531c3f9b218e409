"""ResourceClaims when calls are held or refused, or the scheduler is killed: every case has an operator of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scheduler.embedded.agents import nodes
from tests.operator import devices, proxy
from tests.operator.cases_resource_claims import list_used, make_slice
from tests.operator.devices import CLAIMS, list_devices, list_users
from tests.operator.faults import Fault
from tests.operator.process import Operator
from tests.operator.world import World


@asynccontextmanager
async def behind_a_proxy(world: World) -> AsyncIterator[proxy.Proxy]:
    """An operator whose calls a test may hold or spoil."""
    async with proxy.before(world.server) as between:
        operator = Operator(between.server)
        world.operators.append(operator)
        await asyncio.to_thread(operator.wait_ready)
        await world.leads(operator)
        yield between
        between.holds = lambda _method, _path: False
        await asyncio.to_thread(operator.stop)


async def a_claim_that_another_scheduler_allocates_first_keeps_what_that_gave_it(
    world: World,
) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 2), make_slice("n1", 2)), behind_a_proxy(world) as between:  # fmt: skip
        await world.call("POST", CLAIMS, devices.claim("c"))
        between.holds = lambda method, path: (method, path) == ("PATCH", f"{CLAIMS}/c/status")
        await world.create(devices.pod_with("p", "c"))
        await world.wait_until(between.is_holding)
        await devices.allocate(world, "c", devices.allocation("n1", "gpu-1"))
        [(status, _)] = await between.let_go()
        assert status == 409
        between.holds = lambda _method, _path: False
        # Nobody answers what was held; the call is made again when its time is over.
        assert await world.bound("p", seconds=60.0) == ["n1"]
        found = await devices.read_claim(world, "c")
        assert (list_devices(found), list_users(found)) == (["n1/gpu-1"], ["p"])


async def a_bind_that_is_refused_gives_the_devices_back(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1)), behind_a_proxy(world) as between:
        for name in ("a", "b"):
            await world.call("POST", CLAIMS, devices.claim(name))
        between.choose_fault = lambda _method, path: (
            Fault(status=422) if path.endswith("/p/binding") else None
        )
        async with world.recorded(CLAIMS) as changes:
            await world.create(devices.pod_with("p", "a"))
            await world.refused("p", "injected")
            # The other pod gets what the first one gave back, and keeps it.
            await world.create(devices.pod_with("q", "b"))
            assert await world.bound("q", seconds=60.0) == ["n0"]
        states = [one["object"] for one in changes if one["object"]["metadata"]["name"] == "a"]
        assert ["n0/gpu-0"] in [list_devices(one) for one in states]
        assert not list_devices(states[-1])
        assert not list_users(states[-1])
        assert await list_used(world) == ["n0/gpu-0"]


async def a_scheduler_that_is_killed_before_the_bind_leaves_the_devices_to_the_pod(
    world: World,
) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 1), make_slice("n1", 1)):
        await world.call("POST", CLAIMS, devices.claim("c"))
        async with proxy.before(world.server) as between:
            first = Operator(between.server, lease=False)
            world.operators.append(first)
            await asyncio.to_thread(first.wait_ready)
            between.holds = lambda _method, path: path.endswith("/binding")
            await world.create(devices.pod_with("p", "c"))
            await world.wait_until(between.is_holding)
            first.kill()
        before = list_devices(await devices.read_claim(world, "c"))
        assert len(before) == 1
        # Another pod wants a device as well; which one is left, the second scheduler must see.
        await world.call("POST", CLAIMS, devices.claim("d"))
        await world.create(devices.pod_with("q", "d"))
        await world.start_operator(name="b", lease=False)
        assert await world.bound("p") == [before[0].partition("/")[0]]
        await world.bound("q")
        assert list_devices(await devices.read_claim(world, "c")) == before
        assert await list_used(world) == ["n0/gpu-0", "n1/gpu-0"]


ALL = (
    a_claim_that_another_scheduler_allocates_first_keeps_what_that_gave_it,
    a_bind_that_is_refused_gives_the_devices_back,
    a_scheduler_that_is_killed_before_the_bind_leaves_the_devices_to_the_pod,
)
