"""What must go on while the main loop is busy, and what the probes say of what a person must mend."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import yaml

from scheduler.documents import writing
from scheduler.embedded.agents import nodes
from tests.operator import servers
from tests.operator.faults import Call, Fault, injected
from tests.operator.manifests import pod
from tests.operator.process import START_SECONDS, Operator
from tests.operator.world import World, enter

_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{servers.OPERATOR_NAMESPACE}/leases"
LEASE = f"{_LEASES}/evenkeel"
# Three renewals beyond the time after which another replica would take the lease.
_RENEWALS = 11


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.fixture
async def world(server: servers.Server) -> AsyncIterator[World]:
    async with enter(server) as made:
        yield made


async def test_the_lease_is_renewed_and_probes_are_answered_while_the_main_loop_is_busy(
    world: World,
) -> None:
    """Else one costly decision would cost leadership, and the liveness probe the process."""
    busy = world.server.folder / "busy"
    busily = (sys.executable, "-m", "tests.operator.busy")
    operator = Operator(world.server, program=busily, env={"BUSY_WHILE": str(busy)})
    world.operators.append(operator)
    await asyncio.to_thread(operator.wait_ready)
    await world.leads(operator)
    holder = (await world.call("GET", LEASE))["spec"]["holderIdentity"]
    busy.touch()
    try:
        operator.be_busy()
        # It takes the metrics' place in the main loop to say that this one is busy.
        assert await asyncio.to_thread(operator.get, "/metrics", 60.0) == (
            503,
            "the loop is busy\n",
        )
        seen = set()

        async def renewed() -> int:
            spec = (await world.call("GET", LEASE))["spec"]
            assert spec["holderIdentity"] == holder
            seen.add(spec["renewTime"])
            return len(seen)

        await world.wait_until(renewed, lambda n: n >= _RENEWALS, 45.0)
        assert await asyncio.to_thread(operator.get, "/livez") == (200, "ok\n")
        assert (await asyncio.to_thread(operator.get, "/metrics", 60.0))[0] == 503
    finally:
        busy.unlink()
    # It leads on as if nothing had been.
    await world.create(nodes.make_plain_node("n0"), pod("p"))
    await world.bound("p")
    assert len(operator.said("leading")) == 1


async def test_a_lease_held_by_a_stranger_is_told(world: World) -> None:
    """Another program with a lease of that name: nobody would schedule, and nobody would know why."""
    spec = {
        "holderIdentity": "somebody-else",
        "leaseDurationSeconds": 3600,
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 1,
    }
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "evenkeel"},
        "spec": spec,
    }
    await _without_lease(world)
    await world.call("POST", _LEASES, body)
    operator = Operator(world.server)
    world.operators.append(operator)
    try:
        await world.wait_until(_started(operator), seconds=START_SECONDS)
        wanted = "the lease is held by somebody-else, which is not a replica of Evenkeel"
        await world.wait_until(_readyz(operator), lambda found: wanted in found[1], 60.0)
        assert _holder(operator) == "other"
        await world.wait_until(_told(operator), lambda told: wanted in told)
    finally:
        await world.call("DELETE", LEASE)
    # When it is gone, so is what was in the way.
    await world.wait_until(_readyz(operator), lambda found: found[0] == 200, 60.0)
    assert _holder(operator) == "self"


async def test_a_standby_beside_a_living_leader_is_ready(world: World) -> None:
    await _without_lease(world)
    leader = await world.start_operator(name="leads")
    await world.leads(leader)
    standby = await world.start_operator(name="stands-by")
    await world.wait_until(lambda: asyncio.to_thread(_holder, standby), lambda h: h == "replica")
    assert standby.get("/readyz") == (200, "ok\n")


async def test_what_is_forbidden_for_long_is_told(world: World) -> None:
    await _without_lease(world)
    stream = 'evenkeel_stream_refused{stream="nodes"}'
    wanted = ("stream nodes cannot be read: 403 ", "the lease cannot be read or written: 403 ")

    def choose(call: Call) -> Fault | None:
        kinds = ("/nodes", "/leases")
        return Fault(status=403) if any(kind in call.path for kind in kinds) else None

    with injected(world.server, choose):
        operator = Operator(world.server)
        world.operators.append(operator)
        await world.wait_until(_started(operator), seconds=START_SECONDS)
        for text in wanted:
            await world.wait_until(_readyz(operator), lambda f, text=text: text in f[1], 60.0)  # type: ignore[misc]
            await world.wait_until(_told(operator), lambda told, text=text: text in told)  # type: ignore[misc]
        assert operator.metrics()[stream] == 1
    await world.wait_until(_readyz(operator), lambda found: found[0] == 200, 60.0)
    assert operator.metrics()[stream] == 0
    # What it was refused here is no mistake of its rights.
    world.rights_in_doubt = True


async def test_what_kopf_watches_and_may_not_be_read_keeps_a_start_back_and_is_named(
    world: World,
) -> None:
    await _without_lease(world)

    def choose(call: Call) -> Fault | None:
        kinds = ("/namespaces", "/balancepolicies")
        return Fault(status=403) if call.path.endswith(kinds) else None

    with injected(world.server, choose):
        operator = Operator(world.server)
        world.operators.append(operator)
        await world.wait_until(_started(operator), seconds=START_SECONDS)
        found = await world.wait_until(
            _readyz(operator), lambda one: " cannot be read: 403" in one[1], 90.0
        )
        assert found[0] != 200
        reasons = found[1].splitlines()
        assert reasons[:2] == ["starting", next(one for one in reasons if "403" in one)], reasons
    await world.wait_until(_readyz(operator), lambda one: one[0] == 200, 60.0)
    world.rights_in_doubt = True


async def test_a_certificate_that_is_not_verified_is_warned_of(world: World) -> None:
    loaded: dict[str, Any] = yaml.safe_load(world.server.kubeconfig.read_text())
    loaded["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path = world.server.folder / "unverified"
    path.write_text(writing.dump(loaded))
    operator = await world.start_operator(lease=False, args=["--kubeconfig", str(path)])
    (line,) = [one for one in operator.said(_UNVERIFIED) if one["level"] == "warning"]
    assert line
    verified = await world.start_operator(lease=False, name="b")
    assert not verified.said(_UNVERIFIED)


_UNVERIFIED = (
    "the API server's certificate is not verified: anyone on the network path can read the token"
)


async def _without_lease(world: World) -> None:
    for one in await world.listed(_LEASES):
        await world.call("DELETE", f"{_LEASES}/{one['metadata']['name']}")


def _started(operator: Operator) -> Callable[[], Awaitable[bool]]:
    return lambda: asyncio.to_thread(operator.find_port)


def _readyz(operator: Operator) -> Callable[[], Awaitable[tuple[int, str]]]:
    return lambda: asyncio.to_thread(operator.get, "/readyz")


def _told(operator: Operator) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        lines = operator.said("not ready")
        assert all(line["level"] == "error" for line in lines)
        return "\n".join(line["reason"] for line in lines)

    return read


def _holder(operator: Operator) -> str:
    metrics = operator.metrics()
    (found,) = [
        name
        for name, figure in metrics.items()
        if name.startswith("evenkeel_lease_holder") and figure
    ]
    return found.split('"')[1]
