"""The operator with KAI's queues: limits hold, a queue gets its quota back, and the queues say what they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler.api import kinds, names
from scheduler.embedded.agents import nodes
from tests.operator import servers
from tests.operator.crds import make_crd
from tests.operator.manifests import pod
from tests.operator.world import PODS, Refused, World, enter

Json = dict[str, Any]
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_QUEUES = kinds.KAI_QUEUES.path
_CONFIG = Path(__file__).parents[2] / "manifests" / "kai-queues" / "config.yaml"


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


async def _serve_queues(world: World) -> None:
    await world.call("POST", _CRDS, make_crd(kinds.KAI_QUEUES))

    async def is_served() -> bool:
        with suppress(Refused):
            await world.call("GET", _QUEUES)
            return True
        return False

    await world.wait_until(is_served)


async def _make_queue(world: World, name: str, **spec: Any) -> None:
    kind = kinds.KAI_QUEUES
    meta = {"name": name}
    made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
    await world.call("POST", _QUEUES, made)


def _cpu(quota: float, limit: float = -1) -> Json:
    free = {"quota": -1, "limit": -1}
    cpu = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    return {"resources": {"cpu": cpu, "memory": free, "gpu": free}}


def _pod(name: str, queue: str) -> Json:
    return pod(name, requests={"cpu": "1"}, labels={names.KAI_QUEUE: queue})


async def test_queues_of_kai_are_managed(server: servers.Server) -> None:
    async with enter(server) as world:
        await _serve_queues(world)
        await _make_queue(world, "a", **_cpu(1000, 3000))
        await _make_queue(world, "b", **_cpu(2000))
        await _make_queue(world, "wrong", priority="high")
        operator = await world.start_operator(args=("--config", str(_CONFIG)))
        await world.leads(operator)
        await world.create(nodes.make_plain_node("n0", cpu="3"))
        async with world.agents():
            await world.create(*(_pod(f"a{i}", "a") for i in range(4)))
            (held,) = await world.wait_until(partial(_list_held, world))
            assert "OverLimit: queue a is limited to 3000m of cpu" in held["note"]
            conditions = (await world.pod(held["regarding"]["name"]))["status"].get("conditions")
            assert not conditions
            await _says(world, "a", allocated="3", requested="4", is_over=True)
            await world.create(_pod("b0", "b"), _pod("b1", "b"), _pod("lost", "none"))
            assert await world.bound("b0", "b1") == ["n0", "n0"]
            await _says(world, "a", allocated="1", requested="2", is_over=False)
            await _says(world, "b", allocated="2", requested="2", is_over=False)
            (lost,) = await world.wait_until(partial(world.events, "FailedScheduling", "lost"))
            assert lost["note"] == "QueueDoesNotExist: there is no queue none"
            (wrong,) = await world.wait_until(partial(world.events, "Misconfigured", "wrong"))
            assert "spec.priority" in wrong["note"]
            # The limit of the queue above comes with it; who waited for a queue is tried when it comes.
            await _make_queue(world, "none", **_cpu(0, 0))
            await world.wait_until(partial(_says_over_limit, world, "lost"))
        for one in await world.pods():
            await world.delete(f"{PODS}/{one['metadata']['name']}")


async def _list_held(world: World) -> list[Json]:
    found = [one for i in range(4) for one in await world.events("FailedScheduling", f"a{i}")]
    return [one for one in found if "OverLimit" in one["note"]]


async def _says_over_limit(world: World, name: str) -> bool:
    found = await world.events("FailedScheduling", name)
    return any("OverLimit" in one["note"] for one in found)


async def _says(world: World, name: str, *, allocated: str, requested: str, is_over: bool) -> None:
    """Wait until the status of a queue says what it has."""

    async def read() -> bool:
        status = (await world.call("GET", f"{_QUEUES}/{name}")).get("status") or {}
        conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
        return (
            status.get("allocated", {}).get("cpu") == allocated
            and status.get("requested", {}).get("cpu") == requested
            and conditions == {"Orphan": "False", "OverQuota": str(is_over)}
        )

    await world.wait_until(read)
