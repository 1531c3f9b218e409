"""HAMi's ConfigMap, edited while the operator runs: waiting pods, running pods, the mistake and its event."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import yaml

from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.operator import audit
from tests.operator.manifests import pod
from tests.operator.world import NODES, PODS, Refused, World

Json = dict[str, Any]
MAP = "kube-system/hami-scheduler-device"
PATH = "/api/v1/namespaces/kube-system/configmaps"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
_NAME = MAP.partition("/")[2]
_NVIDIA = {
    "resourceCountName": names.GPU,
    "resourceMemoryName": names.GPU_MEMORY,
    "resourceMemoryPercentageName": names.GPU_MEMORY_PERCENT,
    "resourceCoreName": names.GPU_CORES,
    "defaultGPUNum": 1,
}
OTHER = {
    "resourceCountName": "example.com/vgpu",
    "resourceMemoryName": "example.com/vgpumem",
    "resourceMemoryPercentageName": "example.com/vgpumem-percentage",
    "resourceCoreName": "example.com/vgpucores",
    "memoryFactor": 1000,
}


def make_text(**changes: Any) -> str:
    """The content of the ConfigMap."""
    return yaml.safe_dump({"nvidia": {**_NVIDIA, **changes}})


async def configure(world: World, text: str) -> None:
    """Write the ConfigMap, which may be there already."""
    data = {"device-config.yaml": text}
    with suppress(Refused):
        await world.call("POST", PATH, {"metadata": {"name": _NAME}, "data": data})
        return
    await world.call("PATCH", f"{PATH}/{_NAME}", {"data": data})


async def offer(world: World, node: str, resource: str, count: int) -> None:
    """Let a node offer shares by another name, as the plugin does once it has read its configuration."""
    figures = {resource: str(count)}
    await world.call(
        "PATCH", f"{NODES}/{node}/status", {"status": {"allocatable": figures, "capacity": figures}}
    )


async def is_followed_live(world: World) -> None:
    """Names and factor change while pods wait and run; no card is given twice, and a mistake changes nothing."""
    await world.create(nodes.make_gpu_node("g0", cards=2))
    async with world.agents():
        await world.create(pod("old", limits={names.GPU: 1}))
        await world.running("old")
        shared = {"example.com/vgpu": 1, "example.com/vgpumem": 2}
        await world.create(pod("later", limits=shared))
        await world.refused("later", "example.com/vgpu")
        await offer(world, "g0", "example.com/vgpu", 20)
        await configure(world, make_text(**OTHER))
        # It is read again, and only then it requests shares of cards; a unit is 1000 MiB.
        await world.bound("later")
        assert await _read_claim(world, "later") == [("2000", "0")]
        await _serve(world, "later")
        # The card of the pod with the old name is no card of the new one.
        await world.create(pod("whole", limits={"example.com/vgpu": 1}))
        await world.refused("whole", "CardInsufficient")
        (old,), (new,) = await _list_cards(world, "old"), await _list_cards(world, "later")
        assert old != new
        await configure(world, make_text(memoryFactor="many"))
        (event,) = await world.wait_until(partial(_list_events, world))
        assert event["regarding"]["name"] == _NAME
        assert "data[device-config.yaml].nvidia.memoryFactor: 'many'" in event["note"]
        # What held before the mistake holds still.
        await world.create(pod("again", limits={**shared, "example.com/vgpumem": 3}))
        await world.bound("again")
        assert await _read_claim(world, "again") == [("3000", "0")]
        await _serve(world, "again")
        await world.delete(f"{PODS}/old")
        await world.bound("whole")
    assert await _list_cards(world, "whole") == [old]
    # The audit at the end knows the names of HAMi's chart only.
    for name in ("later", "again", "whole"):
        await world.delete(f"{PODS}/{name}")


async def is_told_and_the_defaults_hold(world: World) -> None:
    """The ConfigMap had a mistake before the operator came."""
    (event, *_) = await world.wait_until(partial(_list_events, world))
    assert "what could be read last stays in force, or the defaults" in event["note"]
    await world.create(nodes.make_gpu_node("g0", cards=1))
    async with world.agents():
        await world.create(pod("p", limits={names.GPU: 1, names.GPU_MEMORY: 3}))
        await world.running("p")
    assert await _read_claim(world, "p") == [("3", "0")]


async def _serve(world: World, name: str) -> None:
    """What a plugin that knows the new name does; the agents know only the old one."""
    await world.annotate(f"{PODS}/{name}", {names.HAMI_BIND_PHASE: names.BIND_SUCCESS})
    await world.annotate(f"{NODES}/g0", {names.HAMI_LOCK: None})


async def _read_claim(world: World, name: str) -> list[tuple[str, str]]:
    """MiB and cores of each device that a pod holds."""
    text = (await world.pod(name))["metadata"]["annotations"][audit.ALLOCATED]
    parts = [one.split(",") for one in text.replace(";", "").split(":") if one]
    return [(part[2], part[3]) for part in parts]


async def _list_cards(world: World, name: str) -> list[str]:
    text = (await world.pod(name))["metadata"]["annotations"][audit.ALLOCATED]
    return [one.split(",")[0] for one in text.replace(";", "").split(":") if one]


async def _list_events(world: World) -> list[Json]:
    found = await world.listed(_EVENTS)
    return [one for one in found if one["reason"] == "MalformedConfigMap"]
