"""Claims for extended resources when binds fail, schedulers die and pods make room: none is left, no device is given twice."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.claims import objects
from scheduler.api.door import events
from scheduler.engine.allowance import Unlimited
from tests import make
from tests.operator import devices
from tests.operator.manifests import pod
from tests.unit.extended import RESOURCE, World

Json = dict[str, Any]


@pytest.fixture
def world() -> World:
    return World()


# Binds that come to nothing.


def test_a_bind_that_failed_before_its_claim_was_made_gives_the_devices_back(world: World) -> None:
    world.node("n0")
    world.slice("n0", 1)
    world.pod("a")
    assert world.decide(writes=False) == ["a"]
    world.fail("a")
    world.pod("b", priority=100)
    assert world.decide(writes=False) == ["b"]
    world.fail("b")
    assert world.decide() == ["b"]


def test_a_claim_that_is_left_by_a_dead_scheduler_is_deleted_before_its_pod_is_placed(
    world: World,
) -> None:
    """As in kube-scheduler: whatever it has may not suit the node that the pod goes to."""
    world.node("n0")
    world.slice("n0", 1)
    world.pod("p")
    assert world.decide(writes=False) == ["p"]
    (one,) = world.binds["p"].allotted
    for is_allocated in (False, True):
        later = World()
        later.node("n0")
        later.slice("n0", 1)
        later.binds = world.binds
        later.make_claim("p")
        if is_allocated:
            later.allocate("p", one)
        later.pod("p")
        later.pod("other")
        # Nobody else gets what the claim has already.
        assert later.decide() == ([] if is_allocated else ["other"])
        text = "0/1 nodes are available: cannot schedule extended resource claim."
        assert later.why["p"].startswith(text)
        (free,) = later.freed
        assert free.deletes
        assert free.key == ("default", later.claims["p"]["metadata"]["name"])
        assert free.uid == f"uid-{free.key[1]}"
        later.drop_claim("p")
        assert later.decide() == (["p"] if is_allocated else [])
        if is_allocated:
            assert later.list_devices("p") == ["gpu-0"]


def test_a_claim_that_is_seen_while_its_bind_is_under_way_is_not_deleted(world: World) -> None:
    world.node("n0")
    world.slice("n0", 1)
    world.pod("p")
    assert world.decide(writes=False) == ["p"]
    (one,) = world.binds["p"].allotted
    world.make_claim("p")
    assert world.decide() == []
    world.allocate("p", one)
    assert world.decide() == []
    assert world.freed == []
    # The undo that failed leaves the claim: it goes before the pod is tried again.
    world.fail("p", written=True)
    assert world.decide() == []
    assert [free.deletes for free in world.freed] == [True]
    world.drop_claim("p")
    assert world.decide() == ["p"]


def test_a_pod_that_goes_while_its_bind_is_under_way_keeps_its_devices_until_the_end(
    world: World,
) -> None:
    world.node("n0")
    world.slice("n0", 1)
    world.pod("p")
    assert world.decide(writes=False) == ["p"]
    world.gone("Pod", "uid-p")
    world.pod("q")
    assert world.decide() == []
    world.engine.handle(events.BindFailed("uid-p", "gone", gone=True), world.now)
    assert world.decide() == ["q"]
    assert not world.engine._cluster.claims.extended.entries.keys() - {"uid-q"}


def test_a_scheduler_that_starts_anew_knows_what_pods_have(world: World) -> None:
    world.node("n0")
    world.slice("n0", 2)
    world.pod("a")
    assert world.decide() == ["a"]
    for pods_first in (True, False):
        later = World()
        later.pods, later.claims = world.pods, world.claims
        later.node("n0")
        later.slice("n0", 2)

        def see_pod(later: World = later) -> None:
            later.see(wire.Pod, later.pods["a"])

        def see_claim(later: World = later) -> None:
            later.see(objects.ResourceClaim, later.claims["a"])

        for see in (see_pod, see_claim) if pods_first else (see_claim, see_pod):
            see()
        later.pod("b")
        later.pod("c")
        assert later.decide() == ["b"]
        assert later.list_devices("b") == ["gpu-1"]
        # What the first pod has goes with it in a trial.
        later.pod("urgent", priority=1000)
        later.decide()
        assert later.victims in ([["uid-a"]], [["uid-b"]])


# Preemption, gangs, jobs in queues.


def test_a_pod_takes_the_place_of_one_of_lower_priority_that_has_its_device(world: World) -> None:
    world.node("n0")
    world.slice("n0", 2)
    world.pod("low", priority=1)
    world.pod("high", priority=100)
    assert sorted(world.decide()) == ["high", "low"]
    world.pod("urgent", priority=50)
    assert world.decide() == []
    assert world.victims == [["uid-low"]]
    world.end("low")
    assert world.decide() == ["urgent"]
    assert world.list_devices("urgent") == world.list_devices("low")


def test_a_gang_gets_devices_on_nodes_of_both_kinds_or_waits_as_a_whole(world: World) -> None:
    world.node("plugin", allocatable={RESOURCE: 1})
    world.node("slices")
    world.slice("slices", 1)
    gang = {"podGroupName": "gang"}
    world.engine.handle(events.Seen(make.pod_group("gang", 3)), world.now)
    for i in range(3):
        world.pod(f"p{i}", schedulingGroup=gang)
    assert world.decide() == []
    world.slice("slices", 2)
    assert sorted(world.decide()) == ["p0", "p1", "p2"]
    assert sorted(world.bound.values()) == ["plugin", "slices", "slices"]
    of_class = [name for name, node in world.bound.items() if node == "slices"]
    assert sorted(itertools.chain(*map(world.list_devices, of_class))) == ["gpu-0", "gpu-1"]


def test_a_tenants_names_cannot_stand_for_the_claim_of_a_pod(world: World) -> None:
    """Only a claim with the annotation, whose controller is the pod, is the pod's."""
    world.node("n0")
    world.slice("n0", 2)
    notes = {names.EXTENDED_CLAIM: "true"}
    owners: list[list[Json]] = [
        [],
        [{"kind": "Job", "name": "p", "uid": "uid-p", "controller": True}],
        [{"kind": "Pod", "name": "p", "uid": "uid-p"}],
    ]
    for i, one in enumerate(owners):
        claim = devices.claim(f"c{i}")
        claim["metadata"] |= {"annotations": notes, "ownerReferences": one}
        world.see(objects.ResourceClaim, claim)
    world.pod("p")
    assert world.decide() == ["p"]
    assert world.freed == []


