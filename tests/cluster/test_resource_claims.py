"""Claims on a real API server, beside kube-controller-manager's own controller of claims."""

from collections.abc import Iterator

import pytest

from tests.operator import cases_devices, cases_extended_resources, cases_resource_claims, servers
from tests.operator.process import Operator
from tests.operator.shared import Case, operator  # noqa: F401 - a fixture
from tests.operator.world import enter


@pytest.fixture(scope="module")
def server(peers: None) -> Iterator[servers.Server]:  # noqa: ARG001 - builds them
    with servers.real() as running:
        assert running.plane is not None
        running.plane.start_controller_manager(["resourceclaim-controller"])
        yield running


@pytest.mark.parametrize(
    "case",
    [
        *cases_resource_claims.ALL,
        *cases_resource_claims.WITH_CONTROLLER,
        *cases_extended_resources.ALL,
        *cases_extended_resources.WITH_CONTROLLER,
        *cases_devices.ALL,
    ],
    ids=lambda case: case.__name__,
)
async def test_resource_claims(
    case: Case,
    server: servers.Server,
    operator: Operator,  # noqa: F811
) -> None:
    async with enter(server, operator) as made:
        await case(made)
