"""A quota of devices in a namespace: who waits, what is said, what ends the wait, and a quota with a mistake."""

from __future__ import annotations

from functools import partial
from typing import Any

from scheduler.api import kinds, names
from scheduler.embedded.agents import nodes
from tests.operator.manifests import pod
from tests.operator.process import Operator
from tests.operator.world import PODS, World

Json = dict[str, Any]
_QUOTAS = kinds.RESOURCE_QUOTAS.find_list_path("default")
_MEM = f"limits.{names.GPU_MEMORY}"


async def holds_and_lets_go(world: World, operator: Operator) -> None:
    """Two pods fit, the third waits for room without the condition of a pod that fits nowhere."""
    await world.create(nodes.make_gpu_node("g0", cards=4))
    await world.call("POST", _QUOTAS, _make_quota("cards", {_MEM: "5000"}))
    asked = {names.GPU: 1, names.GPU_MEMORY: 2000}
    async with world.agents():
        await world.create(*(pod(f"p{i}", limits=asked) for i in range(2)))
        await world.running("p0", "p1")
        await world.create(pod("p2", limits=asked))
        (event, *_) = await world.wait_until(partial(world.events, "FailedScheduling", "p2"))
        said = f"exceeded quota: cards, requested: {_MEM}=2000, used: {_MEM}=4000, limited: {_MEM}=5000"
        assert said in event["note"]
        assert not (await world.pod("p2"))["status"].get("conditions")
        await world.measured(operator, _has_series)
        await world.delete(f"{PODS}/p0")
        await world.running("p2")
        await world.create(pod("p3", limits=asked))
        await world.wait_until(partial(world.events, "FailedScheduling", "p3"))
        await world.call("PATCH", f"{_QUOTAS}/cards", {"spec": {"hard": {_MEM: "6000"}}})
        await world.running("p3")
    await world.delete(f"{_QUOTAS}/cards")


def _make_quota(name: str, hard: Json) -> Json:
    kind = kinds.RESOURCE_QUOTAS
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name},
        "spec": {"hard": hard},
    }


def _has_series(metrics: Any) -> bool:
    return any(
        name.startswith("hami_resource_quota_used") and figure == 4000
        for name, figure in metrics.items()
    )
