"""Claims are bound before the pods that wait for it, to volumes that are there or are made for the pod's node."""

from __future__ import annotations

from scheduler.embedded.agents import nodes
from tests.operator.manifests import pod
from tests.operator.provisioner import (
    CLAIMS,
    CLASSES,
    SELECTED,
    VOLUMES,
    claim,
    provisioning,
    storage_class,
    volume,
)
from tests.operator.world import Json, World


def with_claim(name: str, used: str = "", **requests: str) -> Json:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": used or name}}]
    return pod(name, volumes=volumes, requests=requests)


async def a_claim_is_provisioned_on_the_node_of_its_pod(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    names = [f"p{i}" for i in range(6)]
    async with provisioning(world):
        await world.call("POST", CLASSES, storage_class("made"))
        for name in names:
            await world.call("POST", CLAIMS, claim(name, "made"))
        # An eighth of a node each: by default they are spread, where those that ask nothing need not be.
        await world.create(*(with_claim(name, cpu="4", memory="16Gi") for name in names))
        placed = await world.bound(*names)
        assert set(placed) == {"n0", "n1"}
        for name, node in zip(names, placed, strict=True):
            found = await world.call("GET", f"{CLAIMS}/{name}")
            assert found["metadata"]["annotations"][SELECTED] == node


async def a_pod_waits_for_its_claim_and_is_tried_again_when_it_comes(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), with_claim("p"))
    text = '0/1 nodes are available: persistentvolumeclaim "p" not found.'
    await world.refused("p", text)
    async with provisioning(world):
        await world.call("POST", CLASSES, storage_class("made"))
        await world.call("POST", CLAIMS, claim("p", "made"))
        assert await world.bound("p") == ["n0"]


async def a_free_volume_is_given_to_the_claim_and_the_pod_goes_where_it_is(world: World) -> None:
    await world.create(*(nodes.make_plain_node(f"n{i}") for i in range(3)))
    async with provisioning(world):
        await world.call("POST", CLASSES, storage_class("local", "kubernetes.io/no-provisioner"))
        for name, node, size in (("large", "n1", "9Gi"), ("small", "n2", "2Gi")):
            await world.call("POST", VOLUMES, volume(name, "local", node, size))
            status = {"status": {"phase": "Available"}}
            await world.call("PATCH", f"{VOLUMES}/{name}/status", status)
        await world.call("POST", CLAIMS, claim("a", "local"))
        await world.call("POST", CLAIMS, claim("b", "local"))
        await world.create(with_claim("a"), with_claim("b"))
        assert sorted(await world.bound("a", "b")) == ["n1", "n2"]
        for name in ("large", "small"):
            found = await world.call("GET", f"{VOLUMES}/{name}")
            assert found["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
            assert found["spec"]["claimRef"]["uid"]
        await world.call("POST", CLAIMS, claim("c", "local"))
        await world.create(with_claim("c"))
        await world.refused(
            "c",
            "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind.",
        )


async def a_provisioner_that_cannot_sends_the_pod_elsewhere(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with provisioning(world) as provisioner:
        provisioner.refuses = {"n0", "n1"}
        await world.call("POST", CLASSES, storage_class("made"))
        await world.call("POST", CLAIMS, claim("p", "made"))
        await world.create(with_claim("p"))

        async def refused() -> list[Json]:
            return await world.events("FailedScheduling", "p")

        (event, *_) = await world.wait_until(refused)
        assert "provisioning failed for PVC" in event["note"]
        provisioner.refuses = set()
        assert await world.bound("p", seconds=30.0) in (["n0"], ["n1"])


async def pods_whose_claims_wait_hold_up_no_others(world: World) -> None:
    """More of them than there are binds at once."""
    await world.create(nodes.make_plain_node("n0", cpu="64"))
    names = [f"slow{i}" for i in range(80)]
    async with provisioning(world) as provisioner:
        provisioner.holds = True
        await world.call("POST", CLASSES, storage_class("made"))
        for name in names:
            await world.call("POST", CLAIMS, claim(name, "made"))
        await world.create(*map(with_claim, names))

        async def asked() -> int:
            claims = await world.listed(CLAIMS)
            return sum(SELECTED in one["metadata"].get("annotations", {}) for one in claims)

        await world.wait_until(asked, lambda n: n == len(names))
        await world.create(pod("quick"))
        assert await world.bound("quick") == ["n0"]
        waiting = [one for one in await world.pods() if not one["spec"].get("nodeName")]
        assert len(waiting) == len(names)
        # An autoscaler need not make a node for them.
        assert {one["status"].get("nominatedNodeName") for one in waiting} == {"n0"}
        provisioner.holds = False
        await world.bound(*names, seconds=60.0)


async def a_pod_that_is_deleted_while_its_claim_waits_leaves_nothing_behind(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with provisioning(world) as provisioner:
        provisioner.holds = True
        await world.call("POST", CLASSES, storage_class("made"))
        await world.call("POST", CLAIMS, claim("p", "made"))
        await world.create(with_claim("p"))

        async def selected() -> str:
            found = await world.call("GET", f"{CLAIMS}/p")
            return str((found["metadata"].get("annotations") or {}).get(SELECTED, ""))

        await world.wait_until(selected)
        await world.delete("/api/v1/namespaces/default/pods/p")
        await world.settle()
        provisioner.holds = False
        await world.create(with_claim("q", "p"))
        assert await world.bound("q") == ["n0"]


async def one_pod_at_a_time_has_a_claim_that_is_for_one(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"), nodes.make_plain_node("n1"))
    async with provisioning(world):
        await world.call("POST", CLASSES, storage_class("made"))
        await world.call("POST", CLAIMS, claim("only", "made", "ReadWriteOncePod"))
        await world.create(with_claim("first", "only"))
        await world.bound("first")
        await world.create(with_claim("second", "only"))
        await world.refused("second", "ReadWriteOncePod access mode already in-use by another pod")
        await world.delete("/api/v1/namespaces/default/pods/first")
        await world.bound("second")


ALL = (
    a_claim_is_provisioned_on_the_node_of_its_pod,
    a_pod_waits_for_its_claim_and_is_tried_again_when_it_comes,
    a_free_volume_is_given_to_the_claim_and_the_pod_goes_where_it_is,
    a_provisioner_that_cannot_sends_the_pod_elsewhere,
    pods_whose_claims_wait_hold_up_no_others,
    a_pod_that_is_deleted_while_its_claim_waits_leaves_nothing_behind,
    one_pod_at_a_time_has_a_claim_that_is_for_one,
)
