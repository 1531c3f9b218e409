"""Evenkeel in the place of HAMi's scheduler, on the real API server with the rights of manifests/hami-config."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane import plane
from tests.operator import cases_migration, installed, servers
from tests.operator.world import World


def _install(cp: plane.ControlPlane) -> None:
    installed.crds(cp)
    cp.kubectl("apply", "--server-side", "-k", str(installed.ROOT / "manifests" / "hami-config"))


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.real(install=_install) as running:
        yield running


async def test_hami_is_replaced_and_comes_back(world: World, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(cases_migration.CONFIG), encoding="utf-8")
    await cases_migration.hami_is_replaced_and_comes_back(world, str(path))


async def test_cards_cut_by_tables_keep_their_templates(world: World, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(cases_migration.CONFIG), encoding="utf-8")
    await cases_migration.cards_cut_by_tables_keep_their_templates(world, str(path))
