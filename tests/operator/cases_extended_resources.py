"""Extended resources of device classes: the claim for a pod is made before the bind, and goes with the pod."""

from __future__ import annotations

from functools import partial
from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator import devices
from tests.operator.cases_resource_claims import READY, list_used, make_late_slice, make_slice
from tests.operator.devices import CLAIMS, list_devices, list_users
from tests.operator.manifests import container, pod
from tests.operator.world import PODS, World

Json = dict[str, Any]
RESOURCE = "example.com/gpu"
_TOO_FEW = "cannot allocate all claims"


def make_class(name: str = "gpu", resource: str = RESOURCE, *expressions: str) -> Json:
    """A class that stands behind an extended resource."""
    made = devices.device_class(name, *expressions)
    made["spec"]["extendedResourceName"] = resource
    return made


def pod_of(name: str, n: int = 1, resource: str = RESOURCE, **more: Any) -> Json:
    """A pod that requests devices by an extended resource."""
    amount = {resource: str(n)}
    return pod(name, requests=amount, limits=amount, **more)


def make_plugin_node(name: str, n: int, **more: Any) -> Json:
    """A node whose device plugin offers the resource."""
    made = nodes.make_plain_node(name, **more)
    for part in ("capacity", "allocatable"):
        made["status"].setdefault(part, {})[RESOURCE] = str(n)
    return made


async def find_claims(world: World, name: str) -> list[Json]:
    """The claims that were made for the extended resources of a pod."""
    return [
        one
        for one in await world.listed(CLAIMS)
        if one["metadata"].get("generateName") == f"{name}-extended-resources-"
    ]


async def _find_claim(world: World, name: str) -> Json:
    (one,) = await find_claims(world, name)
    return one


async def a_claim_is_made_for_a_pods_extended_resource_before_its_bind(world: World) -> None:
    """The claim is kube-scheduler's, and so is what the pod's status says of it."""
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 4), classes=[make_class()]):
        init = container("prepare", requests={RESOURCE: "3"}, limits={RESOURCE: "3"})
        async with world.recorded(CLAIMS) as claims, world.recorded(PODS) as pods:
            [made] = await world.create(pod_of("p", 2, initContainers=[init]))
            assert await world.bound("p") == ["n0"]
        first, last = claims[0]["object"], claims[-1]["object"]
        meta = first["metadata"]
        assert meta["name"].startswith("p-extended-resources-")
        assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        [owner] = meta["ownerReferences"]
        uid = made["metadata"]["uid"]
        assert owner == {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}  # fmt: skip
        assert meta["finalizers"] == [devices.FINALIZER]
        assert not first.get("status")
        assert first["spec"]["devices"]["requests"] == [
            {"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": n}}
            for name, n in (("container-0-request-0", 1), ("container-1-request-0", 2))
        ]  # fmt: skip
        assert list_devices(last) == ["n0/gpu-0", "n0/gpu-1", "n0/gpu-2"]
        assert last["status"]["reservedFor"] == [devices.consumer(made)]
        bind = next(one["object"] for one in pods if one["object"]["spec"].get("nodeName"))
        name = made["spec"]["containers"][0]["name"]
        served = [(name, 1), ("prepare", 1), ("prepare", 0)]
        assert bind["status"]["extendedResourceClaimStatus"] == {
            "resourceClaimName": meta["name"],
            "requestMappings": [
                {
                    "containerName": one,
                    "resourceName": RESOURCE,
                    "requestName": f"container-{at}-request-0",
                }
                for one, at in served
            ],
        }
        assert int(bind["metadata"]["resourceVersion"]) > int(last["metadata"]["resourceVersion"])


async def nodes_with_a_device_plugin_and_nodes_with_slices_serve_one_resource(world: World) -> None:
    await world.create(make_plugin_node("n0", 2), nodes.make_plain_node("n1"), nodes.make_plain_node("n2"))  # fmt: skip
    async with devices.offered(world, make_slice("n0", 4), make_slice("n1", 2), classes=[make_class()]):  # fmt: skip
        names = [f"p{i}" for i in range(4)]
        await world.create(*(pod_of(name) for name in names))
        assert sorted(await world.bound(*names)) == ["n0", "n0", "n1", "n1"]
        await world.create(pod_of("late"))
        await world.refused("late", f"0/3 nodes are available: 1 Insufficient {RESOURCE}, 2 {_TOO_FEW}.")  # fmt: skip
        for name in names:
            found = await world.pod(name)
            has_claim = found["spec"]["nodeName"] == "n1"
            assert ("extendedResourceClaimStatus" in found["status"]) == has_claim
            assert len(await find_claims(world, name)) == has_claim
        assert await list_used(world) == ["n1/gpu-0", "n1/gpu-1"]


async def a_class_is_an_extended_resource_by_its_own_name(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1)):
        resource = "deviceclass.resource.kubernetes.io/gpu"
        await world.create(pod_of("p", resource=resource))
        assert await world.bound("p") == ["n0"]
        assert list_devices(await _find_claim(world, "p")) == ["n0/gpu-0"]
        await world.create(pod_of("q", resource=resource))
        await world.refused("q", _TOO_FEW)


