"""Devices of every vendor whose plugin works with HAMi: pods run once the plugin has served them, and no lock stays."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.devices.table import CARD_DRIVERS
from scheduler.embedded.agents import nodes
from tests.model.vendor_fleet import list_cards, read_fleet
from tests.operator.manifests import pod
from tests.operator.world import World

Json = dict[str, Any]
# The cases show no node of some chips.
_DRIVERS = {
    name: driver
    for name, driver in CARD_DRIVERS.items()
    if any(list_cards(driver, node) for node in read_fleet().nodes)
}


def _make_nodes() -> list[Json]:
    """A node for every vendor, with what its plugin has registered."""
    found: dict[str, Json] = {}
    for node in read_fleet().nodes:
        name = next(name for name, driver in _DRIVERS.items() if list_cards(driver, node))
        made = nodes.make_plain_node(f"of-{len(found)}", labels=node.metadata.labels or {})
        body = msgspec.to_builtins(node)
        made["metadata"]["annotations"] = body["metadata"].get("annotations", {})
        amounts = {key: str(n) for key, n in body["status"]["allocatable"].items()}
        made["status"]["allocatable"] |= amounts
        made["status"]["capacity"] |= amounts
        found.setdefault(name, made)
    return list(found.values())


async def plugins_of_all_vendors_serve_their_pods(world: World) -> None:
    made = _make_nodes()
    assert len(made) > 12
    await world.create(*made)
    kinds = {f"p-{i}": driver.resources[0] for i, driver in enumerate(_DRIVERS.values())}
    async with world.agents() as agents:
        await world.create(*(pod(name, limits={resource: 1}) for name, resource in kinds.items()))
        await world.running(*kinds)
        await world.wait_until(world.nodes, _are_unlocked)
    served = {one.resource for one in agents.vendors.allocations}
    assert served == set(kinds.values())


async def one_pod_has_devices_of_two_vendors_on_one_node(world: World) -> None:
    """Both plugins serve the pod under one lock; the last one releases it."""
    both = nodes.make_gpu_node("both", cards=2)
    register = "DCU-a,4,65520,100,DCU-K100_AI,0,true,0,hami-core:"
    both["metadata"]["annotations"]["hami.io/node-dcu-register"] = register
    for part in ("capacity", "allocatable"):
        both["status"][part]["hygon.com/dcunum"] = "4"
    await world.create(both)
    wanted = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000, "hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 30}  # fmt: skip
    async with world.agents() as agents:
        await world.create(pod("two", limits=wanted), pod("two-more", limits=wanted))
        await world.running("two", "two-more")
        await world.wait_until(world.nodes, _are_unlocked)
    assert [one.pod for one in agents.allocations] == ["two", "two-more"]
    assert [one.devices for one in agents.vendors.allocations] == [("DCU-a",), ("DCU-a",)]


def _are_unlocked(found: list[Json]) -> bool:
    notes = [one["metadata"].get("annotations") or {} for one in found]
    return not any(key.endswith((".lock", "/lock")) for one in notes for key in one)


ALL = (
    plugins_of_all_vendors_serve_their_pods,
    one_pod_has_devices_of_two_vendors_on_one_node,
)
