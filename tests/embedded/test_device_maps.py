"""HAMi's device configuration, followed by the operator on the embedded API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.operator import cases_device_maps, servers
from tests.operator.world import World, enter


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


async def _start(world: World) -> None:
    path = world.server.folder / "device-maps.yaml"
    path.write_text(yaml.safe_dump({"hamiConfigMap": cases_device_maps.MAP}))
    operator = await world.start_operator(args=("--config", str(path)))
    await world.leads(operator)


async def test_the_config_map_is_followed_live(server: servers.Server) -> None:
    async with enter(server) as world:
        await _start(world)
        await cases_device_maps.is_followed_live(world)


async def test_a_mistake_at_the_start_leaves_the_defaults_and_has_its_event(
    server: servers.Server,
) -> None:
    async with enter(server) as world:
        await cases_device_maps.configure(world, "nvidia: {memoryFactor: -1}")
        await _start(world)
        await cases_device_maps.is_told_and_the_defaults_hold(world)
