"""ResourceClaims: devices are written before the bind, used by no two, and given back if the bind comes to nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator import devices
from tests.operator.devices import CLAIMS, TEMPLATES, device, device_slice, list_devices, list_users
from tests.operator.manifests import pod
from tests.operator.world import PODS, World

Json = dict[str, Any]
_TOO_FEW = "cannot allocate all claims"
READY, _BROKEN = "dra.example.com/ready", "dra.example.com/broken"


def make_slice(node: str, n: int, **more: Any) -> Json:
    """Devices of a node, all alike."""
    return device_slice(node, [device(f"gpu-{i}", **more) for i in range(n)])


async def _claims(world: World) -> dict[str, Json]:
    return {one["metadata"]["name"]: one for one in await world.listed(CLAIMS)}


async def list_used(world: World) -> list[str]:
    """All devices that claims have, those of a claim once."""
    return sorted(one for found in (await _claims(world)).values() for one in list_devices(found))


async def a_pod_is_bound_after_its_claim_has_its_devices_and_names_the_pod(world: World) -> None:
    """The writes are kube-scheduler's: the finalizer, then the devices with the pod, then the bind."""
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n1", 2)):
        await world.call("POST", CLAIMS, devices.claim("c", devices.request(count=2)))
        async with world.recorded(CLAIMS) as claims, world.recorded(PODS) as pods:
            [made] = await world.create(devices.pod_with("p", "c"))
            assert await world.bound("p") == ["n1"]
        states = [change["object"] for change in claims]
        guarded, given = states
        assert guarded["metadata"]["finalizers"] == given["metadata"]["finalizers"] == [devices.FINALIZER]  # fmt: skip
        assert not guarded.get("status")
        status = given["status"]
        assert status["allocation"].pop("allocationTimestamp").endswith("Z")
        expected = devices.allocation("n1", "gpu-0")
        [first] = expected["devices"]["results"]
        expected["devices"]["results"] = [first, first | {"device": "gpu-1"}]
        assert status == {"allocation": expected, "reservedFor": [devices.consumer(made)]}
        bind = next(one["object"] for one in pods if one["object"]["spec"].get("nodeName"))
        assert int(bind["metadata"]["resourceVersion"]) > int(given["metadata"]["resourceVersion"])


async def a_pod_waits_for_a_device_and_gets_it_when_it_is_free(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1)):
        for name in ("a", "b"):
            await world.call("POST", CLAIMS, devices.claim(name))
        await world.create(devices.pod_with("first", "a"))
        await world.bound("first")
        await world.create(devices.pod_with("second", "b"))
        await world.refused("second", f"0/1 nodes are available: 1 {_TOO_FEW}")
        assert not list_devices(await devices.read_claim(world, "b"))
        await world.delete(f"{PODS}/first")
        # The pod's claim is freed by a controller where one runs; here by hand.
        await world.call("PATCH", f"{CLAIMS}/a/status", {"status": None})
        assert await world.bound("second") == ["n0"]
        assert list_devices(await devices.read_claim(world, "b")) == ["n0/gpu-0"]


async def pods_wait_for_claims_classes_and_slices_that_come_later(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, classes=[devices.device_class("other")]):
        await world.create(devices.pod_with("p", "c"))
        await world.refused("p", 'could not find ResourceClaim "default/c"')
        await world.call("POST", CLAIMS, devices.claim("c"))
        await world.refused("p", "request gpu: device class gpu does not exist")
        await world.call("POST", devices.CLASSES, devices.device_class())
        await world.refused("p", _TOO_FEW)
        await world.call("POST", devices.SLICES, make_slice("n0", 1))
        assert await world.bound("p") == ["n0"]


async def a_claim_that_three_pods_share_is_allocated_once_and_names_all_three(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 2), make_slice("n1", 2)):
        await world.call("POST", CLAIMS, devices.claim("shared"))
        names = ["a", "b", "c"]
        await world.create(*(devices.pod_with(name, "shared") for name in names))
        [node] = {*await world.bound(*names)}
        found = await devices.read_claim(world, "shared")
        assert list_devices(found) == [f"{node}/gpu-0"]
        assert list_users(found) == names


async def no_two_claims_get_one_device_when_many_pods_come_at_once(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 3), make_slice("n1", 3)):
        names = [f"p{i}" for i in range(10)]
        for name in names:
            await world.call("POST", CLAIMS, devices.claim(name))
        await world.create_all([devices.pod_with(name, name) for name in names])

        async def n_refused() -> int:
            return len([name for name in names if await world.events("FailedScheduling", name)])

        await world.wait_until(n_refused, lambda n: n == 4)
        bound = [one for one in await world.pods() if one["spec"].get("nodeName")]
        assert len(bound) == 6
        assert await list_used(world) == [f"n{i}/gpu-{j}" for i in range(2) for j in range(3)]
        claims = await _claims(world)
        for one in bound:
            name = one["metadata"]["name"]
            assert list_devices(claims[name])[0].startswith(one["spec"]["nodeName"])
            assert list_users(claims[name]) == [name]


