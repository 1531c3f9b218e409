"""Claims for extended resources when calls are held, lost or refused, or the scheduler is killed: each case has an operator of its own.

Whatever happens, a pod has one such claim in the end, and no claim is left without its pod's bind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from scheduler.embedded.agents import nodes
from tests.operator import devices, proxy
from tests.operator.cases_claims_interrupted import behind_a_proxy
from tests.operator.cases_extended_resources import (
    find_claims,
    make_class,
    make_plugin_node,
    pod_of,
)
from tests.operator.cases_resource_claims import list_used, make_slice
from tests.operator.devices import CLAIMS, list_devices, list_users
from tests.operator.faults import Fault
from tests.operator.process import Operator
from tests.operator.world import World

_Holds = Callable[[str, str], bool]


def _is_making(method: str, path: str) -> bool:
    return (method, path) == ("POST", CLAIMS)


def _is_allocating(method: str, path: str) -> bool:
    return method == "PATCH" and path.startswith(f"{CLAIMS}/p-extended-") and path.endswith("/status")  # fmt: skip


def _is_telling(method: str, path: str) -> bool:
    return method == "PATCH" and path.endswith("/pods/p/status")


def _is_binding(_: str, path: str) -> bool:
    return path.endswith("/p/binding")


async def _kill(world: World, holds: _Holds, *, is_served: bool) -> None:
    """A scheduler is killed while a call is on its way, which takes effect or does not; the next one binds the pod."""
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 1), make_slice("n1", 1), classes=[make_class()]):  # fmt: skip
        async with proxy.before(world.server) as between:
            first = Operator(between.server, lease=False)
            world.operators.append(first)
            await asyncio.to_thread(first.wait_ready)
            between.holds = holds
            await world.create(pod_of("p"))
            await world.wait_until(between.is_holding)
            first.kill()
            if is_served:
                await between.let_go()
        await world.create(pod_of("q"))
        await world.start_operator(name="b", lease=False)
        await world.bound("p", "q", seconds=60.0)
        await _check_claims(world, "p", "q")
        assert await list_used(world) == ["n0/gpu-0", "n1/gpu-0"]


async def _check_claims(world: World, *names: str) -> None:
    """Each pod has one claim, which its status names, with devices of its node."""
    assert len(await world.listed(CLAIMS)) == len(names)
    for name in names:
        (claim,) = await find_claims(world, name)
        found = await world.pod(name)
        told = found["status"]["extendedResourceClaimStatus"]
        assert told["resourceClaimName"] == claim["metadata"]["name"]
        assert list_users(claim) == [name]
        assert list_devices(claim) == [f"{found['spec']['nodeName']}/gpu-0"]


async def a_scheduler_is_killed_before_the_claim_is_made(world: World) -> None:
    await _kill(world, _is_making, is_served=False)


async def a_scheduler_is_killed_before_it_hears_that_the_claim_is_made(world: World) -> None:
    await _kill(world, _is_making, is_served=True)


async def a_scheduler_is_killed_before_the_claim_has_its_devices(world: World) -> None:
    await _kill(world, _is_allocating, is_served=False)


async def a_scheduler_is_killed_before_it_hears_that_the_claim_has_its_devices(
    world: World,
) -> None:
    await _kill(world, _is_allocating, is_served=True)


async def a_scheduler_is_killed_before_the_pod_names_the_claim(world: World) -> None:
    await _kill(world, _is_telling, is_served=False)


async def a_scheduler_is_killed_before_it_hears_that_the_pod_names_the_claim(world: World) -> None:
    await _kill(world, _is_telling, is_served=True)


async def a_scheduler_is_killed_before_the_bind_of_an_extended_resource(world: World) -> None:
    await _kill(world, _is_binding, is_served=False)


async def a_scheduler_is_killed_before_it_hears_of_the_bind_of_an_extended_resource(
    world: World,
) -> None:
    await _kill(world, _is_binding, is_served=True)


async def a_bind_that_is_refused_takes_the_claim_back(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1), classes=[make_class()]), behind_a_proxy(world) as between:  # fmt: skip
        between.choose_fault = lambda method, path: (
            Fault(status=422) if _is_binding(method, path) else None
        )
        await world.create(pod_of("p"))
        await world.refused("p", "injected")
        await world.wait_until(partial(find_claims, world, "p"), lambda found: not found)
        # Another pod gets what the first one gave back.
        await world.create(pod_of("q"))
        assert await world.bound("q", seconds=60.0) == ["n0"]
        between.choose_fault = lambda _method, _path: None
        await _check_claims(world, "q")


async def a_pod_whose_status_names_a_claim_goes_to_no_node_with_a_device_plugin(
    world: World,
) -> None:
    """The API server lets nobody take the name back, and the kubelet would look for the claim."""
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1), classes=[make_class()]), behind_a_proxy(world) as between:  # fmt: skip
        between.choose_fault = lambda method, path: (
            Fault(status=422) if _is_binding(method, path) else None
        )
        await world.create(pod_of("p"))
        await world.refused("p", "injected")
        await world.create(make_plugin_node("n1", 4))
        await world.call("PATCH", "/api/v1/nodes/n0", {"spec": {"unschedulable": True}})
        between.choose_fault = lambda _method, _path: None
        await world.create(pod_of("q"))
        assert await world.bound("q") == ["n1"]
        assert not (await world.pod("p"))["spec"].get("nodeName")
        await world.call("PATCH", "/api/v1/nodes/n0", {"spec": {"unschedulable": None}})
        assert await world.bound("p", seconds=60.0) == ["n0"]
        await _check_claims(world, "p")


async def a_claim_whose_making_was_not_answered_is_not_made_twice(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1), classes=[make_class()]), behind_a_proxy(world) as between:  # fmt: skip
        lost: list[str] = []

        def choose(method: str, path: str) -> Fault | None:
            if not _is_making(method, path) or len(lost) >= 2:
                return None
            lost.append(path)
            return Fault(status=0, served=True)

        between.choose_fault = choose
        async with world.recorded(CLAIMS) as changes:
            await world.create(pod_of("p"))
            assert await world.bound("p", seconds=60.0) == ["n0"]
        assert len(lost) >= 1
        there: set[str] = set()
        for change in changes:
            uid = change["object"]["metadata"]["uid"]
            (there.discard if change["type"] == "DELETED" else there.add)(uid)
            assert len(there) <= 1
        await _check_claims(world, "p")


async def a_claim_that_could_not_be_taken_back_is_deleted_later(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1), classes=[make_class()]), behind_a_proxy(world) as between:  # fmt: skip
        n_failed = [0, 0]

        def choose(method: str, path: str) -> Fault | None:
            if _is_binding(method, path) and n_failed[0] < 1:
                n_failed[0] += 1
                return Fault(status=422)
            if method == "DELETE" and path.startswith(CLAIMS) and n_failed[1] < 2:
                n_failed[1] += 1
                return Fault(status=503)
            return None

        between.choose_fault = choose
        await world.create(pod_of("p"))
        assert await world.bound("p", seconds=60.0) == ["n0"]
        assert n_failed == [1, 2]
        await _check_claims(world, "p")


ALL = (
    a_scheduler_is_killed_before_the_claim_is_made,
    a_scheduler_is_killed_before_it_hears_that_the_claim_is_made,
    a_scheduler_is_killed_before_the_claim_has_its_devices,
    a_scheduler_is_killed_before_it_hears_that_the_claim_has_its_devices,
    a_scheduler_is_killed_before_the_pod_names_the_claim,
    a_scheduler_is_killed_before_it_hears_that_the_pod_names_the_claim,
    a_scheduler_is_killed_before_the_bind_of_an_extended_resource,
    a_scheduler_is_killed_before_it_hears_of_the_bind_of_an_extended_resource,
    a_bind_that_is_refused_takes_the_claim_back,
    a_pod_whose_status_names_a_claim_goes_to_no_node_with_a_device_plugin,
    a_claim_whose_making_was_not_answered_is_not_made_twice,
    a_claim_that_could_not_be_taken_back_is_deleted_later,
)
