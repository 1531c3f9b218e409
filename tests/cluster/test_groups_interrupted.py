"""Gangs on a real API server whose binds or evictions are cut short: soon they are whole, and nothing is left behind."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from scheduler.embedded.agents import nodes
from tests.cluster.test_groups import GROUPS, group
from tests.operator import audit, crds, proxy, servers
from tests.operator.cases_preemption import create_classes
from tests.operator.faults import Fault
from tests.operator.manifests import pod, vgpu
from tests.operator.process import Operator
from tests.operator.proxy import Proxy
from tests.operator.world import PODS, Refused, World

Json = dict[str, Any]
GANG = "gang.scheduling.koordinator.sh/"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_LEASE = ("--lease-seconds", "5")
_N = 4
_serial = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """An API server that knows pod groups."""
    with servers.real(extra_apiserver_flags=crds.FLAGS) as running:
        yield running


class Words(NamedTuple):
    """In which system's words a gang is written, and whether its pods ask for cards.

    Cards go through HAMi's node lock, one pod of a node at a time.
    """

    has_object: bool
    has_cards: bool

    async def create(self, world: World, priority: str = "") -> list[str]:
        """Create a gang of four pods, two of which fill a node; return their names."""
        gang = f"train-{next(_serial)}"
        if self.has_object:
            made = group(gang, _N)
            if priority:
                made["spec"]["priorityClassName"] = priority
            await world.call("POST", GROUPS, made)
        names = [f"{gang}-{i}" for i in range(_N)]
        for name in names:
            await world.create(self.make_member(name, priority))
        return names

    def make_member(self, name: str, priority: str = "") -> Json:
        """Make a pod of the gang whose name its own begins with."""
        gang = name.rpartition("-")[0]
        spec: Json = {"priorityClassName": priority} if priority else {}
        if self.has_object:
            return self.make_pod(name, schedulingGroup={"podGroupName": gang}, **spec)
        notes = {GANG + "name": gang, GANG + "min-available": str(_N)}
        return self.make_pod(name, annotations=notes, **spec)

    def make_pod(self, name: str, **more: Any) -> Json:
        """Make a pod that fills half a node."""
        if self.has_cards:
            return vgpu(name, mem=15_000, **more)
        return pod(name, requests={"cpu": "2"}, **more)

    def make_node(self, name: str) -> Json:
        """Make a node with room for two pods."""
        if self.has_cards:
            return nodes.make_gpu_node(name, cards=2)
        return nodes.make_plain_node(name, cpu="4")


KUBERNETES = Words(has_object=True, has_cards=False)
KOORDINATOR = Words(has_object=False, has_cards=True)
EACH = pytest.mark.parametrize("words", [KUBERNETES, KOORDINATOR], ids=["podgroup", "cards"])


@asynccontextmanager
async def with_nodes(world: World, words: Words) -> AsyncIterator[Proxy]:
    """Two nodes that a gang fills, and a proxy for the operators."""
    await world.create(*(words.make_node(f"n{i}") for i in range(2)))
    async with proxy.before(world.server) as between:
        yield between


async def start(world: World, between: Proxy, name: str) -> Operator:
    operator = Operator(between.server, name=name, args=_LEASE)
    world.operators.append(operator)
    await asyncio.to_thread(operator.wait_ready)
    return operator


def hold_after(between: Proxy, n: int, ending: str) -> None:
    """Pass the first requests on whose path ends so, and hold the others."""
    left = [n]

    def holds(method: str, path: str) -> bool:
        if method != "POST" or not path.endswith(ending):
            return False
        left[0] -= 1
        return left[0] < 0

    between.holds = holds


async def wait_for_bound(world: World, names: list[str], n: int) -> None:
    """Wait until so many of these pods have a node, and no more."""

    async def count() -> int:
        there = {one["metadata"]["name"] for one in await world.pods() if "nodeName" in one["spec"]}
        return len(there.intersection(names))

    await world.wait_until(count, lambda found: found == n)


async def check_nothing_is_left(world: World, rival: str) -> None:
    """No node is locked, no room is promised, no card is given away twice, and the rival does not fit."""
    await world.refused(rival, "0/2 nodes are available")
    await world.wait_until(world.nodes, lambda found: not audit.locked(found))
    found = await world.pods()
    assert not [one for one in found if one["status"].get("nominatedNodeName")]
    assert "nodeName" not in (await world.pod(rival))["spec"]
    assert audit.problems(await world.nodes(), found) == []


@pytest.mark.parametrize("has_standby", [False, True], ids=["restarted", "standby"])
@EACH
async def test_a_gang_whose_leader_was_killed_between_two_binds_is_whole_with_the_next(
    world: World, words: Words, has_standby: bool
) -> None:
    async with with_nodes(world, words) as between, world.agents():
        first = await start(world, between, "first")
        await world.leads(first)
        if has_standby:
            await start(world, between, "second")
        # It is older than the gang.
        rival = words.make_pod("rival", schedulingGates=[{"name": "later"}])
        await world.create(rival)
        hold_after(between, 1, "/binding")
        names = await words.create(world)
        await world.wait_until(between.is_holding)
        await wait_for_bound(world, names, 1)
        first.kill()
        await world.call("PATCH", f"{PODS}/rival", {"spec": {"schedulingGates": None}})
        between.holds = lambda _method, _path: False
        if not has_standby:
            await start(world, between, "third")
        await world.bound(*names, seconds=60.0)
        # What the dead leader had sent is refused: its pods were fenced.
        assert {status for status, _ in await between.let_go()} == {409}
        await check_nothing_is_left(world, "rival")


@EACH
async def test_a_gang_is_whole_soon_after_the_api_server_went_away_between_two_binds(
    world: World, words: Words
) -> None:
    plane = world.server.plane
    assert plane is not None
    async with with_nodes(world, words) as between:
        await world.leads(await start(world, between, "only"))
        hold_after(between, 1, "/binding")
        names = await words.create(world)
        await world.wait_until(between.is_holding)
        await wait_for_bound(world, names, 1)
        await asyncio.to_thread(plane.stop_apiserver)
        await asyncio.sleep(4.0)
        between.holds = lambda _method, _path: False
        world.rights_in_doubt = True
        await asyncio.to_thread(plane.start_apiserver)
        await world.create(words.make_pod("rival"))
        async with world.agents():
            await world.bound(*names, seconds=60.0)
            await check_nothing_is_left(world, "rival")


@EACH
async def test_the_room_of_a_bind_that_goes_wrong_for_long_is_kept_for_its_gang(
    world: World, words: Words
) -> None:
    async with with_nodes(world, words) as between, world.agents():
        operator = await start(world, between, "only")
        await world.leads(operator)
        between.choose_fault = lambda method, path: (
            Fault(status=500) if method == "POST" and path.endswith("-1/binding") else None
        )
        names = await words.create(world)
        # The binder has given up, the pod is to be tried again.
        await world.refused(names[1], "binding failed, trying again", seconds=60.0)
        await world.create(words.make_pod("rival"))
        await world.refused("rival", "0/2 nodes are available")
        between.choose_fault = lambda _method, _path: None
        await world.bound(*names, seconds=60.0)
        await check_nothing_is_left(world, "rival")


@EACH
async def test_a_gang_one_pod_of_which_may_not_be_bound_is_whole_once_it_may(
    world: World, words: Words
) -> None:
    async with with_nodes(world, words) as between, world.agents(), refusing_policy(world):
        operator = await start(world, between, "only")
        await world.leads(operator)
        names = await words.create(world)
        await world.refused(names[1], "it ends so", seconds=60.0)
        await world.create(words.make_pod("rival"))
        await world.refused("rival", "0/2 nodes are available")
        await wait_for_bound(world, names, _N - 1)
        await world.call("DELETE", f"{_POLICIES}/no-ones")
        await world.bound(*names, seconds=60.0)
        await check_nothing_is_left(world, "rival")


@asynccontextmanager
async def refusing_policy(world: World) -> AsyncIterator[None]:
    """A policy by which no pod whose name ends in -1 may be bound."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/binding"],
    }
    check = {"expression": "!object.metadata.name.endsWith('-1')", "message": "it ends so"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [check]}
    await world.call("POST", _POLICIES, {"metadata": {"name": "no-ones"}, "spec": spec})
    bound = {"policyName": "no-ones", "validationActions": ["Deny"]}
    await world.call("POST", f"{_POLICIES[:-3]}ybindings", {
        "metadata": {"name": "no-ones"}, "spec": bound
    })  # fmt: skip
    await world.create(pod("probe-1", schedulerName="nobody"))
    body = {"metadata": {"name": "probe-1"}, "target": {"kind": "Node", "name": "n0"}}

    async def is_refused() -> bool:
        try:
            await world.call("POST", f"{PODS}/probe-1/binding", body, dryRun="All")
        except Refused as refused:
            return "it ends so" in str(refused)
        return False

    await world.wait_until(is_refused)
    await world.delete(f"{PODS}/probe-1")
    # The API server calls it forbidden.
    world.rights_in_doubt = True
    try:
        yield
    finally:
        await world.call("DELETE", f"{_POLICIES[:-3]}ybindings/no-ones")


