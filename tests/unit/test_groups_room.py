"""Room is made for groups at the least cost: a slow twin tries every set of units that may go."""

import random
from typing import Any

import pytest

from scheduler.api.door import events
from scheduler.api.door.decisions import Outcome
from scheduler.config import Config
from scheduler.engine.allowance import SpentAllowance, Unlimited
from scheduler.engine.engine import Engine
from scheduler.state import checks
from tests import make, slices
from tests.oracles import making_room
from tests.oracles.making_room import Running, Unit
from tests.oracles.making_room import World as Crowd
from tests.oracles.together import Group, Member, Node
from tests.unit.test_groups_placed import make_node

PRIORITY = 5


def make_world(seed: int) -> tuple[Group, Crowd]:
    """A group of up to four members, and up to four nodes with pods and whole groups on them."""
    rng = random.Random(seed)
    nodes = [
        Node(name=f"n{i}", free={"cpu": rng.randint(3, 8)}, labels={"rack": rng.choice("xy")})
        for i in range(rng.randint(1, 4))
    ]
    free = {node.name: node.free["cpu"] for node in nodes}
    units = []
    for u in range(rng.randint(1, 6)):
        pods = []
        for i in range(rng.choice((1, 1, 1, 2, 3))):
            node, cpu = rng.choice(nodes).name, rng.randint(1, 3)
            if free[node] >= cpu:
                free[node] -= cpu
                member = Member(name=f"u{u}-{i}", requests={"cpu": cpu})
                pods.append(Running(pod=member, node=node))
        if pods:
            units.append(Unit(name=f"u{u}", pods=tuple(pods), priority=rng.choice((0, 1, 2, 9))))
    members = tuple(
        Member(name=f"m{i}", requests={"cpu": rng.randint(1, 5)}) for i in range(rng.randint(1, 4))
    )
    group = Group(members=members, minimum=len(members), domain=rng.choice(("", "rack")))
    return group, Crowd(nodes=tuple(nodes), units=tuple(units))


def find_victims(group: Group, crowd: Crowd) -> tuple[str, ...] | None:
    """The units that go for a group by the engine; None if it makes no room, nobody if there is room."""
    engine = Engine(Config())

    def see(found: events.Object) -> None:
        engine.handle(events.Seen(found), 0.0)

    for node in crowd.nodes:
        see(make_node(node))
    for unit in crowd.units:
        is_group = len(unit.pods) > 1
        mode: dict[str, Any] = {"all": {}}
        if is_group:
            see(make.pod_group(unit.name, 1, priority=unit.priority, disruptionMode=mode))
        for one in unit.pods:
            cpu = one.pod.requests["cpu"]
            pod = make.pod(name=one.pod.name, cpu=cpu, node=one.node, priority=unit.priority)
            see(make.member(pod, unit.name) if is_group else pod)
    see(make.pod_group("gang", group.minimum, topology=group.domain, priority=PRIORITY))
    for member in group.members:
        pod = make.pod(name=member.name, cpu=member.requests["cpu"], priority=PRIORITY)
        see(make.member(pod))
    outcome = engine.decide(0.0, Unlimited())
    checks.verify(engine._cluster)
    if outcome.binds:
        return ()
    gone = [uid for evict in outcome.evicts for uid in evict.victims]
    names = {uid.removeprefix("default/").partition("-")[0] for uid in gone}
    # Who goes, goes whole.
    assert len(gone) == sum(len(unit.pods) for unit in crowd.units if unit.name in names)
    return tuple(sorted(names)) if gone else None


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(600))))
def test_the_units_that_go_are_those_of_the_twin(seed: int) -> None:
    group, crowd = make_world(seed)
    room = making_room.make_room(group, PRIORITY, crowd)
    assert find_victims(group, crowd) == (None if room is None else room.victims)


def test_the_worlds_are_of_all_kinds() -> None:
    rooms = [making_room.make_room(*_ask(seed)) for seed in range(100)]
    n_victims = [None if room is None else len(room.victims) for room in rooms]
    assert n_victims.count(None) > 10
    assert n_victims.count(0) > 10
    assert sum(bool(n) for n in n_victims) > 20
    assert any(n is not None and n > 1 for n in n_victims)


def _ask(seed: int) -> tuple[Group, int, Crowd]:
    group, crowd = make_world(seed)
    return group, PRIORITY, crowd


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


def test_a_place_that_became_dear_while_the_search_went_on_is_not_taken() -> None:
    """Between two pieces one pod of the cheapest rack is replaced by one that may not go."""
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