async def a_claim_with_devices_on_a_full_node_loses_them_and_gets_others(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="4"), nodes.make_plain_node("n1", cpu="4"))
    async with devices.offered(world, make_slice("n0", 1), make_slice("n1", 1)):
        filler = pod("filler", requests={"cpu": "4"}, nodeSelector={"kubernetes.io/hostname": "n0"})
        await world.create(filler)
        await world.bound("filler")
        await world.call("POST", CLAIMS, devices.claim("c"))
        await devices.allocate(world, "c", devices.allocation("n0", "gpu-0"))
        await world.create(devices.pod_with("p", "c", requests={"cpu": "2"}))
        assert await world.bound("p") == ["n1"]
        found = await devices.read_claim(world, "c")
        assert (list_devices(found), list_users(found)) == (["n1/gpu-0"], ["p"])


async def devices_that_a_pod_has_already_are_used_by_it(world: World) -> None:
    """So it is after a scheduler that was killed between the claim and the bind."""
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with devices.offered(world, make_slice("n0", 2), make_slice("n1", 2)):
        await world.call("POST", CLAIMS, devices.claim("c"))
        gate = [{"name": "example.com/wait"}]
        [made] = await world.create(devices.pod_with("p", "c", schedulingGates=gate))
        await devices.allocate(world, "c", devices.allocation("n1", "gpu-1"), made)
        await world.call("PATCH", f"{PODS}/p", {"spec": {"schedulingGates": []}})
        assert await world.bound("p") == ["n1"]
        assert await list_used(world) == ["n1/gpu-1"]
        # A fourth device is left for each other claim, and no more than that.
        names = ["x", "y", "z"]
        for name in names:
            await world.call("POST", CLAIMS, devices.claim(name))
        await world.create(*(devices.pod_with(name, name) for name in names))
        await world.bound(*names)
        assert await list_used(world) == ["n0/gpu-0", "n0/gpu-1", "n1/gpu-0", "n1/gpu-1"]


async def a_pod_that_is_deleted_while_its_devices_get_ready_leaves_nothing_reserved(
    world: World,
) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_late_slice("n0", 1)):
        await world.call("POST", CLAIMS, devices.claim("c"))
        await world.create(devices.pod_with("p", "c"))
        await world.wait_until(partial(devices.read_claim, world, "c"), list_users)
        await world.settle()
        assert not (await world.pod("p"))["spec"].get("nodeName")
        await world.delete(f"{PODS}/p")
        await world.wait_until(
            partial(devices.read_claim, world, "c"),
            lambda found: not list_users(found) and not list_devices(found),
        )


def make_late_slice(node: str, n: int) -> Json:
    """Devices that must be made ready after they are chosen."""
    wanted = {"bindingConditions": [READY], "bindingFailureConditions": [_BROKEN]}
    return make_slice(node, n, bindsToNode=True, **wanted)


async def a_bind_waits_until_the_devices_are_ready(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_late_slice("n0", 1)):
        await world.call("POST", CLAIMS, devices.claim("c"))
        await world.create(devices.pod_with("p", "c"))
        await world.wait_until(partial(devices.read_claim, world, "c"), list_users)
        await world.settle()
        assert not (await world.pod("p"))["spec"].get("nodeName")
        await devices.set_condition(world, "c", READY)
        assert await world.bound("p") == ["n0"]


async def devices_that_do_not_get_ready_are_given_back_and_the_pod_is_placed_anew(
    world: World,
) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_late_slice("n0", 1)):
        await world.call("POST", CLAIMS, devices.claim("c"))
        await world.create(devices.pod_with("p", "c"))
        first = await world.wait_until(partial(devices.read_claim, world, "c"), list_users)
        await devices.set_condition(world, "c", _BROKEN, "no link")

        async def reasons() -> list[str]:
            return [one["note"] for one in await world.events("FailedScheduling", "p")]

        text = 'device binding failed: claim=c, reason=Told, message="no link"'
        await world.wait_until(reasons, lambda found: any(text in one for one in found))
        # It is given devices once more, of which nothing was said yet.
        before = first["status"]["allocation"]["allocationTimestamp"]
        await world.wait_until(
            partial(devices.read_claim, world, "c"),
            lambda one: (
                list_users(one)
                and not one["status"].get("devices")
                and one["status"]["allocation"]["allocationTimestamp"] != before
            ),
        )
        await devices.set_condition(world, "c", READY)
        assert await world.bound("p") == ["n0"]


