"""A tenant who may create pods claims cards that its pods do not ask: nobody else is harmed by it."""

from __future__ import annotations

from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator import audit
from tests.operator.manifests import container, pod
from tests.operator.world import PODS, World

_WHOLE = {"nvidia.com/gpu": 1}


def _claiming(name: str, node: str, claim: str, **more: Any) -> audit.Json:
    """A pod that its tenant puts on a node without any scheduler, with a claim of its own making."""
    notes = {audit.ALLOCATED: claim}
    return pod(name, annotations=notes, nodeName=node, schedulerName="nobody", **more)


async def pods_without_gpus_that_claim_cards_close_no_node(world: World) -> None:
    """One on each GPU node, put there by the tenant or by the scheduler."""
    for i in range(4):
        await world.create(nodes.make_gpu_node(f"g{i}", cards=1))
    for i in range(4):
        card = next(iter(audit.cards(await world.node(f"g{i}"))))
        claim = f"{card},NVIDIA,16384,100:;" if i % 2 else "x"
        if i < 2:
            await world.create(_claiming(f"tenant-{i}", f"g{i}", claim))
        else:
            here = {"kubernetes.io/hostname": f"g{i}"}
            notes = {audit.ALLOCATED: claim}
            await world.create(pod(f"tenant-{i}", annotations=notes, nodeSelector=here))
            await world.bound(f"tenant-{i}")
    async with world.agents():
        names = [f"somebody-{i}" for i in range(4)]
        await world.create(*(pod(name, limits=_WHOLE) for name in names))
        running = await world.running(*names)
    assert {one["spec"]["nodeName"] for one in running} == {f"g{i}" for i in range(4)}


async def a_pod_that_claims_all_cards_holds_what_it_asks(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0", cards=2))
    there = audit.cards(await world.node("g0"))
    claim = "".join(f"{card},NVIDIA,{there[card]['devmem']},100:" for card in there) + ";"
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100}
    await world.create(_claiming("tenant", "g0", claim, limits=limits))
    await world.heard_of("tenant")
    await world.create(pod("more", limits={"nvidia.com/gpu": 2}))
    await world.refused("more", "0/1 nodes are available")
    await world.create(pod("somebody", limits=_WHOLE))
    await world.bound("somebody")
    # The pod claims more than there is, so the last look at all pods must not see it.
    await world.delete(f"{PODS}/tenant")


async def a_claim_makes_no_plain_node_hamis(world: World) -> None:
    """The GPUs that its pod does not ask stay free."""
    await world.create(nodes.make_plain_node("p0", resources={"nvidia.com/gpu": "2"}))
    await world.create(_claiming("tenant", "p0", "GPU-0,NVIDIA,16384,100:;", limits=_WHOLE))
    await world.heard_of("tenant")
    await world.create(pod("somebody", limits=_WHOLE))
    assert await world.bound("somebody") == ["p0"]
    await world.create(pod("more", limits=_WHOLE))
    await world.refused("more", "Insufficient nvidia.com/gpu")


async def a_claim_that_cannot_be_read_is_told_on_the_pod_and_on_its_nodes_page(
    world: World,
) -> None:
    await world.create(nodes.make_gpu_node("g0", cards=2))
    await world.create(_claiming("tenant", "g0", "x", limits=_WHOLE))
    (on_node,) = await world.wait_until(lambda: world.events("MalformedPod", "g0"))
    assert on_node["regarding"]["kind"] == "Node"
    assert on_node["note"].startswith("pod default/tenant: metadata.annotations[hami.io/vgpu-")
    assert await world.wait_until(lambda: world.events("MalformedPod", "tenant"))
    await world.delete(f"{PODS}/tenant")


async def a_claim_is_judged_when_its_node_is_heard_of_later(world: World) -> None:
    """Pods and nodes come by watches of their own: a restart may hear of all pods first."""
    # A replica that begins to lead tells all there is.
    await world.settle()
    await world.create(_claiming("tenant", "g0", "x", limits=_WHOLE))
    await world.heard_of("tenant")
    await world.create(nodes.make_gpu_node("g0", cards=2))
    (on_node,) = await world.wait_until(lambda: world.events("MalformedPod", "g0"))
    assert on_node["note"].startswith("pod default/tenant: metadata.annotations[hami.io/vgpu-")
    await world.delete(f"{PODS}/tenant")


async def what_a_claim_leaves_out_is_held_all_the_same_and_told(world: World) -> None:
    """The pod asks two cards and names one: the other is given to nobody either."""
    await world.create(nodes.make_gpu_node("g0", cards=3))
    _, second, third = audit.cards(await world.node("g0"))
    claim = f"{second},NVIDIA,16384,100:;"
    await world.create(_claiming("tenant", "g0", claim, limits={"nvidia.com/gpu": 2}))
    (on_node,) = await world.wait_until(lambda: world.events("MalformedPod", "g0"))
    assert "names 1 of the 2 cards that container 1 requests" in on_node["note"]
    assert await world.wait_until(lambda: world.events("MalformedPod", "tenant"))
    await world.create(pod("somebody", limits=_WHOLE))
    await world.bound("somebody")
    assert third in (await world.pod("somebody"))["metadata"]["annotations"][audit.ALLOCATED]
    await world.create(pod("more", limits=_WHOLE))
    await world.refused("more", "0/1 nodes are available")
    # Only Evenkeel says that it holds the first card, so the last look at all pods must not see it.
    await world.delete(f"{PODS}/tenant")


async def a_pod_whose_only_gpu_was_its_init_containers_holds_none_and_stops_nobody(
    world: World,
) -> None:
    """By then its claim counts for nothing, and there is nothing in it to mend."""
    await world.create(nodes.make_gpu_node("g0", cards=1))
    [card] = audit.cards(await world.node("g0"))
    claim, init = f"{card},NVIDIA,16384,100:;;", [container("init", limits=_WHOLE)]
    await world.create(_claiming("tenant", "g0", claim, initContainers=init))
    done = {"conditions": [{"type": "Initialized", "status": "True"}]}
    await world.call("PATCH", f"{PODS}/tenant/status", {"status": done})
    await world.create(pod("somebody", limits=_WHOLE))
    await world.bound("somebody")
    await world.create(pod("last"))
    await world.bound("last")
    assert not await world.events("MalformedPod", "tenant")
    # Its claim names a card that is somebody else's by now, so the last look at all pods must not see it.
    await world.delete(f"{PODS}/tenant")


ALL = (
    pods_without_gpus_that_claim_cards_close_no_node,
    a_pod_that_claims_all_cards_holds_what_it_asks,
    a_claim_makes_no_plain_node_hamis,
    a_claim_that_cannot_be_read_is_told_on_the_pod_and_on_its_nodes_page,
    a_claim_is_judged_when_its_node_is_heard_of_later,
    what_a_claim_leaves_out_is_held_all_the_same_and_told,
    a_pod_whose_only_gpu_was_its_init_containers_holds_none_and_stops_nobody,
)
