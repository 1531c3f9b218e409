"""Namespace quotas: who is tried again and when, and what parts of cards count for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.api import wire
from scheduler.api.door import notes
from scheduler.api.space_quotas import read_quota
from scheduler.cycle.schedule import Cycle
from scheduler.engine.allowance import Unlimited
from scheduler.state.pods import PodRecord
from scheduler.state.space_quotas import SpaceQuotas
from tests import make
from tests.model.mig import make_card
from tests.unit.test_device_maps import ask
from tests.unit.test_space_quotas import Spaces, node, quota, share


def test_who_was_tried_in_vain_is_not_tried_again_before_there_is_more_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    place = Cycle.place_among

    def note(self: Cycle, pod: PodRecord, *given: Any, **more: Any) -> Any:
        tried.append(pod.name)
        return place(self, pod, *given, **more)

    monkeypatch.setattr(Cycle, "place_among", note)
    world = Spaces()
    pod = share("a", 1000, cards=2)
    pod.spec.init_containers = [share("x", 6000).spec.containers[0]]
    world.see(node(2), quota(mem=6500), pod)
    for _ in range(3):
        world.decide()
    assert tried == ["a"]


def test_a_pod_that_fits_the_quota_and_no_node_does_not_block_those_behind_it() -> None:
    world = Spaces()
    world.see(node(2), quota(mem=3000), share("first", 3000))
    assert world.decide() == {"first": "n"}
    nowhere = share("nowhere", 3000)
    nowhere.spec.node_selector = {"zone": "none"}
    world.see(nowhere)
    world.decide()
    world.see(share("b"))
    assert world.decide() == {}
    world.gone("first")
    assert {**world.decide(), **world.decide()} == {"b": "n"}


def test_a_pod_that_takes_more_than_its_least_does_not_block_those_behind_it() -> None:
    world = Spaces()
    world.see(node(4), quota(mem=6500), share("first", 6000))
    assert world.decide() == {"first": "n"}
    pod = share("a", 1000, cards=2)
    pod.spec.init_containers = [share("x", 6000).spec.containers[0]]
    world.see(pod)
    world.decide()
    world.see(share("b"))
    assert world.decide() == {}
    world.gone("first")
    assert {**world.decide(), **world.decide()} == {"b": "n"}
    assert world.why("a")


@pytest.mark.parametrize(
    ("hard", "placed"), [({"mem": 5000}, ["p0"]), ({"cores": 20}, ["p0"]), ({"cores": 0}, [])]
)
def test_parts_of_cards_count_by_what_they_have_and_not_by_what_is_asked(
    hard: dict[str, int], placed: list[str]
) -> None:
    """The smallest part of a MIG card has more memory and cores than these pods ask."""
    world = Spaces()
    card = make.hami_node(name="n", cards=[make_card(f"GPU-{i}", i) for i in range(2)])
    world.see(card, quota("q", "default", None, **hard), *(share(f"p{i}", 1000) for i in range(4)))
    assert [*world.decide()] == placed
    assert [*world.decide()] == []


def test_cores_of_neuron_devices_count_by_their_number() -> None:
    world = Spaces()
    cores = "aws.amazon.com/neuroncore"
    plain = make.node(name="n", allocatable={"aws.amazon.com/neuron": 8, cores: 16})
    world.see(plain, quota("q", "default", None, **{f"limits.{cores}": 4}))
    for i, n in enumerate([1, 2, 1, 1]):
        pod = make.pod(name=f"p{i}")
        asked: wire.Quantities = {cores: n}
        pod.spec.containers[0].resources = wire.Resources(requests=dict(asked), limits=dict(asked))
        world.see(pod)
    assert [*world.decide()] == ["p0", "p1", "p2"]
    assert world.used() == {cores: 4}


def enflame_node() -> wire.Node:
    found = make.node(name="n", allocatable={"enflame.com/drs-gcu": 6})
    told = {
        "devices": [{"index": "0", "minor": "0", "capacity": 6}],
        "profiles": {"1g.8gb": "0", "3g.24gb": "1", "6g.48gb": "2"},
    }
    found.metadata.annotations = {"enflame.com/gcu-drs-capacity": json.dumps(told)}
    return found


def test_parts_of_enflame_cards_count_by_what_they_have() -> None:
    world = Spaces()
    memory = "enflame.com/gcu-memory"
    world.see(enflame_node(), quota("q", "default", None, **{f"limits.{memory}": 30000}))
    for i in range(2):
        pod = make.pod(name=f"p{i}")
        asked: wire.Quantities = {"enflame.com/drs-gcu": 3}
        pod.spec.containers[0].resources = wire.Resources(requests=dict(asked), limits=dict(asked))
        world.see(pod)
    assert [*world.decide()] == ["p0"]
    assert world.used() == {memory: 24 * 1024}


def test_a_group_with_parts_of_enflame_cards_counts_by_the_parts_of_known_models() -> None:
    world = Spaces()
    world.see(
        enflame_node(), quota("q", "default", None, **{"limits.enflame.com/gcu-memory": 9000})
    )
    pod = make.pod(name="g0")
    asked: wire.Quantities = {"enflame.com/drs-gcu": 1}
    pod.spec.containers[0].resources = wire.Resources(requests=dict(asked), limits=dict(asked))
    world.see(make.pod_group(minimum=1), make.member(pod))
    assert world.decide() == {"g0": "n"}


def test_the_largest_cards_are_measured_when_cards_change_and_not_for_each_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[int] = []
    measure = SpaceQuotas._measure_pools

    def note(self: SpaceQuotas, family: int) -> Any:
        measured.append(family)
        return measure(self, family)

    monkeypatch.setattr(SpaceQuotas, "_measure_pools", note)
    world = Spaces()
    world.see(node(), quota(mem=10**6), *(share(f"p{i}", 100) for i in range(20)))
    assert len(world.decide()) == 20
    assert len(measured) == 1
    world.see(quota(mem=30000), node(1, "large", mib=80000), node(1, "n"))
    whole = ask("whole", nvidia_gpu=1)
    whole.spec.node_selector = {"kubernetes.io/hostname": "large"}
    world.see(whole)
    assert world.decide() == {}


def test_a_malformed_member_gives_its_group_no_room() -> None:
    world = Spaces()
    malformed = make.member(share("g9", 99999999999999))
    members = [make.member(share(f"g{i}")) for i in range(4)]
    world.see(node(cards=8), quota(gpu=1), make.pod_group(), *members, malformed)
    for _ in range(3):
        # That no more is used than the quota allows is checked in each step.
        world.decide()


def test_a_quota_of_other_things_may_have_any_scopes() -> None:
    found = quota()
    expressions = [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]
    found.spec = {
        "hard": {"requests.storage": "5Gi"},
        "scopeSelector": {"matchExpressions": expressions},
    }
    assert read_quota(found).hard == ()


@pytest.mark.parametrize("amount", [2**62, "8E", "100E"])
def test_a_very_large_limit_leaves_the_others_in_force(amount: Any) -> None:
    world = Spaces()
    (note,) = world.see(quota(mem=amount, gpu=1))
    assert isinstance(note, notes.SpaceQuotaRead)
    assert note.problem == ""
    world.see(node(), share("a"), ask("b", nvidia_gpu=1, nvidia_gpumem_percentage=10))
    assert [*world.decide()] == ["a"]


def test_who_waits_for_smaller_cards_is_tried_when_they_come() -> None:
    world = Spaces()
    world.see(node(1, "big", mib=40000), quota(mem=18000), ask("a", nvidia_gpu=1))
    assert world.decide() == {}
    assert world.why("a")
    world.see(node(1, "small", mib=16000))
    assert world.decide() == {"a": "small"}


def test_a_limit_below_what_is_used_holds_nobody_who_asks_nothing_of_it() -> None:
    """The room that is left is less than none then. On the large cards the pod would have more memory than is left."""
    world = Spaces()
    first = ask("first", nvidia_gpu=1, nvidia_gpumem_percentage=10, nvidia_gpucores=30)
    world.see(node(), quota(cores=100, mem=5000), first)
    assert [*world.decide()] == ["first"]
    world.see(node(name="large", mib=81_920), quota(cores=10, mem=5000))
    world.see(ask("asks-none", nvidia_gpu=1, nvidia_gpumem_percentage=10))
    world.see(ask("asks", nvidia_gpu=1, nvidia_gpumem_percentage=10, nvidia_gpucores=1))
    decided = world.engine.decide(world.now, Unlimited())
    assert [(bind.uid, bind.node) for bind in decided.binds] == [("default/asks-none", "n")]
    assert world.why("asks").startswith(
        "exceeded quota: q, requested: limits.nvidia.com/gpucores=1"
    )


@pytest.mark.parametrize("beside", ["plain", "counted"])
def test_nodes_that_serve_no_part_of_a_card_do_not_hide_the_quota(beside: str) -> None:
    """Else the pod would be unschedulable, and an autoscaler would add a node for it."""
    world = Spaces()
    other = make.node(name=beside, allocatable={"nvidia.com/gpu": 8} if beside == "counted" else {})
    world.see(node(1, "big", mib=40_000), other, quota(mem=18_000))
    world.see(ask("a", nvidia_gpu=1, nvidia_gpumem_percentage=50))
    assert world.decide() == {}
    assert (
        "requested: limits.nvidia.com/gpumem=20000, used: limits.nvidia.com/gpumem=0"
        in world.why("a")
    )
    world.see(node(1, "small", mib=16_000))
    assert world.decide() == {"a": "small"}


def test_a_whole_card_of_a_node_that_counts_them_is_beyond_no_quota_of_memory() -> None:
    world = Spaces()
    world.see(
        node(1, "big", mib=40_000),
        make.node(name="counted", allocatable={"nvidia.com/gpu": 8}),
        quota(mem=18_000),
    )
    world.see(ask("a", nvidia_gpu=1))
    assert world.decide() == {"a": "counted"}
