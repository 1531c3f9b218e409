"""Claims for devices in the form of real drivers: whole GPUs, MIG instances, HAMi's shares, and GPUs with a network card beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from scheduler.embedded.agents import dra_devices, fleet, nodes
from scheduler.embedded.agents.dra_devices import HAMI, MIG_CLASS, NETWORK, NVIDIA, Pool
from tests.operator import devices
from tests.operator.devices import CLAIMS, list_devices
from tests.operator.world import PODS, World

Json = dict[str, Any]
_TOO_FEW = "cannot allocate all claims"
_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"


@asynccontextmanager
async def _driven(world: World, *pools: Pool, n_nodes: int = 1) -> AsyncIterator[fleet.Agents]:
    """Nodes with these devices each, and kubelets that serve claims."""
    names = [f"n{i}" for i in range(n_nodes)]
    async with devices.offered(world, classes=dra_devices.make_classes()), world.agents() as agents:
        for name in names:
            for pool in pools:
                await agents.dra.publish(name, pool)
        await world.create(*(nodes.make_plain_node(name) for name in names))
        yield agents
        _check_prepared(agents)


def _check_prepared(agents: fleet.Agents) -> None:
    """No device that is no share was prepared for two claims of pods that ran at once: these tests free none in between."""
    whole = {(one.claim, one.node, one.device) for one in agents.dra.prepared if not one.share}
    assert len({(node, device) for _, node, device in whole}) == len(whole)


async def _give(world: World, name: str, *requests: Json, **more: Any) -> None:
    """A pod with a claim of its own."""
    await world.call("POST", CLAIMS, devices.claim(name, *requests, **more))
    await world.create(devices.pod_with(name, name))


async def _names(world: World, name: str) -> list[str]:
    """The devices of a claim, without their pools."""
    found = list_devices(await devices.read_claim(world, name))
    return [one.partition("/")[2] for one in found]


def _mig(profile: str) -> Json:
    text = f"device.attributes['{NVIDIA}'].profile == '{profile}'"
    return devices.request("mig", MIG_CLASS, selectors=[{"cel": {"expression": text}}])


def _share(**amounts: str) -> Json:
    return devices.request("share", HAMI, **({"capacity": {"requests": amounts}} if amounts else {}))  # fmt: skip


async def whole_gpus_are_prepared_on_the_node_of_their_pod(world: World) -> None:
    async with _driven(world, dra_devices.make_gpus(4), n_nodes=2) as agents:
        for i, n in enumerate((4, 2, 2)):
            await _give(world, f"p{i}", devices.request("gpu", NVIDIA, count=n))
        running = await world.running("p0", "p1", "p2")
        placed = [one["spec"]["nodeName"] for one in running]
        assert placed[1] == placed[2] != placed[0]
        given = {(one.pod, one.device.split("/")[1]) for one in agents.dra.prepared}
        assert given == {(f"p{i}", node) for i, node in enumerate(placed)}
        await _give(world, "late", devices.request("gpu", NVIDIA))
        await world.refused("late", f"0/2 nodes are available: 2 {_TOO_FEW}")


async def a_sick_or_withdrawn_device_is_given_to_nobody(world: World) -> None:
    async with _driven(world, dra_devices.make_gpus(3)) as agents:
        taint = {"key": "example.com/sick", "effect": "NoSchedule"}
        await agents.dra.change("n0", NVIDIA, "gpu-0", taints=[taint])
        await agents.dra.withdraw("n0", NVIDIA, "gpu-1")
        await _give(world, "a", devices.request("gpu", NVIDIA))
        await world.running("a")
        assert await _names(world, "a") == ["gpu-2"]
        await _give(world, "b", devices.request("gpu", NVIDIA))
        await world.refused("b", _TOO_FEW)
        await agents.dra.change("n0", NVIDIA, "gpu-0", taints=[])
        await world.running("b")
        assert await _names(world, "b") == ["gpu-0"]


async def a_pod_whose_claim_is_not_reserved_for_it_is_not_admitted(world: World) -> None:
    async with _driven(world, dra_devices.make_gpus(1)):
        await world.call("POST", CLAIMS, devices.claim("c", devices.request("gpu", NVIDIA)))
        by_hand = devices.pod_with("p", "c", nodeName="n0", schedulerName="nobody")
        await world.create(by_hand)

        async def read_reason() -> str:
            return str((await world.pod("p"))["status"].get("reason", ""))

        await world.wait_until(read_reason, lambda reason: reason == "UnexpectedAdmissionError")


async def small_instances_fill_a_card_and_block_all_that_would_overlap(world: World) -> None:
    async with _driven(world, dra_devices.make_mig_gpus(1)):
        names = [f"small-{i}" for i in range(7)]
        for name in names[:1]:
            await _give(world, name, _mig("1g.10gb"))
        await world.running("small-0")
        await _give(world, "whole", devices.request("gpu", NVIDIA))
        await world.refused("whole", _TOO_FEW)
        await world.delete(f"{PODS}/whole")
        for name in names[1:]:
            await _give(world, name, _mig("1g.10gb"))
        await world.running(*names)
        given = [one for name in names for one in await _names(world, name)]
        assert sorted(given) == [f"gpu-0-mig-1g10gb-19-{i}" for i in range(7)]
        await _give(world, "eighth", _mig("1g.10gb"))
        await world.refused("eighth", _TOO_FEW)


async def a_large_instance_needs_its_memory_slices(world: World) -> None:
    async with _driven(world, dra_devices.make_mig_gpus(1)):
        await _give(world, "half", _mig("4g.40gb"))
        await world.running("half")
        await _give(world, "other-half", _mig("3g.40gb"))
        await world.running("other-half")
        assert await _names(world, "other-half") == ["gpu-0-mig-3g40gb-9-4"]
        await _give(world, "small", _mig("1g.10gb"))
        await world.refused("small", _TOO_FEW)


async def four_small_instances_leave_no_large_one(world: World) -> None:
    """Of one claim, so that it does not hang on where they are put: 4g takes the first four slices, and three are left."""
    async with _driven(world, dra_devices.make_mig_gpus(1)):
        small, large = _mig("1g.10gb"), _mig("4g.40gb")
        small["exactly"]["count"], large["name"] = 4, "large"
        await _give(world, "five", small, large)
        await world.refused("five", _TOO_FEW)
        small["exactly"]["count"] = 3
        await _give(world, "four", small, large)
        await world.running("four")
        assert len(await _names(world, "four")) == 4


async def shares_of_a_card_fit_by_cores_and_memory(world: World) -> None:
    async with _driven(world, dra_devices.make_hami_gpus(1)):
        await _give(world, "most", _share(cores="60", memory="20Gi"))
        await world.running("most")
        [given] = (await devices.read_claim(world, "most"))["status"]["allocation"]["devices"]["results"]  # fmt: skip
        assert given["consumedCapacity"] == {"cores": "60", "memory": "20Gi"}
        assert given["shareID"]
        await _give(world, "more", _share(cores="60", memory="1Gi"))
        await world.refused("more", _TOO_FEW)
        # A share that does not say how many cores it wants takes all.
        await _give(world, "silent", _share(memory="1Gi"))
        await world.refused("silent", _TOO_FEW)
        await _give(world, "rest", _share(cores="40", memory="1500Ki"))
        await world.running("rest")
        [given] = (await devices.read_claim(world, "rest"))["status"]["allocation"]["devices"]["results"]  # fmt: skip
        assert given["consumedCapacity"] == {"cores": "40", "memory": "2Mi"}


async def a_gpu_and_a_network_card_are_behind_one_root(world: World) -> None:
    async with _driven(world, dra_devices.make_gpus(4), dra_devices.make_nics(4)):
        constraint = {"requests": ["gpu", "nic"], "matchAttribute": _PCIE_ROOT}
        for i in range(2):
            wanted = devices.request("gpu", NVIDIA, count=2), devices.request("nic", NETWORK)
            await _give(world, f"p{i}", *wanted, constraints=[constraint])
        await world.running("p0", "p1")
        roots = [{_find_root(one) for one in await _names(world, f"p{i}")} for i in range(2)]
        assert sorted(map(tuple, roots)) == [(0,), (1,)]
        await _give(world, "late", devices.request("nic", NETWORK, count=3), constraints=[{"matchAttribute": _PCIE_ROOT}])  # fmt: skip
        await world.refused("late", _TOO_FEW)


def _find_root(name: str) -> int:
    return int(name.rpartition("-")[2]) // 2


ALL = (
    whole_gpus_are_prepared_on_the_node_of_their_pod,
    a_sick_or_withdrawn_device_is_given_to_nobody,
    a_pod_whose_claim_is_not_reserved_for_it_is_not_admitted,
    small_instances_fill_a_card_and_block_all_that_would_overlap,
    a_large_instance_needs_its_memory_slices,
    four_small_instances_leave_no_large_one,
    shares_of_a_card_fit_by_cores_and_memory,
    a_gpu_and_a_network_card_are_behind_one_root,
)
