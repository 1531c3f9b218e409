"""Namespace quotas in HAMi's words: who is held, for what, and until when; the ledger is what pods hold."""

from __future__ import annotations

import random
from typing import Any

import pytest

from scheduler.api import steering, wire
from scheduler.api.door import events, notes
from scheduler.api.space_quotas import read_quota
from scheduler.engine.allowance import Unlimited
from scheduler.engine.questions.space_quotas import SpaceQuotaStates
from scheduler.errors import BadInput
from tests import make
from tests.unit.test_device_maps import World, ask, of_nvidia

GPU, MEM, CORES = "limits.nvidia.com/gpu", "limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores"

_UNLIMITED = Unlimited()


def quota(name: str = "q", namespace: str = "default", spec: Any = None, **hard: Any) -> steering.ResourceQuota:  # fmt: skip
    limits = {
        {"gpu": GPU, "mem": MEM, "cores": CORES}.get(key, key): str(n) for key, n in hard.items()
    }
    meta = wire.Meta(name=name, namespace=namespace, uid=f"uid-{name}")
    return steering.ResourceQuota(meta, {"hard": limits, **(spec or {})})


def share(name: str, mem: int = 1000, cards: int = 1, **more: int) -> wire.Pod:
    return ask(name, nvidia_gpu=cards, nvidia_gpumem=mem, **more)


def node(cards: int = 4, name: str = "n", **figures: Any) -> wire.Node:
    return make.hami_node(name=name, cards=make.cards(count=cards, prefix=f"{name}-GPU", **figures))


class Spaces(World):
    """A world whose ledger is compared with the pods after each step."""

    def check(self) -> None:
        assert self.engine._spaces.ledger.find_difference() == ""

    def decide(self) -> dict[str, str]:
        found = super().decide()
        self.check()
        for state in self.engine.ask(SpaceQuotaStates()):
            for one in state.limits:
                assert one.used <= one.hard, state
        return found

    def why(self, name: str) -> str:
        entry = self.engine._pending.find_entry(self.pods[f"default/{name}"].metadata.uid)
        assert entry is not None
        return entry.held.why if entry.held is not None else ""

    def used(self, name: str = "q") -> dict[str, int]:  # type: ignore[override]
        return {
            one.resource: one.used
            for state in self.engine.ask(SpaceQuotaStates())
            for one in state.limits
            if state.quota.name == name
        }

    def gone(self, name: str) -> None:
        self.now += 1
        uid = self.pods.pop(f"default/{name}").metadata.uid
        self.engine.handle(events.Gone("Pod", uid), self.now)


def test_a_batch_of_like_pods_gets_what_the_quota_allows_and_the_rest_waits_for_room() -> None:
    world = Spaces()
    world.see(node(), quota(mem=3500), *(share(f"p{i}") for i in range(5)))
    assert [*world.decide()] == ["p0", "p1", "p2"]
    assert world.why("p3") == (
        f"exceeded quota: q, requested: {MEM}=1000, used: {MEM}=3000, limited: {MEM}=3500"
    )
    assert world.decide() == {}
    world.gone("p1")
    assert [*world.decide()] == ["p3"]
    world.see(quota(mem=99999))
    assert [*world.decide()] == ["p4"]


def test_the_reason_is_told_once_and_not_with_every_pod_that_comes() -> None:
    world = Spaces()
    world.see(node(), quota(mem=1500), share("a"), share("b"))
    world.now += 1
    outcome = world.engine.decide(world.now, _UNLIMITED)
    told = [one for one in outcome.notes if isinstance(one, notes.HeldByQueue)]
    assert [(one.reason, one.group) for one in told] == [("NamespaceQuota", None)]
    world.gone("a")
    world.see(share("c"))
    outcome = world.engine.decide(world.now + 60, _UNLIMITED)
    assert [bind.uid for bind in outcome.binds] == ["default/b"]


@pytest.mark.parametrize("hard", [{"gpu": 0}, {"mem": 0}, {"cores": 0}])
def test_zero_means_zero(hard: dict[str, int]) -> None:
    """In HAMi before 2.10 it meant no limit, and its percentages count for nothing in the webhook."""
    world = Spaces()
    world.see(node(), quota("q", "default", None, **hard), ask("whole", nvidia_gpu=1))
    world.see(ask("part", nvidia_gpu=1, nvidia_gpumem_percentage=10, nvidia_gpucores=5))
    world.see(make.pod(name="plain", cpu=1))
    assert [*world.decide()] == ["plain"]
    assert world.why("whole")
    assert world.why("part")


