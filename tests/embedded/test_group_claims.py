"""The operator with claims of PodGroups: one claim for all members, reserved for the group, and free when the group is gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from scheduler.api import kinds
from scheduler.embedded.agents import claims, nodes
from tests.operator import devices, servers
from tests.operator.cases_resource_claims import make_slice
from tests.operator.crds import make_crd
from tests.operator.devices import CLAIMS, TEMPLATES, list_devices
from tests.operator.world import PODS, Refused, World, enter

Json = dict[str, Any]
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KIND = kinds.POD_GROUPS
_GROUPS = f"/apis/{_KIND.api_version}/namespaces/default/{_KIND.plural}"
_ENTRY = {"name": "domain", "resourceClaimTemplateName": "of-group"}


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    with servers.embedded() as running:
        yield running


@pytest.fixture
async def _controller(server: servers.Server) -> AsyncIterator[None]:
    async with claims.run(server.url, token=server.token):
        yield


async def _serve_groups(world: World) -> None:
    await world.call("POST", _CRDS, make_crd(_KIND))

    async def is_served() -> bool:
        with suppress(Refused):
            await world.call("GET", _GROUPS)
            return True
        return False

    await world.wait_until(is_served)


def _make_group(name: str) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [_ENTRY]}
    return {"apiVersion": _KIND.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}  # fmt: skip


def _make_member(name: str, group: str) -> Json:
    made = devices.pod_with(name)
    made["spec"] |= {"schedulingGroup": {"podGroupName": group}, "resourceClaims": [_ENTRY]}
    return made


@pytest.mark.usefixtures("_controller")
async def test_the_claim_of_a_group_is_there_for_all_its_pods_and_goes_with_the_group(
    server: servers.Server,
) -> None:
    async with enter(server) as world:
        await _serve_groups(world)
        await world.start_operator()
        await world.create(nodes.make_plain_node("n0"))
        async with devices.offered(world, make_slice("n0", 1)):
            await world.call("POST", TEMPLATES, devices.template("of-group"))
            group = await world.call("POST", _GROUPS, _make_group("g"))
            await world.create(*(_make_member(name, "g") for name in "abc"))
            assert await world.bound(*"abc") == ["n0"] * 3
            [claim] = await world.listed(CLAIMS)
            [owner] = claim["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("PodGroup", group["metadata"]["uid"])
            assert claim["status"]["reservedFor"] == [
                {
                    "apiGroup": _KIND.group,
                    "resource": _KIND.plural,
                    "name": "g",
                    "uid": group["metadata"]["uid"],
                }
            ]
            assert list_devices(claim) == ["n0/gpu-0"]
            told = (await world.call("GET", f"{_GROUPS}/g"))["status"]["resourceClaimStatuses"]
            assert told == [
                {"name": "domain", "resourceClaimName": claim["metadata"]["name"]},
            ]
            # The devices of a group without pods stay its own until it is gone.
            for name in "abc":
                await world.delete(f"{PODS}/{name}")
            await world.call("POST", _GROUPS, _make_group("h"))
            await world.create(*(_make_member(name, "h") for name in "de"))
            await world.wait_until(lambda: _count_claims(world), lambda n: n == 2)
            await world.delete(f"{_GROUPS}/g")
            assert await world.bound(*"de", seconds=40.0) == ["n0"] * 2


async def _count_claims(world: World) -> int:
    return len(await world.listed(CLAIMS))
