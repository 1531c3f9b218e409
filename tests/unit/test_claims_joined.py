"""Pods that share a claim without devices are placed together: one decides, the others join, whoever writes first."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.engine.allowance import Unlimited
from scheduler.state.claims import recount
from tests import make
from tests.operator import devices
from tests.operator.devices import device, device_slice
from tests.unit.test_claims_late_news import World

Json = dict[str, Any]


class SharedWorld(World):
    """Nodes with devices: by name how many."""

    def __init__(self, **numbers: int) -> None:
        super().__init__()
        for node, n in (numbers or {"n0": 2, "n1": 2}).items():
            self.engine.handle(events.Seen(make.node(name=node)), 0.0)
            self.see(objects.ResourceSlice, device_slice(node, [device(f"d{i}") for i in range(n)]))

    def member(self, name: str, *claims: str, cpu: str = "1") -> None:
        pod = make.member(make.pod(name=name, namespace="default", cpu=cpu))
        pod.metadata.uid = f"uid-{name}"
        pod.spec.resource_claims = [
            wire.PodClaim(f"entry-{i}", one) for i, one in enumerate(claims)
        ]
        self.engine.handle(events.Seen(pod), self.now)

    def decide_once(self) -> dict[str, Any]:
        """The binds of one round, by uid."""
        self.now += 1.0
        return {bind.uid: bind for bind in self.engine.decide(self.now, Unlimited()).binds}

    def check(self) -> None:
        assert recount.find_difference(self.engine._cluster.claims) == ""

    @property
    def n_taken(self) -> int:
        return int(self.engine._cluster.claims.table.columns.owners.sum())


@pytest.fixture
def world() -> SharedWorld:
    return SharedWorld()


def test_pods_that_share_a_claim_are_placed_at_once_with_the_same_devices(
    world: SharedWorld,
) -> None:
    world.see(objects.ResourceClaim, devices.claim("c"))
    for name in ("p", "q", "r"):
        world.pod_with(name, "c")
    binds = world.decide_once()
    assert len(binds) == 3
    assert len({bind.node for bind in binds.values()}) == 1
    # Each of them can write all of it.
    (allotted,) = {bind.allotted for bind in binds.values()}
    assert allotted[0].is_new
    assert world.n_taken == 1
    world.check()


def test_a_group_whose_members_share_a_claim_is_placed(world: SharedWorld) -> None:
    world.see(objects.ResourceClaim, devices.claim("c", devices.request(count=2)))
    world.engine.handle(events.Seen(make.pod_group(minimum=3)), 0.0)
    for i in range(3):
        world.member(f"m{i}", "c")
    binds = world.decide_once()
    assert len(binds) == 3
    assert len({bind.node for bind in binds.values()}) == 1
    assert world.n_taken == 2
    world.check()


def test_a_group_with_a_shared_claim_and_claims_of_its_members(world: SharedWorld) -> None:
    for name in ("shared", "c0", "c1"):
        world.see(objects.ResourceClaim, devices.claim(name))
    world.engine.handle(events.Seen(make.pod_group(minimum=2)), 0.0)
    world.member("m0", "shared", "c0")
    world.member("m1", "shared")
    world.member("m2", "c1")
    binds = world.decide_once()
    assert len(binds) == 3
    assert binds["uid-m0"].node == binds["uid-m1"].node
    assert world.n_taken == 3
    world.check()


def test_a_group_whose_shared_claim_suits_no_node_gets_nothing(world: SharedWorld) -> None:
    world.see(objects.ResourceClaim, devices.claim("c", devices.request(count=3)))
    world.engine.handle(events.Seen(make.pod_group(minimum=2)), 0.0)
    for i in range(2):
        world.member(f"m{i}", "c")
    assert world.decide_once() == {}
    assert world.n_taken == 0
    world.check()


@pytest.mark.parametrize("gone", ["uid-p", "uid-q"])
def test_the_devices_stay_with_the_pods_that_are_left(world: SharedWorld, gone: str) -> None:
    """Either of them may write the claim yet."""
    world.see(objects.ResourceClaim, devices.claim("c"))
    world.pod_with("p", "c")
    world.pod_with("q", "c")
    assert len(world.decide_once()) == 2
    world.engine.handle(events.BindFailed(gone, "no"), world.now)
    assert world.n_taken == 1
    world.check()
    world.gone("Pod", gone)
    world.check()
    (left,) = {"uid-p", "uid-q"} - {gone}
    assert world.n_taken == 1
    world.engine.handle(events.BindFailed(left, "no"), world.now)
    world.gone("Pod", left)
    assert world.n_taken == 0
    world.check()


def test_what_one_of_them_writes_counts_once(world: SharedWorld) -> None:
    world.see(objects.ResourceClaim, devices.claim("c"))
    world.pod_with("p", "c")
    world.pod_with("q", "c")
    binds = world.decide_once()
    given = binds["uid-q"].allotted[0].given[0].device
    written = {"allocation": devices.allocation(given.pool, given.name)}
    for users in (["uid-q"], ["uid-q", "uid-p"]):
        reserved = [{"resource": "pods", "name": one, "uid": one} for one in users]
        claim = devices.claim("c") | {"status": {**written, "reservedFor": reserved}}
        claim["metadata"]["resourceVersion"] = str(1 + len(users))
        world.see(objects.ResourceClaim, claim)
        assert world.n_taken == 1
        world.check()


def test_a_group_finds_the_node_on_which_all_fit_that_share_a_claim() -> None:
    """The node that suits the first one best has no room for the second one."""
    world = SharedWorld(n0=1, n1=1)
    world.engine.handle(events.Seen(make.node(name="n0", cpu="1")), 0.0)
    world.engine.handle(events.Seen(make.node(name="n1", cpu="64")), 0.0)
    world.see(objects.ResourceClaim, devices.claim("c"))
    world.engine.handle(events.Seen(make.pod_group(minimum=2)), 0.0)
    for i in range(2):
        world.member(f"m{i}", "c")
    binds = world.decide_once()
    assert {bind.node for bind in binds.values()} == {"n1"}
    assert len(binds) == 2


@pytest.mark.parametrize("counts", [(1, 2), (2, 1)])
def test_a_group_whose_members_want_different_numbers_of_devices(counts: tuple[int, int]) -> None:
    world = SharedWorld(n0=2, n1=1)
    for i, count in enumerate(counts):
        world.see(objects.ResourceClaim, devices.claim(f"c{i}", devices.request(count=count)))
    world.engine.handle(events.Seen(make.pod_group(minimum=2)), 0.0)
    for i in range(2):
        world.member(f"m{i}", f"c{i}")
    assert len(world.decide_once()) == 2
