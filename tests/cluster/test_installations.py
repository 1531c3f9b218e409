"""Evenkeel as each rendering installs it, run with the arguments and the rights that it gives, and no others."""

import json
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from scheduler.embedded.agents import nodes
from tests.controlplane import plane
from tests.operator import installed, servers
from tests.operator.manifests import pod, policy, vgpu
from tests.operator.process import Operator
from tests.operator.world import POLICIES, World, enter

_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{installed.NAMESPACE}/leases/evenkeel"


@pytest.fixture(scope="module", params=["kustomize", "helm"])
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    install: Callable[[plane.ControlPlane], None] = installed.by_kustomize
    if request.param == "helm":
        request.getfixturevalue("helm")
        install = installed.by_helm
    with servers.real(install=install) as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: servers.Server) -> Iterator[Operator]:
    assert server.plane is not None
    running = Operator(server, lease=False, args=installed.deployment_args(server.plane))
    try:
        running.wait_ready()
        yield running
    finally:
        running.stop()


@pytest.fixture
async def world(server: servers.Server, operator: Operator) -> AsyncIterator[World]:
    async with enter(server, operator) as made:
        yield made


async def test_what_is_installed_schedules(world: World) -> None:
    """A Role whose lease is named otherwise, say: nobody leads, and all pods wait without a word."""
    operator = world.operator
    assert operator is not None
    await world.create(nodes.make_plain_node("plain"), nodes.make_gpu_node("cards"))
    await world.create(policy("all", nodePolicy="binpack"))
    async with world.agents(nodes={"cards"}):
        await world.create(pod("plain", requests={"cpu": "1"}), vgpu("gpu"))
        await world.bound("plain", "gpu")
        await world.running("gpu")
    await world.told("plain", "gpu")

    assert operator.is_deciding
    assert operator.get("/readyz")[0] == 200
    lease = await world.call("GET", _LEASE)
    assert lease["spec"]["holderIdentity"].startswith("a_")

    async def read() -> list[str]:
        found = await world.call("GET", f"{POLICIES}/all")
        return [one["type"] for one in found.get("status", {}).get("conditions", ())]

    await world.wait_until(read)
    operator.check_log()


def test_the_operator_is_its_service_account(server: servers.Server) -> None:
    assert server.plane is not None
    token = json.loads(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    said = server.plane.kubectl("auth", "whoami", token=token)
    assert f"system:serviceaccount:{installed.NAMESPACE}:evenkeel" in said
    refused = server.plane.request("GET", "/api/v1/secrets", token=token)
    assert refused.status == 403
