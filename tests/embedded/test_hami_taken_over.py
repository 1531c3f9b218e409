"""Evenkeel in the place of HAMi's scheduler, on the embedded API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.operator import cases_migration, servers
from tests.operator.world import enter


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


async def test_hami_is_replaced_and_comes_back(server: servers.Server) -> None:
    path = server.folder / "migration.yaml"
    path.write_text(yaml.safe_dump(cases_migration.CONFIG))
    async with enter(server) as world:
        await cases_migration.hami_is_replaced_and_comes_back(world, str(path))


async def test_cards_cut_by_tables_keep_their_templates(server: servers.Server) -> None:
    path = server.folder / "migration.yaml"
    path.write_text(yaml.safe_dump(cases_migration.CONFIG))
    async with enter(server) as world:
        await cases_migration.cards_cut_by_tables_keep_their_templates(world, str(path))
