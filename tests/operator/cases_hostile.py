"""The attacks of a tenant who may only create pods, a tenth of their size: normal pods are bound beside them.

What is counted is work and words, never time; how long normal pods wait is measured by ``make bench
ARGS=hostile``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator import attacks
from tests.operator.manifests import pod, vgpu
from tests.operator.world import Refused, World

Json = dict[str, Any]
_SCALE = 0.1
# An API server takes seconds for a pod of a megabyte, and what is told of waiting pods goes out half of the time.
_SECONDS = 600.0
# The field that an event names on a pod that says more than is read; others fit, or fit nowhere.
_HELD = {
    "terms": "spec.affinity",
    "keys": "spec.nodeSelector",
    "peers": "spec.affinity",
    "images": "spec.containers[].image",
    "ports": "spec.containers[].ports",
    "resources": "spec.containers[].resources",
    "wishes": "metadata.annotations[nvidia.com/use-gpuuuid]",
    "picks": "spec.containers[].resources.limits[nvidia.com/gpu]",
}


async def _cluster(world: World) -> None:
    await world.create_all([nodes.make_plain_node(f"plain-{i}") for i in range(5)])
    await world.create_all([nodes.make_gpu_node(f"gpu-{i:02}") for i in range(2)])


async def _attack(world: World, name: str, namespace: str) -> list[str]:
    """Create the attack's pods; an API server may refuse some for their size."""
    scale = _SCALE if name != "unlike" else 0.01
    created = []
    for manifest in attacks.ALL[name](namespace, scale):
        try:
            await world.create(manifest)
        except Refused:
            continue
        created.append(manifest["metadata"]["name"])
    return created


async def _normal_pods_are_bound(world: World, prefix: str) -> None:
    names = [f"{prefix}-{kind}-{i}" for kind in ("cpu", "gpu") for i in range(3)]
    for i in range(3):
        await world.create(pod(names[i], requests={"cpu": f"{100 + i}m"}))
        await world.create(vgpu(names[i + 3], mem=500 + i))
    async with world.agents(nodes=["gpu-00", "gpu-01"]):
        await world.bound(*names, seconds=_SECONDS)


async def _strangers_go(world: World) -> None:
    """What a tenant put on a node itself is on cards without HAMi's words: the last look must not see it."""
    for one in await world.pods():
        if one["spec"]["schedulerName"] == "nobody":
            meta = one["metadata"]
            with suppress(Refused):
                await world.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")


async def every_attack_leaves_normal_pods_to_be_bound(world: World) -> None:
    await _cluster(world)
    for name in attacks.ALL:
        assert await _attack(world, name, "default"), name
        await _normal_pods_are_bound(world, name)
    await _strangers_go(world)


async def a_pod_beyond_the_bounds_is_told_which_field_and_how_much_is_read(world: World) -> None:
    await _cluster(world)
    for name, field in _HELD.items():
        (first, *_) = await _attack(world, name, "default")
        event = await world.refused(first, field, _SECONDS)
        assert "the maximum" in event["note"]


async def all_attacks_at_once_from_namespaces_of_their_own(world: World) -> None:
    """The scheduler leads all the time, and every pod that waits is told why in the end."""
    assert world.operator is not None
    lapses = world.operator.said("no longer leading")
    await _cluster(world)
    there = {one["metadata"]["name"] for one in await world.listed("/api/v1/namespaces")}
    for i, name in enumerate(attacks.ALL):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"tenant-{i}"}}
        if f"tenant-{i}" not in there:
            await world.create(space)
        await _attack(world, name, f"tenant-{i}")
    await _normal_pods_are_bound(world, "normal")

    async def untold() -> list[str]:
        return [
            one["metadata"]["name"]
            for one in await world.pods()
            if "nodeName" not in one["spec"]
            and not any(c["type"] == "PodScheduled" for c in one["status"].get("conditions", ()))
        ]

    await world.wait_until(untold, lambda found: not found, _SECONDS)
    assert world.operator.said("no longer leading") == lapses
    await _strangers_go(world)


async def hundreds_of_unlike_pods_wait_and_a_node_for_one_of_them_helps_just_that(
    world: World,
) -> None:
    await _cluster(world)
    names = await _attack(world, "unlike", "default")
    await asyncio.gather(*(world.refused(name, seconds=_SECONDS) for name in names[::20]))
    await world.settle(_SECONDS)
    attempts = partial(_attempts, world)
    before = await attempts()
    await world.create(nodes.make_plain_node("helps", labels={"rack": "r7"}, cpu="64"))
    assert await world.bound("unlike-7", seconds=_SECONDS) == ["helps"]
    await world.settle(_SECONDS)
    # The pod itself and the marker of settle: nobody else was tried.
    assert await attempts() == before + 2


async def _attempts(world: World) -> float:
    assert world.operator is not None
    found = await asyncio.to_thread(world.operator.metrics)
    return sum(
        n for name, n in found.items() if name.startswith("scheduler_schedule_attempts_total")
    )


ALL = [
    every_attack_leaves_normal_pods_to_be_bound,
    a_pod_beyond_the_bounds_is_told_which_field_and_how_much_is_read,
    all_attacks_at_once_from_namespaces_of_their_own,
    hundreds_of_unlike_pods_wait_and_a_node_for_one_of_them_helps_just_that,
]