@EACH
async def test_a_pod_that_comes_for_one_that_was_deleted_before_its_bind_makes_its_gang_whole(
    world: World, words: Words
) -> None:
    async with with_nodes(world, words) as between, world.agents():
        await world.leads(await start(world, between, "only"))
        between.holds = lambda _method, path: path.endswith("-1/binding")
        names = await words.create(world)
        await world.wait_until(between.is_holding)
        await world.delete(f"{PODS}/{names[1]}")
        between.holds = lambda _method, _path: False
        assert {status for status, _ in await between.let_go()} == {404}
        again = f"{names[1]}x"
        await world.create(words.make_member(again))
        await world.bound(names[0], again, *names[2:], seconds=60.0)


@pytest.mark.parametrize("is_gang", [False, True], ids=["pods", "gang"])
@EACH
async def test_a_gang_gets_its_room_although_its_leader_was_killed_between_two_evictions(
    world: World, words: Words, is_gang: bool
) -> None:
    await create_classes(world)
    async with with_nodes(world, words) as between, world.agents():
        first = await start(world, between, "first")
        await world.leads(first)
        await start(world, between, "second")
        low = [f"low-{i}" for i in range(_N)]
        if is_gang:
            low = await words.create(world, "low")
        else:
            await world.create(*(words.make_pod(name, priorityClassName="low") for name in low))
        await world.running(*low)
        hold_after(between, 2, "/eviction")
        names = await words.create(world, "high")
        await world.wait_until(between.is_holding)
        first.kill()
        between.holds = lambda _method, _path: False
        await world.create(words.make_pod("rival", priorityClassName="low"))
        await world.bound(*names, seconds=60.0)
        await between.let_go()
        assert not {one["metadata"]["name"] for one in await world.pods()}.intersection(low)
        await check_nothing_is_left(world, "rival")
