"""HAMi's device configuration, installed by the chart and edited live: the right is for two ConfigMaps by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from scheduler.api import names
from tests.cluster import test_device_webhook as of_webhook
from tests.controlplane import plane
from tests.operator import cases_device_maps, installed, servers
from tests.operator.manifests import pod
from tests.operator.world import World

_CONFIG = f"/api/v1/namespaces/{installed.NAMESPACE}/configmaps/evenkeel-config"


def _install(cp: plane.ControlPlane) -> None:
    values = ["deviceWebhook.enabled=true", f"config.hamiConfigMap={cases_device_maps.MAP}"]
    given = [f"--set={one}" for one in values]
    installed.helm(cp, "install", "evenkeel", installed.CHART, "--create-namespace", *given)
    installed.wait_for_crd(cp)


@pytest.fixture(scope="module")
def server(helm: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds it
    with servers.real(install=_install) as running:
        yield running


async def test_the_config_map_is_followed_live_by_scheduler_and_webhook(world: World) -> None:
    config = yaml.safe_load((await world.call("GET", _CONFIG))["data"]["config.yaml"])
    assert "nvidia" not in config["deviceWebhook"]
    operator = await of_webhook.start(world)
    await world.leads(operator)
    await cases_device_maps.is_followed_live(world)
    # The webhook fills in by the new names now, and knows the old ones no more.
    limits = await _admit(world, {"example.com/vgpumem": 1})
    assert limits["example.com/vgpu"] == "1"
    assert await _admit(world, {names.GPU_MEMORY: 1}) == {names.GPU_MEMORY: "1"}
    await cases_device_maps.configure(world, cases_device_maps.make_text(defaultGPUNum=3))
    await world.wait_until(partial(_is_followed, world))
    assert operator.stop().code == 0


async def _admit(world: World, limits: dict[str, int]) -> dict[str, str]:
    made = await of_webhook.create(world, pod("probe", limits=limits), dry=True)
    (container,) = made["spec"]["containers"]
    found: dict[str, str] = container["resources"]["limits"]
    return found


async def _is_followed(world: World) -> bool:
    return (await _admit(world, {names.GPU_MEMORY: 1})).get(names.GPU) == "3"
