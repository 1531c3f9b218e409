"""HAMi's cards: what is written, in which order, and what its device plugin makes of it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from scheduler.embedded.agents import cards, hami_plugin, nodes
from tests.operator import audit
from tests.operator.manifests import container, pod, vgpu
from tests.operator.world import NODES, PODS, World

Json = dict[str, Any]
NODE_POLICY = "hami.io/node-scheduler-policy"
GPU_POLICY = "hami.io/gpu-scheduler-policy"


async def node_and_annotations_come_in_one_write(world: World) -> None:
    """A pod bound without cards, or charged for cards without a node, is what a crash leaves."""
    await world.create(nodes.make_gpu_node("g0"))
    async with world.recorded(PODS) as changes:
        await world.create(*(vgpu(f"p{i}") for i in range(8)))
        async with world.agents():
            await world.running(*(f"p{i}" for i in range(8)))
    seen = [change["object"] for change in changes]
    assert len({pod["metadata"]["name"] for pod in seen}) == 8
    for one in seen:
        annotations = one["metadata"].get("annotations", {})
        has_node = "nodeName" in one["spec"]
        for key in audit.WITH_NODE:
            assert (key in annotations) == has_node, one
        if has_node:
            assert annotations["hami.io/vgpu-node"] == one["spec"]["nodeName"]
            assert one["metadata"]["labels"]["hami.io/vgpu-node"] == one["spec"]["nodeName"]
            assert annotations["hami.io/vgpu-time"].isdigit()
            assert annotations["hami.io/bind-phase"] in {"allocating", "success"}
    first = next(one for one in seen if "nodeName" in one["spec"])["metadata"]["annotations"]
    assert first["hami.io/bind-phase"] == "allocating"
    assert first[audit.TO_ALLOCATE] == first[audit.ALLOCATED]


async def the_lock_names_the_pod_before_it_is_bound_and_goes_after(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"))
    async with world.recorded(NODES) as node_changes, world.recorded(PODS) as pod_changes:
        await world.create(*(vgpu(f"p{i}", mem=100) for i in range(6)))
        async with world.agents(knobs=hami_plugin.Knobs(delay_seconds=0.02)):
            await world.running(*(f"p{i}" for i in range(6)))
            await world.wait_until(world.nodes, lambda found: not audit.locked(found))
    holders: list[str] = []
    locked_at: dict[str, int] = {}
    for change in node_changes:
        metadata = change["object"]["metadata"]
        lock = metadata["annotations"].get(audit.LOCK, "")
        holder = lock.rpartition(",")[2]
        if holder != (holders[-1] if holders else ""):
            holders.append(holder)
            locked_at.setdefault(holder, int(metadata["resourceVersion"]))
        if lock:
            time, namespace, _ = lock.split(",")
            assert (time[10], time[-1], namespace) == ("T", "Z", "default")
    # The lock is given back between any two holders and at the end; nobody has it twice.
    assert holders[1::2] == [""] * 6
    assert sorted(holders[0::2]) == [f"p{i}" for i in range(6)]
    for change in pod_changes:
        one = change["object"]
        if "nodeName" in one["spec"]:
            assert locked_at[one["metadata"]["name"]] < int(one["metadata"]["resourceVersion"])


async def the_plugin_gives_what_the_annotation_says(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1", register="text9"))
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 2048, "nvidia.com/gpucores": 30}
    init = container("prepare", limits={"nvidia.com/gpu": 1, "nvidia.com/gpumem": 500})
    several = [container("web"), container("one", limits=limits), container("two", limits=limits)]
    percent = {"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 50}
    async with world.agents() as played:
        await world.create(
            pod("several", containers=several, initContainers=[init]),
            pod("percent", limits=percent),
            pod("whole", limits={"nvidia.com/gpu": 1}),
            vgpu("share", mem=1234, cores=7),
        )
        found = await world.running("several", "percent", "whole", "share")
        for one in found:
            slots = audit.devices(one)
            given = played.list_allocated(one["metadata"]["name"])
            assert [list(map(tuple, a.shares)) for a in given] == [slot for slot in slots if slot]
            assert [a.slot for a in given] == [i for i, slot in enumerate(slots) if slot]
            assert one["metadata"]["annotations"]["hami.io/bind-phase"] == "success"
        assert [a.container for a in played.list_allocated("several")] == ["prepare", "one", "two"]
        assert [len(slot) for slot in audit.devices(found[0])] == [1, 0, 1, 1]
        ((uuid, mem, cores),) = audit.devices(found[2])[0]
        assert (mem, cores) == (15360, 100)
        holders = [a.pod for a in played.allocations for s in a.shares if s.uuid == uuid]
        assert holders == ["whole"]
        await world.wait_until(world.nodes, lambda all_of_them: not audit.locked(all_of_them))


async def the_four_patterns_come_out(world: World) -> None:
    await world.create(nodes.make_gpu_node("node-a"), nodes.make_gpu_node("node-b"))
    expected = {
        ("binpack", "binpack"): [2],
        ("spread", "binpack"): [1, 1],
        ("binpack", "spread"): [4],
        ("spread", "spread"): [2, 2],
    }
    async with world.agents():
        for (node_policy, gpu_policy), cards_per_node in expected.items():
            steering = {NODE_POLICY: node_policy, GPU_POLICY: gpu_policy}
            names = [f"{node_policy}-{gpu_policy}-{i}" for i in range(4)]
            await world.create(*(vgpu(name, annotations=steering) for name in names))
            found = await world.running(*names)
            used = {(p["spec"]["nodeName"], audit.devices(p)[0][0][0]) for p in found}
            per_node = Counter(node for node, _ in used)
            assert sorted(per_node.values()) == cards_per_node, (node_policy, gpu_policy, used)
            await asyncio.gather(*(world.delete(f"{PODS}/{name}") for name in names))
            await world.settle()


async def round_figures_are_read_as_the_api_server_writes_them(world: World) -> None:
    """The API server makes ``2k`` of ``2000``: refusing that would refuse most people's first pod."""
    await world.create(nodes.make_gpu_node("g0"))
    async with world.agents():
        await world.create(vgpu("round", mem=2000), vgpu("rounder", mem=15_000, cores=10))
        await world.bound("round", "rounder")
    assert [audit.devices(await world.pod(n))[0][0][1] for n in ("round", "rounder")] == [
        2000,
        15000,
    ]