async def a_tainted_device_is_given_to_no_claim_that_does_not_tolerate_it(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 2)):
        taint = {"key": "example.com/sick", "effect": "NoSchedule"}
        rule = {"deviceSelector": {"driver": devices.DRIVER, "pool": "n0", "device": "gpu-0"}}
        await world.call(
            "POST", devices.RULES, {"metadata": {"name": "r"}, "spec": {**rule, "taint": taint}}
        )
        tolerates = [{"key": taint["key"], "operator": "Exists"}]
        await world.call("POST", CLAIMS, devices.claim("a"))
        await world.call("POST", CLAIMS, devices.claim("b"))
        await world.call("POST", CLAIMS, devices.claim("c", devices.request(tolerations=tolerates)))
        await world.create(devices.pod_with("a", "a"))
        await world.bound("a")
        await world.create(devices.pod_with("b", "b"))
        await world.refused("b", _TOO_FEW)
        await world.create(devices.pod_with("c", "c"))
        await world.bound("c")
        found = await _claims(world)
        assert (list_devices(found["a"]), list_devices(found["c"])) == (["n0/gpu-1"], ["n0/gpu-0"])
        assert found["c"]["status"]["allocation"]["devices"]["results"][0]["tolerations"] == tolerates  # fmt: skip


# With a controller of claims beside the operator.


async def pods_of_a_template_get_a_claim_each_which_goes_with_its_pod(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 3)):
        await world.call("POST", TEMPLATES, devices.template("t"))
        names = [f"p{i}" for i in range(3)]
        made = await world.create(*(devices.pod_with(name, of_template="t") for name in names))
        await world.bound(*names)
        claims = await _claims(world)
        assert len(claims) == 3
        for name, one in zip(names, made, strict=True):
            found = await world.pod(name)
            [entry] = found["status"]["resourceClaimStatuses"]
            given = claims[entry["resourceClaimName"]]
            assert given["metadata"]["name"].startswith(f"{name}-own-")
            [owner] = given["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (one["metadata"]["uid"], True)
            assert list_users(given) == [name]
        assert await list_used(world) == [f"n0/gpu-{i}" for i in range(3)]
        await world.create(devices.pod_with("late", of_template="t"))
        await world.refused("late", _TOO_FEW)
        # The claim of a pod that has ended is nobody's any more.
        done = {"status": {"phase": "Succeeded"}}
        await world.call("PATCH", f"{PODS}/p1/status", done)
        assert await world.bound("late", seconds=40.0) == ["n0"]
        assert await list_used(world) == [f"n0/gpu-{i}" for i in range(3)]


async def a_claim_by_name_stays_and_is_free_again_when_its_last_pod_has_ended(
    world: World,
) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1)):
        for name in ("a", "b"):
            await world.call("POST", CLAIMS, devices.claim(name))
        await world.create(devices.pod_with("first", "a"), devices.pod_with("second", "a"))
        await world.bound("first", "second")
        await world.create(devices.pod_with("third", "b"))
        await world.refused("third", _TOO_FEW)
        await world.delete(f"{PODS}/first")
        await world.wait_until(
            partial(devices.read_claim, world, "a"), lambda found: list_users(found) == ["second"]
        )
        assert not (await world.pod("third"))["spec"].get("nodeName")
        await world.call("PATCH", f"{PODS}/second/status", {"status": {"phase": "Failed"}})
        assert await world.bound("third", seconds=40.0) == ["n0"]
        found = await devices.read_claim(world, "a")
        assert not found.get("status")
        assert not found["metadata"].get("finalizers")


ALL = (
    a_pod_is_bound_after_its_claim_has_its_devices_and_names_the_pod,
    a_pod_waits_for_a_device_and_gets_it_when_it_is_free,
    pods_wait_for_claims_classes_and_slices_that_come_later,
    a_claim_that_three_pods_share_is_allocated_once_and_names_all_three,
    no_two_claims_get_one_device_when_many_pods_come_at_once,
    a_claim_with_devices_on_a_full_node_loses_them_and_gets_others,
    devices_that_a_pod_has_already_are_used_by_it,
    a_pod_that_is_deleted_while_its_devices_get_ready_leaves_nothing_reserved,
    a_bind_waits_until_the_devices_are_ready,
    devices_that_do_not_get_ready_are_given_back_and_the_pod_is_placed_anew,
    a_tainted_device_is_given_to_no_claim_that_does_not_tolerate_it,
)


async def all_pods_that_use_a_claim_go_for_one_that_needs_its_device(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with devices.offered(world, make_slice("n0", 1)):
        for name in ("shared", "wanted"):
            await world.call("POST", CLAIMS, devices.claim(name))
        await world.create(*(devices.pod_with(name, "shared") for name in ("a", "b")))
        assert await world.bound("a", "b") == ["n0", "n0"]
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        urgent = {"metadata": {"name": "high-of-claims"}, "value": 100}
        await world.call("POST", classes, urgent)
        await world.create(devices.pod_with("high", "wanted", priorityClassName="high-of-claims"))
        assert await world.bound("high", seconds=40.0) == ["n0"]
        left = [one for one in await world.pods() if "deletionTimestamp" not in one["metadata"]]
        assert [one["metadata"]["name"] for one in left] == ["high"]
        assert await list_used(world) == ["n0/gpu-0"]
        await world.delete(f"{classes}/high-of-claims")


WITH_CONTROLLER = (
    all_pods_that_use_a_claim_go_for_one_that_needs_its_device,
    pods_of_a_template_get_a_claim_each_which_goes_with_its_pod,
    a_claim_by_name_stays_and_is_free_again_when_its_last_pod_has_ended,
)
