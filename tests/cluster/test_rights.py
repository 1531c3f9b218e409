"""On a real API server, without rights that it needs: each is named, by the log and by /readyz."""

import asyncio
from typing import Any

from tests.operator import servers
from tests.operator.process import START_SECONDS, Operator
from tests.operator.world import World

Json = dict[str, Any]
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_CLUSTER_ROLES = f"{_RBAC}/clusterroles"
_ROLES = f"{_RBAC}/namespaces/{servers.OPERATOR_NAMESPACE}/roles"
MISSING = (
    "create pods/binding at the cluster scope",
    "patch pods/status at the cluster scope",
    "patch nodes at the cluster scope",
    "create events.events.k8s.io at the cluster scope",
    f"get leases.coordination.k8s.io evenkeel in namespace {servers.OPERATOR_NAMESPACE}",
    f"update leases.coordination.k8s.io evenkeel in namespace {servers.OPERATOR_NAMESPACE}",
    f"watch leases.coordination.k8s.io evenkeel in namespace {servers.OPERATOR_NAMESPACE}",
    f"create leases.coordination.k8s.io in namespace {servers.OPERATOR_NAMESPACE}",
)


async def test_with_the_rights_of_the_manifests_none_is_missing(world: World) -> None:
    operator = await world.start_operator()
    await world.leads(operator)
    assert operator.get("/readyz") == (200, "ok\n")
    assert not operator.said("a right is missing")
    # A machine that is busy may be late with an answer; a refusal would be a right too few.
    unasked = operator.said("rights cannot be checked")
    assert all("Timeout" in line["error"] for line in unasked), unasked


async def test_missing_rights_are_named_and_what_is_mended_is_noticed(world: World) -> None:
    before = [one for path in (_CLUSTER_ROLES, _ROLES) for one in await _ours(world, path)]
    for role in before:
        await _put(world, role, _without(role["rules"]))
    world.rights_in_doubt = True
    operator = Operator(world.server)
    world.operators.append(operator)
    try:
        await world.wait_until(lambda: asyncio.to_thread(operator.find_port), seconds=START_SECONDS)

        async def readyz() -> tuple[int, str]:
            return await asyncio.to_thread(operator.get, "/readyz")

        status, text = await world.wait_until(readyz, lambda found: "pods/binding" in found[1])
        assert status == 503
        assert {f"a right is missing: {right}" for right in MISSING} <= {*text.splitlines()}
        told = [line for line in operator.said("a right is missing") if line["level"] == "error"]
        assert sorted(line["right"] for line in told) == sorted(MISSING)
        counted = [name for name in operator.metrics() if name.startswith("evenkeel_missing_right{")]  # fmt: skip
        assert len(counted) == len(MISSING)
    finally:
        for role in before:
            await _put(world, role, role["rules"])
    await world.wait_until(readyz, lambda found: found[0] == 200, 100.0)
    assert operator.said("no right is missing any more")


async def test_a_kind_that_may_not_be_listed_is_named_before_anything_is_decided(
    world: World,
) -> None:
    """The operator waits for policies and namespaces; the probes say what for."""
    before = await _ours(world, _CLUSTER_ROLES)
    for role in before:
        rules = [one for one in role["rules"] if not {"namespaces", "balancepolicies"} & {*one["resources"]}]  # fmt: skip
        await _put(world, role, rules)
    world.rights_in_doubt = True
    operator = Operator(world.server)
    world.operators.append(operator)

    async def readyz() -> tuple[int, str]:
        return await asyncio.to_thread(operator.get, "/readyz")

    try:
        await world.wait_until(lambda: asyncio.to_thread(operator.find_port), seconds=START_SECONDS)
        named = {"list namespaces at the cluster scope", "list balancepolicies.scheduling.evenkeel.dev at the cluster scope"}  # fmt: skip
        status, _ = await world.wait_until(
            readyz, lambda found: all(f"a right is missing: {one}" in found[1] for one in named)
        )
        assert status == 503
        assert not operator.said("started")
    finally:
        for role in before:
            await _put(world, role, role["rules"])
    await world.wait_until(readyz, lambda found: found[0] == 200, 100.0)
    assert operator.said("started")


async def _ours(world: World, path: str) -> list[Json]:
    return [
        one for one in await world.listed(path) if one["metadata"]["name"].startswith("evenkeel")
    ]


async def _put(world: World, role: Json, rules: list[Json]) -> None:
    name = role["metadata"]["name"]
    path = _ROLES if role["metadata"].get("namespace") else _CLUSTER_ROLES
    await world.call("PATCH", f"{path}/{name}", {"rules": rules})


def _without(rules: list[Json]) -> list[Json]:
    """Without the leases, the events, and every write on pods and nodes."""
    kept = [one for one in rules if not {"leases", "events", "pods/binding", "pods/status"} & {*one["resources"]}]  # fmt: skip
    return [one | {"verbs": [verb for verb in one["verbs"] if verb != "patch"]} if "nodes" in one["resources"] else one for one in kept]  # fmt: skip
