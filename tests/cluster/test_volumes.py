"""Claims are bound by kube-controller-manager's own controllers; only the provisioner is a mock."""

from collections.abc import Iterator

import pytest

from scheduler.embedded.agents import nodes
from tests.operator import cases_volumes, provisioner, servers
from tests.operator.manifests import pod
from tests.operator.process import Operator
from tests.operator.provisioner import CLAIMS, CLASSES, claim, storage_class
from tests.operator.shared import Case, operator  # noqa: F401 - a fixture
from tests.operator.world import World, enter

_CONTROLLERS = ("persistentvolume-binder-controller", "ephemeral-volume-controller")


@pytest.fixture(scope="module")
def server(peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    with servers.real() as running:
        assert running.plane is not None
        running.plane.start_controller_manager(
            _CONTROLLERS, extra_flags=["--pvclaimbinder-sync-period=1s"]
        )
        yield running


@pytest.fixture(autouse=True)
def _no_mock_of_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisioner, "BINDS", False)


async def a_generic_ephemeral_volume_gets_its_claim_and_is_provisioned(world: World) -> None:
    await world.create(nodes.make_plain_node("n0"))
    async with provisioner.provisioning(world):
        await world.call("POST", CLASSES, storage_class("made"))
        template = {"spec": claim("any", "made")["spec"]}
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        await world.create(pod("p", volumes=volumes))
        assert await world.bound("p") == ["n0"]

        async def read_phase() -> str:
            found = await world.call("GET", f"{CLAIMS}/p-scratch")
            return str(found["status"]["phase"])

        # The controller writes the claim's volume first, which is all that a bind waits for.
        await world.wait_until(read_phase, lambda phase: phase == "Bound")


@pytest.mark.parametrize(
    "case",
    [*cases_volumes.ALL, a_generic_ephemeral_volume_gets_its_claim_and_is_provisioned],
    ids=lambda case: case.__name__,
)
async def test_volumes(case: Case, server: servers.Server, operator: Operator) -> None:  # noqa: F811
    async with enter(server, operator) as world:
        await case(world)
