"""Who goes for groups in cases that are told one by one, and in large searches."""

from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome, Plan
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.engine import Engine
from scheduler.placing.groups.placer import Placer
from scheduler.state import checks
from tests import make

PRIORITY = 5
_GANG = "gang.scheduling.koordinator.sh/"


def test_among_many_nodes_the_free_and_the_cheapest_are_taken() -> None:
    """Nobody goes in vain: three nodes are free, so of twelve pods the two of the lowest priority go."""
    engine = Engine(Config())
    for i in range(15):
        engine.handle(events.Seen(make.node(name=f"n{i:02}", cpu=4)), 0.0)
    for i in range(12):
        # The free nodes come last by name, the cheap ones in between.
        priority = (7 * i) % 12
        pod = make.pod(name=f"u{priority}", cpu=4, node=f"n{i:02}", priority=priority)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 5, priority=100)), 0.0)
    for i in range(5):
        pod = make.member(make.pod(name=f"m{i}", cpu=4, priority=100))
        engine.handle(events.Seen(pod), 0.0)
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    assert sorted(evict.victims) == ["default/u0", "default/u1"]


def _make_racks(n_racks: int) -> Engine:
    """Racks of two nodes, each node full of pods; the pods of the last rack but one have the lowest priority."""
    engine = Engine(Config())
    for i in range(2 * n_racks):
        rack = i // 2
        engine.handle(
            events.Seen(make.node(name=f"n{i:02}", cpu=64, labels={"rack": f"r{rack:02}"})), 0.0
        )
        for j in range(64):
            priority = 1 if rack == n_racks - 2 else 2
            pod = make.pod(name=f"p{i}-{j}", cpu=1, node=f"n{i:02}", priority=priority)
            engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2, topology="rack", priority=PRIORITY)), 0.0)
    for i in range(2):
        pod = make.pod(name=f"m{i}", cpu=64, priority=PRIORITY)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    return engine


def _decide_in_pieces(engine: Engine, limit: int = 100) -> tuple[int, Outcome]:
    """How many calls it takes until somebody goes, with the outcome of the last one."""
    for n in range(1, limit):
        outcome = engine.decide(0.0, SpentAllowance(64, (0, 9, 1)))
        if outcome.evicts:
            return n, outcome
    raise AssertionError("nobody goes")


def test_a_large_search_is_done_in_pieces_between_which_others_are_served() -> None:
    engine = _make_racks(12)
    n_calls, outcome = _decide_in_pieces(engine)
    assert n_calls >= 6
    (evict,) = outcome.evicts
    assert {uid.partition("-")[0] for uid in evict.victims} == {"default/p20", "default/p21"}
    checks.verify(engine._cluster)


def test_a_place_that_became_free_while_the_search_went_on_is_taken() -> None:
    engine = _make_racks(12)
    for _ in range(4):
        assert not engine.decide(0.0, SpentAllowance(64, (0, 9, 1))).evicts
    # The rack that is looked at first is free by now.
    for i in range(2):
        for j in range(64):
            engine.handle(events.Gone("Pod", f"default/p{i}-{j}"), 0.0)
    outcome = engine.decide(0.0, SpentAllowance(64, (0, 9, 1)))
    assert {bind.node for bind in outcome.binds} == {"n00", "n01"}
    checks.verify(engine._cluster)


def test_two_large_searches_go_on_side_by_side() -> None:
    engine = _make_racks(12)
    other = make.pod_group("other", 2, topology="rack", priority=PRIORITY)
    engine.handle(events.Seen(other), 0.0)
    for i in range(2):
        pod = make.pod(name=f"o{i}", cpu=64, priority=PRIORITY)
        engine.handle(events.Seen(make.member(pod, "other")), 0.0)
    evicted = list(engine.decide(0.0, Unlimited()).evicts)
    assert len(evicted) == 2
    assert not set(evicted[0].victims) & set(evicted[1].victims)
    checks.verify(engine._cluster)


def test_who_goes_for_one_group_is_not_evicted_for_another_as_well() -> None:
    """The two pods of a group that go as a whole make room for two groups."""
    engine = Engine(Config())
    for i in range(2):
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4)), 0.0)
    engine.handle(events.Seen(make.pod_group("low", 2, disruptionMode={"all": {}})), 0.0)
    for i in range(2):
        pod = make.pod(name=f"low{i}", cpu=4, node=f"n{i}")
        engine.handle(events.Seen(make.member(pod, "low")), 0.0)
    for name in ("one", "two"):
        engine.handle(events.Seen(make.pod_group(name, 1, priority=5)), 0.0)
        pod = make.pod(name=name, cpu=4, priority=5)
        engine.handle(events.Seen(make.member(pod, name)), 0.0)
    evicts = engine.decide(0.0, Unlimited()).evicts
    assert sorted(uid for one in evicts for uid in one.victims) == ["default/low0", "default/low1"]
    nominations = engine._cluster.nominations
    assert {nominations.find_node(f"default/{name}") for name in ("one", "two")} == {"n0", "n1"}