async def mig_instances_are_made_where_they_were_reserved(world: World) -> None:
    """The plugin refuses a place on which an instance stands; a place is free again once its pod is gone."""
    profiles = [
        {"name": "1g.5gb", "memoryMB": 4864, "core": 15, "sliceCount": 1, "placements": _places(range(7), 1)},
        {"name": "2g.10gb", "memoryMB": 9856, "core": 29, "sliceCount": 2, "placements": _places((0, 2, 4), 2)},
        {"name": "3g.20gb", "memoryMB": 19968, "core": 43, "sliceCount": 3, "placements": _places((0, 4), 4)},
    ]  # fmt: skip
    card = cards.Card(id="GPU-m", count=7, devmem=40960, mode="mig", migProfiles=tuple(profiles))
    node = nodes.add_cards(nodes.make_plain_node("m0"), cards.Hardware(cards=(card,)))
    await world.create(node)
    async with world.agents() as played:
        small = ["a", "b", "c", "d"]
        for name in small:
            await world.create(vgpu(name, mem=4000))
            await world.running(name)
        await world.create(vgpu("large", mem=15000))
        await world.refused(
            "large", "CardMigTopologyInfeasible on 1 GPU: requested an instance with 15000 MiB"
        )
        # The first three are on one half of the card.
        await world.delete(f"{PODS}/d")
        await world.running("large")
        found = {one["metadata"]["name"]: one for one in await world.pods()}
        instances = [
            one
            for pod in found.values()
            for one in json.loads(pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"])
        ]
        assert sorted(one["profile"] for one in instances) == ["1g.5gb"] * 3 + ["3g.20gb"]
        assert all(one["migUUID"].startswith("MIG-") for one in instances)
        taken = [
            slot
            for one in instances
            for slot in range(
                one["placement"]["start"], one["placement"]["start"] + one["placement"]["size"]
            )
        ]
        assert len(taken) == len(set(taken))
        assert len(played.allocations) == 5


def _places(starts: Iterable[int], size: int) -> list[Json]:
    return [{"start": start, "size": size} for start in starts]


async def a_failed_allocate_frees_the_card_for_others(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0", cards=1))
    async with world.agents() as played:
        played.fail_allocate("unlucky")
        await world.create(vgpu("unlucky", mem=15_001))
        failed = await world.wait_until(
            lambda: world.pod("unlucky"), lambda p: p["status"].get("phase") == "Failed"
        )
        assert failed["metadata"]["annotations"]["hami.io/bind-phase"] == "failed"
        await world.create(vgpu("next", mem=15_001))
        await world.running("next")


async def a_pod_that_is_deleted_gives_its_share_back(world: World) -> None:
    await world.create(nodes.make_gpu_node("g0", cards=1))
    async with world.agents():
        await world.create(vgpu("first"), vgpu("second"))
        await world.running("first", "second")
        await world.create(vgpu("third"))
        text = "CardInsufficientMemory on 1 GPU:"
        await world.refused("third", text)
        await world.delete(f"{PODS}/first")
        await world.running("third")


async def a_card_that_falls_ill_gets_no_new_pods(world: World) -> None:
    hardware = cards.Hardware(
        cards=tuple(cards.Card(id=cards.make_card_id("g0", i), index=i) for i in range(2))
    )
    await world.create(nodes.add_cards(nodes.make_plain_node("g0"), hardware))
    async with world.agents():
        await world.create(vgpu("before"))
        (before,) = await world.running("before")
        ((ill, *_),) = audit.devices(before)[0]
        sick = nodes.mark_unhealthy(hardware, next(c.index for c in hardware.cards if c.id == ill))
        patch = {"metadata": {"annotations": {cards.HARDWARE: sick.write_annotation()}}}
        await world.call("PATCH", f"{NODES}/g0", patch)
        await world.wait_until(
            lambda: world.node("g0"), lambda n: n["status"]["allocatable"]["nvidia.com/gpu"] == "10"
        )
        # Whoever sees the label has seen what was written before it.
        await world.call("PATCH", f"{NODES}/g0", {"metadata": {"labels": {"card": "ill"}}})
        await world.create(pod("witness", nodeSelector={"card": "ill"}))
        await world.bound("witness")
        await world.create(vgpu("after"), vgpu("last"))
        for one in await world.running("after", "last"):
            assert audit.devices(one)[0][0][0] != ill


async def twelve_pods_share_six_cards_of_two_nodes(world: World) -> None:
    await world.create(*(nodes.make_gpu_node(f"g{i}", cards=3, register="json") for i in range(2)))
    names = [f"p{i}" for i in range(14)]
    async with world.agents(knobs=hami_plugin.Knobs(seed=3, register_seconds=0.05)):
        await world.create(*(vgpu(name, cores=50) for name in names))
        found = await world.wait_until(
            world.pods,
            lambda pods: sum(p["status"].get("phase") == "Running" for p in pods) == 12,
        )
        left = [p["metadata"]["name"] for p in found if "nodeName" not in p["spec"]]
        assert len(left) == 2
        for name in left:
            await world.refused(name, "0/2 nodes are available")


async def what_is_not_read_of_hami_is_said_once(world: World) -> None:
    """With memoryFactor 1024 in HAMi's configuration a request of 8 becomes 8 MiB without a word."""
    await world.create(nodes.make_gpu_node("g0"), nodes.make_gpu_node("g1"))
    await world.create(vgpu("p", mem=100))
    await world.bound("p")
    assert world.operator
    assert world.operator.log.count("HAMi's device configuration is not read") == 1


ALL = (
    node_and_annotations_come_in_one_write,
    the_lock_names_the_pod_before_it_is_bound_and_goes_after,
    the_plugin_gives_what_the_annotation_says,
    mig_instances_are_made_where_they_were_reserved,
    the_four_patterns_come_out,
    round_figures_are_read_as_the_api_server_writes_them,
    a_failed_allocate_frees_the_card_for_others,
    a_pod_that_is_deleted_gives_its_share_back,
    a_card_that_falls_ill_gets_no_new_pods,
    twelve_pods_share_six_cards_of_two_nodes,
    what_is_not_read_of_hami_is_said_once,
)
