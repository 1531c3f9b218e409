"""Claims on the embedded cluster when calls are held, or the scheduler is killed: each case has an operator of its own."""

from collections.abc import Iterator

import pytest

from tests.operator import cases_claims_interrupted, cases_extended_interrupted, servers
from tests.operator.shared import Case, world  # noqa: F401 - a fixture
from tests.operator.world import World


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.mark.parametrize(
    "case",
    [*cases_claims_interrupted.ALL, *cases_extended_interrupted.ALL],
    ids=lambda case: case.__name__,
)
async def test_resource_claims_alone(case: Case, world: World) -> None:  # noqa: F811
    await case(world)
