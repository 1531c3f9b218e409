"""Quotas of devices by namespace, on the embedded API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.operator import cases_space_quotas, servers
from tests.operator.world import enter


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


async def test_a_quota_holds_pods_until_there_is_room(server: servers.Server) -> None:
    async with enter(server) as world:
        path = world.server.folder / "space-quotas.yaml"
        path.write_text(yaml.safe_dump({"metrics": {"hami": "current"}}))
        operator = await world.start_operator(args=("--config", str(path)))
        await world.leads(operator)
        await cases_space_quotas.holds_and_lets_go(world, operator)