async def claims_and_extended_resources_share_devices_and_no_two_get_one(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 3), make_slice("n1", 3), classes=[make_class()]):  # fmt: skip
        for i in range(3):
            await world.call("POST", CLAIMS, devices.claim(f"c{i}"))
        of_claims = [devices.pod_with(f"c{i}", f"c{i}") for i in range(3)]
        names = [f"p{i}" for i in range(5)]
        await world.create_all([*of_claims, *(pod_of(name) for name in names)])

        async def n_refused() -> int:
            tried = [*names, "c0", "c1", "c2"]
            return len([name for name in tried if await world.events("FailedScheduling", name)])

        async def n_placed() -> int:
            return len([one for one in await world.pods() if one["spec"].get("nodeName")])

        await world.wait_until(n_placed, lambda n: n == 6)
        await world.wait_until(n_refused, lambda n: n == 2)
        assert await list_used(world) == [f"n{i}/gpu-{j}" for i in range(2) for j in range(3)]
        for one in await world.pods():
            name, node = one["metadata"]["name"], one["spec"].get("nodeName")
            for claim in await find_claims(world, name):
                assert node
                assert list_users(claim) == [name]
                assert list_devices(claim)[0].startswith(node)


async def classes_come_change_and_go_while_pods_wait(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 2), classes=[devices.device_class("other")]):
        await world.create(pod_of("p"))
        await world.refused("p", f"Insufficient {RESOURCE}")
        await world.call(
            "POST", devices.CLASSES, make_class("none", RESOURCE, "device.driver == 'x'")
        )
        await world.refused("p", _TOO_FEW)
        await world.delete(f"{devices.CLASSES}/none")
        await world.call("POST", devices.CLASSES, make_class())
        assert await world.bound("p") == ["n0"]
        # What runs keeps what it has.
        await world.delete(f"{devices.CLASSES}/gpu")
        await world.create(pod_of("q"))
        await world.refused("q", f"Insufficient {RESOURCE}")
        assert await list_used(world) == ["n0/gpu-0"]


async def a_pod_that_goes_while_its_devices_get_ready_takes_its_claim_with_it(world: World) -> None:
    """The operator deletes the claim: nobody binds the pod any more."""
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_late_slice("n0", 1), classes=[make_class()]):
        await world.create(pod_of("p"))
        [claim] = await world.wait_until(
            partial(find_claims, world, "p"), lambda found: found and list_users(found[0])
        )
        await world.settle()
        assert not (await world.pod("p"))["spec"].get("nodeName")
        # The claim of another pod is left alone, and its devices get ready.
        await world.delete(f"{PODS}/p")
        await world.wait_until(partial(find_claims, world, "p"), lambda found: not found)
        await world.create(pod_of("q"))
        [claim] = await world.wait_until(
            partial(find_claims, world, "q"), lambda found: found and list_users(found[0])
        )
        await devices.set_condition(world, claim["metadata"]["name"], READY)
        assert await world.bound("q") == ["n0"]


# With a controller of claims beside the operator.


async def a_claim_for_extended_resources_goes_with_its_pod(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1), classes=[make_class()]):
        await world.create(pod_of("a"))
        await world.bound("a")
        await world.create(pod_of("b"))
        await world.refused("b", _TOO_FEW)
        await world.call("PATCH", f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
        assert await world.bound("b", seconds=40.0) == ["n0"]
        assert await find_claims(world, "a") == []
        assert list_devices(await _find_claim(world, "b")) == ["n0/gpu-0"]


async def a_pod_of_higher_priority_takes_the_place_of_one_that_has_the_device(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1), classes=[make_class()]):
        high = {"metadata": {"name": "high-of-devices"}, "value": 100}
        await world.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
        await world.create(pod_of("low"))
        await world.bound("low")
        await world.create(pod_of("high", priorityClassName="high-of-devices"))
        await world.wait_until(lambda: _is_gone(world, "low"))
        assert await world.bound("high", seconds=40.0) == ["n0"]
        await world.delete("/apis/scheduling.k8s.io/v1/priorityclasses/high-of-devices")


async def _is_gone(world: World, name: str) -> bool:
    return all(
        one["metadata"]["name"] != name or "deletionTimestamp" in one["metadata"]
        for one in await world.pods()
    )


ALL = (
    a_claim_is_made_for_a_pods_extended_resource_before_its_bind,
    nodes_with_a_device_plugin_and_nodes_with_slices_serve_one_resource,
    a_class_is_an_extended_resource_by_its_own_name,
    claims_and_extended_resources_share_devices_and_no_two_get_one,
    classes_come_change_and_go_while_pods_wait,
    a_pod_that_goes_while_its_devices_get_ready_takes_its_claim_with_it,
)
WITH_CONTROLLER = (
    a_claim_for_extended_resources_goes_with_its_pod,
    a_pod_of_higher_priority_takes_the_place_of_one_that_has_the_device,
)
