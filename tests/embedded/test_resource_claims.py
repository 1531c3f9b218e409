"""Claims on the embedded cluster, beside its own controller of claims."""

from collections.abc import AsyncIterator, Iterator

import pytest

from scheduler.embedded.agents import claims
from tests.operator import cases_devices, cases_extended_resources, cases_resource_claims, servers
from tests.operator.process import Operator
from tests.operator.shared import Case, operator  # noqa: F401 - a fixture
from tests.operator.world import enter


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.fixture
async def _controller(server: servers.Server) -> AsyncIterator[None]:
    async with claims.run(server.url, token=server.token):
        yield


@pytest.mark.usefixtures("_controller")
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
