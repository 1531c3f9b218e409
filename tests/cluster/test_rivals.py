"""Another scheduler binds to the same nodes at full speed: nothing is given away that was known to be taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from scheduler.embedded.agents import nodes
from tests.operator import knowledge, servers
from tests.operator.foreign import bind_for_another
from tests.operator.manifests import Json, pod, vgpu
from tests.operator.process import Operator
from tests.operator.world import PODS, World, enter

_N_NODES, _CPUS = 20, 20
_EACH = _N_NODES * _CPUS // 2
_ROUNDS = 4


@pytest.fixture
async def world(server: servers.Server) -> AsyncIterator[World]:
    async with enter(server) as made:
        yield made
        # Both can give away the same room in the same moment, so what is left may be too much for a node.
        await made.clear()


async def test_a_rival_on_plain_nodes(world: World) -> None:
    """Together the two have as many pods as there is room for, and half as many again of ours to wait."""
    operator = await world.start_operator()
    names = [f"n{i}" for i in range(_N_NODES)]
    await world.create(*(nodes.make_plain_node(name, cpu=str(_CPUS)) for name in names))
    theirs = [pod(f"their-{i}", requests={"cpu": "1"}, schedulerName="rival") for i in range(_EACH)]
    await world.create(*theirs)
    ours = [pod(f"our-{i}", requests={"cpu": "1"}) for i in range(_EACH * 3 // 2)]
    targets = {one["metadata"]["name"]: names[i % _N_NODES] for i, one in enumerate(theirs)}
    await _race(world, ours, [_bind(world, name, node) for name, node in targets.items()])
    await _settled(world, len(ours))
    _check(operator)


async def test_a_rival_on_hamis_cards(world: World) -> None:
    """The rival takes a card of each node, share by share, while ours come for all of them."""
    operator = await world.start_operator()
    names = [f"g{i}" for i in range(6)]
    await world.create(*(nodes.make_gpu_node(name, cards=2) for name in names))
    ours = [vgpu(f"our-{i}", mem=3000) for i in range(60)]
    async with world.agents():
        theirs = [
            bind_for_another(world, f"their-{i}-{name}", name) for i in range(4) for name in names
        ]
        await _race(world, ours, theirs)
        await _settled(world, len(ours))
    _check(operator)


async def _race(world: World, ours: list[Json], theirs: list[Coroutine[Any, Any, None]]) -> None:
    """Both work at once, in rounds: an idle machine lets neither finish before the other has begun."""
    for n in range(_ROUNDS):
        await asyncio.gather(world.create(*ours[n::_ROUNDS]), *theirs[n::_ROUNDS])
        if n == 0:
            await world.wait_until(lambda: _bound(world), lambda bound: bound > 0, 60.0)


async def _bound(world: World) -> int:
    return sum("nodeName" in one["spec"] for one in await _ours(world))


async def _ours(world: World) -> list[Json]:
    return [one for one in await world.pods() if one["spec"]["schedulerName"] == "evenkeel"]


def _check(operator: Operator) -> None:
    operator.stop()
    with operator.record_path.open("rb") as lines:
        known = knowledge.replayed(lines)
    assert known.wrongs == []
    # Else nobody has disturbed anybody.
    assert known.heard_between > 0, len(known.binds)


async def _settled(world: World, n_ours: int) -> None:
    """Until every pod of ours has a node or was told why not."""

    async def told() -> int:
        return sum("conditions" in one["status"] for one in await _ours(world))

    await world.wait_until(told, lambda n: n == n_ours, 120.0)


async def _bind(world: World, name: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}  # fmt: skip
    await world.call("POST", f"{PODS}/{name}/binding", body)
