"""On a full cluster with budgets that allow nothing, pods of such budgets go only where no node offers better."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from scheduler.embedded.agents import nodes
from tests.model.evictions import Judged, judge_evictions
from tests.operator.cases_preemption import create_classes
from tests.operator.manifests import pod
from tests.operator.world import World

Json = dict[str, Any]
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_APPS = "abcd"


def _make(name: str, priority: str, cpu: int, app: str) -> Json:
    found = pod(name, requests={"cpu": str(cpu)}, priorityClassName=priority)
    found["spec"]["terminationGracePeriodSeconds"] = 0
    found["metadata"]["labels"] = {"app": app}
    return found


async def no_eviction_breaks_a_budget_where_another_choice_was_there(world: World) -> None:
    """Nobody counts these budgets' pods, so each allows no disruption; pods without an app have none."""
    assert world.operator is not None
    rng = random.Random(1)
    await create_classes(world)
    for app in _APPS:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        }
        await world.call("POST", _BUDGETS, budget)
    await world.create(*(nodes.make_plain_node(f"n{i}", cpu="4") for i in range(8)))
    low = [_make(f"low-{i}", "low", 1, rng.choice(_APPS + "ef")) for i in range(32)]
    await world.create(*low)
    await world.bound(*(one["metadata"]["name"] for one in low))
    high = [
        _make(f"high-{i}", rng.choice(["mid", "high"]), rng.choice([1, 1, 2]), rng.choice(_APPS))
        for i in range(16)
    ]
    await world.create(*high)
    await world.bound(*(one["metadata"]["name"] for one in high), seconds=60.0)
    judged = await asyncio.to_thread(_judge, world.operator.record_path.read_bytes())
    ours = [one for one in judged if one.n_victims and one.node.startswith("n")]
    assert len(ours) >= 10
    assert any(one.violations for one in ours), "no budget was ever broken: the case shows nothing"
    assert any(not one.violations for one in ours)
    assert [one for one in ours if one.violations > one.least] == []
    for app in _APPS:
        await world.call("DELETE", f"{_BUDGETS}/{app}")


def _judge(record: bytes) -> list[Judged]:
    return list(judge_evictions(record.splitlines(keepends=True)))


ALL = [no_eviction_breaks_a_budget_where_another_choice_was_there]
