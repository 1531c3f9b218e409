"""Several scheduler names in one process, each with its own profile; every case starts its own operator."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from scheduler.embedded.agents import nodes
from tests.operator.manifests import pod
from tests.operator.process import Operator
from tests.operator.world import PODS, World

Json = dict[str, Any]
_CONFIG = """
placement: {scoring: {mode: least-allocated}}
profiles:
- schedulerName: packer
  placement: {scoring: {mode: most-allocated}}
- schedulerName: default-scheduler
"""


async def _start(world: World) -> Operator:
    path = world.server.folder / "profiles.yaml"
    path.write_text(_CONFIG, encoding="utf-8")
    return await world.start_operator(args=("--config", str(path)))


def _four(scheduler: str) -> list[Json]:
    asked = {"cpu": "100m", "memory": "100Mi"}
    return [pod(f"{scheduler}-{i}", requests=asked, schedulerName=scheduler) for i in range(4)]


async def each_scheduler_name_has_its_own_profile(world: World) -> None:
    """Packed or spread by the name alone, on the same nodes, and told in that name."""
    await world.create(*(nodes.make_plain_node(f"n{i}", cpu="8", memory="8Gi") for i in range(4)))
    operator = await _start(world)
    n_nodes = {}
    for scheduler in ("evenkeel", "packer", "default-scheduler"):
        pods = _four(scheduler)
        await world.create(*pods)
        found = [one["metadata"]["name"] for one in pods]
        n_nodes[scheduler] = len(set(await world.bound(*found)))
        await world.told(*found)
        told = [(await world.events("Scheduled", name))[-1] for name in found]
        assert {event["reportingController"] for event in told} == {scheduler}
    # The last ones are spread too, over the nodes that the packed ones left.
    assert n_nodes == {"evenkeel": 4, "packer": 1, "default-scheduler": 3}
    metrics = await asyncio.to_thread(operator.metrics)
    attempts = {
        name: metrics[f'scheduler_schedule_attempts_total{{profile="{name}",result="scheduled"}}']
        for name in n_nodes
    }
    assert attempts == dict.fromkeys(n_nodes, 4.0)


async def pods_of_any_other_name_are_left_alone_and_counted(world: World) -> None:
    await world.create(nodes.make_plain_node("n0", cpu="1"))
    await world.create(
        pod("theirs", requests={"cpu": "900m"}, schedulerName="another", nodeName="n0"),
        pod("waits", requests={"cpu": "50m"}, schedulerName="another"),
        pod("too-large", requests={"cpu": "200m"}, schedulerName="packer"),
        pod("fits", requests={"cpu": "100m"}, schedulerName="default-scheduler"),
    )
    await _start(world)
    assert await world.bound("fits") == ["n0"]
    await world.refused("too-large", "Insufficient cpu")
    assert "nodeName" not in (await world.pod("waits"))["spec"]


async def a_pod_of_each_name_that_goes_gives_its_room_back(world: World) -> None:
    """Each name has a stream of its own, and the news of all of them count."""
    await world.create(nodes.make_plain_node("n0", cpu="3"))
    await _start(world)
    schedulers = ("evenkeel", "packer", "default-scheduler")
    first = [pod(f"a-{name}", requests={"cpu": "1"}, schedulerName=name) for name in schedulers]
    await world.create(*first)
    await world.bound(*(one["metadata"]["name"] for one in first))
    second = [pod(f"b-{name}", requests={"cpu": "1"}, schedulerName=name) for name in schedulers]
    await world.create(*second)
    for one in second:
        await world.refused(one["metadata"]["name"], "Insufficient cpu")
    for one in first:
        await world.delete(f"{PODS}/{one['metadata']['name']}")
    found = await world.bound(*(one["metadata"]["name"] for one in second))
    assert Counter(found) == {"n0": 3}


ALONE = [
    each_scheduler_name_has_its_own_profile,
    pods_of_any_other_name_are_left_alone_and_counted,
    a_pod_of_each_name_that_goes_gives_its_room_back,
]