def test_sets_of_victims_without_a_pod_that_has_to_go_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All six pods of the only node have to go. So 63 smaller sets are hopeless, as six tries tell."""
    engine = Engine(Config())
    engine.handle(events.Seen(make.node(name="n", cpu=6)), 0.0)
    for i in range(6):
        engine.handle(events.Seen(make.pod(name=f"u{i}", cpu=1, node="n")), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2, priority=PRIORITY)), 0.0)
    for i in range(2):
        member = make.member(make.pod(name=f"m{i}", cpu=3, priority=PRIORITY))
        engine.handle(events.Seen(member), 0.0)
    tries = []
    place = Placer.place

    def count_and_place(*arguments: Any) -> Plan:
        tries.append(arguments)
        return place(*arguments)

    monkeypatch.setattr(Placer, "place", count_and_place)
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    assert len(evict.victims) == 6
    assert len(tries) < 16


@pytest.mark.parametrize("minimum", [0, 1])
def test_room_is_made_for_those_who_are_left_when_the_others_have_theirs(minimum: int) -> None:
    """No change comes that would have the second pod tried again."""
    engine = Engine(Config())
    for name in ("free", "taken"):
        engine.handle(events.Seen(make.node(name=name, cpu=2)), 0.0)
    engine.handle(events.Seen(make.pod(name="low", cpu=2, node="taken")), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", minimum, priority=PRIORITY)), 0.0)
    for i in range(2):
        member = make.member(make.pod(name=f"m{i}", cpu=2, priority=PRIORITY))
        engine.handle(events.Seen(member), 0.0)
    outcome = engine.decide(0.0, Unlimited())
    assert [(bind.uid, bind.node) for bind in outcome.binds] == [("default/m0", "free")]
    assert [evict.victims for evict in outcome.evicts] == [("default/low",)]


def _add_running(
    engine: Engine, name: str, node: str, cpu: int = 4, *, gang: str = "", priority: int = 0
) -> None:
    """A pod on a node; its gang may lose the pods beyond two."""
    notes = {f"{_GANG}name": gang, f"{_GANG}min-available": "2"} if gang else {}
    pod = make.pod(name=name, cpu=cpu, node=node, priority=priority, annotations=notes)
    engine.handle(events.Seen(pod), 0.0)


def _find_victims(engine: Engine, name: str, *hosts: str) -> list[list[str]]:
    """Who goes for a group of which each pod needs one of these nodes by name, in the order of the decisions."""
    group = make.pod_group(name, len(hosts), priority=PRIORITY)
    engine.handle(events.Seen(group), 0.0)
    for host in hosts:
        pod = make.pod(
            name=f"{name}-{host}", cpu=4, priority=PRIORITY, node_selector={"host": host}
        )
        engine.handle(events.Seen(make.member(pod, name)), 0.0)
    evicts = engine.decide(0.0, Unlimited()).evicts
    return [sorted(uid.removeprefix("default/") for uid in one.victims) for one in evicts]


def _make_hosts(n: int) -> Engine:
    engine = Engine(Config())
    for i in range(n):
        node = make.node(name=f"n{i}", cpu=4, labels={"host": f"n{i}"})
        engine.handle(events.Seen(node), 0.0)
    return engine


def test_a_pod_that_is_being_evicted_does_not_stay_in_the_place_of_another() -> None:
    """The gang of two may lose one of its three pods, and loses c. So it cannot lose a alone as well."""
    engine = _make_hosts(3)
    for i, name in enumerate("abc"):
        _add_running(engine, name, f"n{i}", gang="elastic")
    assert _find_victims(engine, "first", "n2") == [["c"]]
    assert _find_victims(engine, "second", "n0") == [["a", "b"]]


@pytest.mark.parametrize("n_others", [10, 80])
def test_the_extra_pod_of_a_gang_that_goes_does_not_stay_elsewhere(n_others: int) -> None:
    """a and b, the minimum, are on the cheapest node; c is on a dear one."""
    engine = _make_hosts(1 + n_others)
    for name in "ab":
        _add_running(engine, name, "n0", 2, gang="elastic")
    _add_running(engine, "c", "n1", 1, gang="elastic")
    for i in range(n_others):
        _add_running(engine, f"dear{i}", f"n{1 + i}", 3, priority=1)
    engine.handle(events.Seen(make.pod_group("gang", 1, priority=PRIORITY)), 0.0)
    member = make.member(make.pod(name="m", cpu=4, priority=PRIORITY))
    engine.handle(events.Seen(member), 0.0)
    (evict,) = engine.decide(0.0, Unlimited()).evicts
    assert sorted(evict.victims) == ["default/a", "default/b", "default/c"]
