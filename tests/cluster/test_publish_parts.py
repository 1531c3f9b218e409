"""Nodes offer parts of their cards on the real API server, with the rights of manifests/publish-parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from scheduler.api import names
from scheduler.embedded.agents import nodes
from tests.controlplane import plane
from tests.operator import installed, servers
from tests.operator.manifests import vgpu
from tests.operator.world import World
from tests.oracles import autoscalers

_MANIFESTS = installed.ROOT / "manifests" / "publish-parts"


def _install(cp: plane.ControlPlane) -> None:
    installed.crds(cp)
    cp.kubectl("apply", "--server-side", "-k", str(_MANIFESTS))


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.real(install=_install) as running:
        yield running


async def test_autoscalers_see_fractions_of_cards(world: World) -> None:
    """A present node is an autoscaler's model of a new one: a share that waits fits on it once the node offers parts."""
    share = vgpu("share", mem=8_000)
    await world.create(share)

    await world.create(nodes.make_gpu_node("g0", cards=2))
    assert not autoscalers.fits_new_node(share, await world.node("g0"))
    await world.start_operator(args=("--config", str(_MANIFESTS / "config.yaml")))
    model = await world.wait_until(
        partial(world.node, "g0"), lambda node: names.GPU_MEMORY in node["status"]["capacity"]
    )
    for one in ("capacity", "allocatable"):
        assert model["status"][one][names.GPU_MEMORY_PERCENT] == "200"
    assert model["status"]["allocatable"][names.GPU_CORES] == "200"
    assert autoscalers.fits_new_node(share, model)
    assert not autoscalers.fits_new_node(vgpu("large", mem=90_000_000), model)