def test_several_quotas_of_a_namespace_all_hold() -> None:
    """In HAMi the one that was seen last replaces the others."""
    world = Spaces()
    world.see(node(), quota("a", mem=5000), quota("b", gpu=2), quota("c", cores=1000))
    world.see(*(share(f"p{i}") for i in range(4)))
    assert [*world.decide()] == ["p0", "p1"]
    assert "quota: b," in world.why("p2")
    world.engine.handle(events.Gone("ResourceQuota", "default/b"), world.now)
    assert [*world.decide()] == ["p2", "p3"]
    # Others' namespaces are not concerned.
    world.see(quota("zero", "other", gpu=0), share("p4"))
    assert [*world.decide()] == ["p4"]


def test_percentages_count_by_the_card_that_is_chosen_and_only_small_enough_cards_are() -> None:
    world = Spaces()
    half = {"nvidia_gpu": 1, "nvidia_gpumem_percentage": 50}
    world.see(node(1, "big", mib=40000), node(1, "small", mib=16000), quota(mem=18000))
    world.see(ask("a", **half))
    # A half of the large card is more than the quota has.
    assert world.decide() == {"a": "small"}
    assert world.used() == {"nvidia.com/gpumem": 8000}
    world.see(ask("b", **half))
    assert world.decide() == {"b": "small"}
    world.see(ask("c", **half))
    assert world.decide() == {}
    assert (
        "requested: limits.nvidia.com/gpumem=8000, used: limits.nvidia.com/gpumem=16000"
        in world.why("c")
    )
    world.see(quota(mem=40000))
    assert world.decide() == {"c": "big"}
    assert world.used() == {"nvidia.com/gpumem": 36000}


def test_init_containers_count_by_what_they_hold() -> None:
    """HAMi lets such pods beyond their quota: it takes containers for init containers."""
    world = Spaces()
    pod = share("a", 1000, cards=2)
    first = share("x", 6000).spec.containers[0]
    pod.spec.init_containers = [first]
    world.see(node(2), quota(mem=6500), pod)
    placed = world.decide()
    held = world.used()["nvidia.com/gpumem"]
    # 6000 on one card, and 1000 on the other.
    assert (placed, held) == ({}, 0)
    assert world.why("a")
    world.see(quota(mem=7000))
    assert world.decide() == {"a": "n"}
    assert world.used() == {"nvidia.com/gpumem": 7000}


SCOPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "NotTerminating": ({"scopes": ["NotTerminating"]}, {}),
    "Terminating": ({"scopes": ["Terminating"]}, {"active_deadline_seconds": 60}),
    "BestEffort": ({"scopes": ["BestEffort"]}, {}),
    "PriorityClass": (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}},
        {"priority_class_name": "low"},
    ),
    "no PriorityClass": (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("scope", SCOPES)
def test_a_quota_is_about_the_pods_in_its_scopes_and_no_others(scope: str) -> None:
    """HAMi ignores scopes."""
    spec, fields = SCOPES[scope]
    world = Spaces()
    world.see(node(), quota("within", spec=spec, gpu=1))
    for name in ("a", "b"):
        pod = share(name)
        for key, value in fields.items():
            setattr(pod.spec, key, value)
        world.see(pod)
    others: dict[str, dict[str, Any]] = {
        "NotTerminating": {"active_deadline_seconds": 1},
        "Terminating": {},
        "PriorityClass": {"priority_class_name": "high"},
        "no PriorityClass": {"priority_class_name": "high"},
    }
    other = share("other")
    for key, value in others.get(scope, {}).items():
        setattr(other.spec, key, value)
    if scope == "BestEffort":
        assert other.spec.containers[0].resources is not None
        asked = dict(other.spec.containers[0].resources.requests or {}) | {"cpu": "1"}
        other.spec.containers[0].resources = wire.Resources(requests=asked, limits=asked)
    world.see(other)
    assert sorted(world.decide()) == ["a", "other"]
    assert world.why("b")


def test_the_memory_factor_is_that_of_requests_and_quotas_alike() -> None:
    world = Spaces()
    world.see(node(), quota(mem=3), share("a", 2), share("b", 2))
    world.configure(of_nvidia(memoryFactor=1000))
    world.relist(node())
    assert [*world.decide()] == ["a"]
    assert f"requested: {MEM}=2, used: {MEM}=2, limited: {MEM}=3" in world.why("b")
    # What it holds stays, whatever a unit is now.
    world.configure(of_nvidia())
    world.check()
    assert world.used() == {"nvidia.com/gpumem": 2000}


def test_devices_that_are_counted_count_by_their_number() -> None:
    world = Spaces()
    plain = make.node(name="n", allocatable={"amd.com/gpu": 8})
    world.see(plain, quota("q", "default", None, **{"limits.amd.com/gpu": 3}))
    for i in range(4):
        pod = make.pod(name=f"p{i}")
        asked: wire.Quantities = {"amd.com/gpu": 1}
        pod.spec.containers[0].resources = wire.Resources(requests=dict(asked), limits=dict(asked))
        world.see(pod)
    assert len(world.decide()) == 3
    assert world.why("p3")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"hard": {GPU: "many"}}, f"spec.hard[{GPU}]"),
        ({"hard": {MEM: "-1"}}, f"spec.hard[{MEM}]"),
        ({"hard": {MEM: []}}, f"spec.hard[{MEM}]"),
        ({"hard": []}, "spec.hard"),
        ({"hard": {GPU: 1}, "scopes": ["Always"]}, "spec.scopes[0]"),
        ({"hard": {GPU: 1}, "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "~"}]}}, "operator"),
        ({"hard": {GPU: 1}, "scopeSelector": []}, "spec.scopeSelector"),
        ([], "spec"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_and_what_was_allowed_before_stays(spec: Any, field: str) -> None:
    wrong = quota()
    wrong.spec = spec
    with pytest.raises(BadInput, match=r".") as error:
        read_quota(wrong)
    assert field in str(error.value)
    world = Spaces()
    world.see(node(), quota(gpu=1))
    (note,) = world.see(wrong)
    assert isinstance(note, notes.SpaceQuotaRead)
    assert field in note.problem
    world.see(share("a"), share("b"))
    assert [*world.decide()] == ["a"]


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_no_quota_is_exceeded_and_nobody_waits_with_room(seed: int) -> None:
    rng = random.Random(seed)
    world = Spaces()
    world.see(node(3, "big", mib=40000), node(3, "small", mib=16000))
    for i in range(50):
        match rng.choice(["add", "add", "go", "quota", "unquota"]):
            case "add":
                kind = rng.choice(["mib", "percent", "whole", "two"])
                pod = {
                    "mib": share(f"p{i}", rng.choice([1000, 9000])),
                    "percent": ask(
                        f"p{i}", nvidia_gpu=1, nvidia_gpumem_percentage=rng.choice([10, 40])
                    ),
                    "whole": ask(f"p{i}", nvidia_gpu=1),
                    "two": share(f"p{i}", 500, cards=2, nvidia_gpucores=10),
                }[kind]
                if rng.random() < 0.3:
                    pod.spec.init_containers = [
                        share("x", rng.choice([500, 12000])).spec.containers[0]
                    ]
                world.see(pod)
            case "go" if world.pods:
                world.gone(rng.choice([*world.pods]).partition("/")[2])
            case "quota":
                # A quota that is smaller than what is used stops new pods only.
                found = world.engine.ask(SpaceQuotaStates())
                states = {one.quota.name: one for one in found}
                name = rng.choice("ab")
                used = (
                    {one.resource: one.used for one in states[name].limits}
                    if name in states
                    else {}
                )
                least = used.get("nvidia.com/gpumem", 0) if used else 80000
                world.see(quota(name, mem=least + rng.choice([0, 5000, 20000])))
            case "unquota":
                world.engine.handle(
                    events.Gone("ResourceQuota", f"default/{rng.choice('ab')}"), world.now
                )
        there = world.engine.ask(SpaceQuotaStates())
        before = {(s.quota.name, one.resource): one.used for s in there for one in s.limits}
        _decide_within(world, before)
    for space in ("a", "b"):
        world.engine.handle(events.Gone("ResourceQuota", f"default/{space}"), world.now)
    world.engine.decide(world.now + 99, _UNLIMITED)
    assert all(not world.why(pod.metadata.name) for pod in world.pods.values() if not pod.spec.node_name and world.engine._pending.find_entry(pod.metadata.uid))  # fmt: skip


def _decide_within(world: Spaces, before: dict[tuple[str, str], int]) -> None:
    World.decide(world)
    world.check()
    for state in world.engine.ask(SpaceQuotaStates()):
        for one in state.limits:
            had = before.get((state.quota.name, one.resource), 0)
            assert one.used <= max(one.hard, had), state


def test_when_one_goes_as_many_are_tried_again_as_there_is_room_for() -> None:
    world = Spaces()
    world.see(node(), quota(gpu=1), *(share(f"p{i}") for i in range(300)))
    assert len(world.decide()) == 1
    world.gone("p0")
    # One is tried, and no more.
    world.engine._spaces.wake(world.now)
    active = world.engine._pending.list_active()
    assert [pod.name for pod in active] == ["p1"]
