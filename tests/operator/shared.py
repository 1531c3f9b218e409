"""The tests that hold on any server: a module imports these and makes its own ``server`` fixture."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from tests.operator import (
    cases_autoscalers,
    cases_binding,
    cases_claims,
    cases_evictions,
    cases_hami,
    cases_hostile,
    cases_locks,
    cases_mistakes,
    cases_policies,
    cases_preemption,
    cases_profiles,
    cases_replay,
    cases_replicas,
    cases_roles,
    cases_vendors,
    cases_volumes,
    cases_waiting,
    process,
    servers,
)
from tests.operator.world import World, enter

Case = Callable[[World], Awaitable[None]]


@pytest.fixture(scope="module")
def operator(server: servers.Server) -> Iterator[process.Operator]:
    running = process.Operator(server)
    try:
        running.wait_ready()
        yield running
    finally:
        ended = running.stop()
    assert ended.code == 0


@pytest.mark.parametrize(
    "case",
    [
        *cases_binding.ALL,
        *cases_autoscalers.ALL,
        *cases_waiting.ALL,
        *cases_mistakes.ALL,
        *cases_claims.ALL,
        *cases_hami.ALL,
        *cases_hostile.ALL,
        *cases_locks.ALL,
        *cases_policies.ALL,
        *cases_preemption.ALL,
        *cases_evictions.ALL,
        *cases_volumes.ALL,
        *cases_vendors.ALL,
    ],
    ids=lambda case: case.__name__,
)
async def test_operator(case: Case, server: servers.Server, operator: process.Operator) -> None:
    async with enter(server, operator) as world:
        await case(world)


@pytest.fixture
async def world(server: servers.Server) -> AsyncIterator[World]:
    """A world without an operator: the test starts, stops and doubles its own."""
    async with enter(server) as made:
        yield made


@pytest.mark.parametrize(
    "case",
    [
        *cases_replicas.ALL,
        *cases_roles.ALL,
        *cases_locks.ALONE,
        *cases_profiles.ALONE,
        *cases_replay.ALONE,
    ],
    ids=lambda case: case.__name__,
)
async def test_replicas(case: Case, world: World) -> None:
    await case(world)