def test_a_replica_that_stands_by_leaves_a_claim_to_the_one_that_decides(world: World) -> None:
    world.node("n0")
    world.slice("n0", 1)
    world.pod("p")
    world.decide(writes=False)
    later = World()
    later.node("n0")
    later.binds = world.binds
    later.make_claim("p")
    later.pod("p")
    assert later.engine.decide(later.now, Unlimited(pods=0)).frees == []
    assert [one.deletes for one in later.engine.decide(later.now, Unlimited()).frees] == [True]
    # Once for each state of the claim.
    assert later.engine.decide(later.now + 100, Unlimited()).frees == []


def test_a_pod_whose_status_names_a_claim_gets_devices_of_the_class_everywhere(
    world: World,
) -> None:
    """A kubelet looks for this claim, and no one can take its name out of the status."""
    world.node("plugin", allocatable={RESOURCE: 4})
    told = {"resourceClaimName": "gone", "requestMappings": [{"containerName": "main"}]}
    world.pods["p"] = pod("p", requests={RESOURCE: "1"})
    world.pods["p"]["status"] = {"extendedResourceClaimStatus": told}
    world.see(wire.Pod, world.pods["p"])
    world.pod("q")
    assert world.decide() == ["q"]
    assert "cannot allocate all claims" in world.why["p"]
    world.node("slices")
    world.slice("slices", 1)
    assert world.decide() == ["p"]
    assert world.bound["p"] == "slices"
    assert world.list_devices("p") == ["gpu-0"]
