"""Claims on a real API server whose calls are held, or whose scheduler is killed: each case has an operator of its own."""

import pytest

from tests.operator import cases_claims_interrupted, cases_extended_interrupted
from tests.operator.shared import Case
from tests.operator.world import World


@pytest.mark.parametrize(
    "case",
    [*cases_claims_interrupted.ALL, *cases_extended_interrupted.ALL],
    ids=lambda case: case.__name__,
)
async def test_resource_claims_alone(case: Case, world: World) -> None:
    await case(world)
