"""Room is made for groups where too many pods may go to try all sets of them."""

from collections.abc import Callable, Sequence

import pytest

from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
from scheduler.disruption.dearest import choose_units
from scheduler.disruption.group_units import Unit
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.placing.groups.placer import Placer
from tests import make, slices
from tests.oracles import making_room, together
from tests.unit import room_worlds
from tests.unit.calls import record_calls
from tests.unit.room_worlds import World

PRIORITY = 5
SELECTOR = wire.LabelSelector(match_labels={"app": "dear"})
# Only their places in the order count.
UNITS = [Unit((), GroupKey("", "", str(i)), is_extra=True) for i in range(12)]


def list_needless(world: World, victims: frozenset[str]) -> list[str]:
    """List the units of which pods go although the group would fit without that."""
    leaving = making_room.list_leaving(world.crowd)
    found = []
    for unit in world.crowd.units:
        mine = {one.pod.name for one in unit.pods} & victims
        left = making_room.list_left(world.crowd, (victims - mine) | leaving)
        if mine and together.place_group(world.group, left).fits:
            found.append(unit.name)
    return found


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(600))))
def test_nobody_goes_in_vain(seed: int) -> None:
    world = room_worlds.make_crowded_world(seed)
    made = room_worlds.make_room(world)
    leaving = making_room.list_leaving(world.crowd)
    if together.place_group(world.group, making_room.list_left(world.crowd, frozenset())).fits:
        assert made.binds
        assert not made.victims
        return
    everybody = frozenset(one.pod.name for unit in world.crowd.units for one in unit.pods)
    if not made.victims:
        allowed = leaving if made.nominates else everybody - _list_important(world)
        left = making_room.list_left(world.crowd, allowed | leaving)
        assert together.place_group(world.group, left).fits == bool(made.nominates)
        return
    left = making_room.list_left(world.crowd, made.victims | leaving)
    assert together.place_group(world.group, left).fits
    assert list_needless(world, made.victims) == []


def _list_important(world: World) -> frozenset[str]:
    """List the pods that do not go, because of their priority."""
    return frozenset(
        one.pod.name
        for unit in world.crowd.units
        if unit.priority >= room_worlds.PRIORITY
        for one in unit.pods
    )


def _make_cluster(n_dear: int, *, is_leaving: bool) -> Engine:
    """Full nodes with dear pods under a budget that lets none go, and the last one with a cheap pod."""
    engine = Engine(Config(), is_shared=False)
    for number in range(n_dear):
        name = f"n{number:02}"
        engine.handle(events.Seen(make.node(name=name, cpu=16, gpus=8)), 0.0)
        dear = make.pod(name=f"dear-{name}", node=name, labels={"app": "dear"}, cpu=8, gpu=8)
        engine.handle(events.Seen(dear), 0.0)
    engine.handle(events.Seen(make.node(name="z", cpu=16, gpus=8)), 0.0)
    cheap = make.pod(name="cheap", node="z", priority=1, cpu=8, gpu=8)
    if is_leaving:
        cheap.metadata.deletion_timestamp = "2026-11-27T20:00:00Z"
    engine.handle(events.Seen(cheap), 0.0)
    engine.handle(events.Seen(make.budget("dear", SELECTOR)), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 2, priority=PRIORITY)), 0.0)
    for name, gpu in (("leader", None), ("worker", 8)):
        pod = make.pod(name=name, cpu=4, gpu=gpu, priority=PRIORITY)
        engine.handle(events.Seen(make.member(pod)), 0.0)
    return engine


@pytest.mark.parametrize("n_dear", [8, 9, 30, 300])
@pytest.mark.parametrize("is_leaving", [False, True])
def test_a_group_of_unlike_pods_spares_budgets_and_takes_room_that_comes_anyway(
    n_dear: int, *, is_leaving: bool
) -> None:
    outcome = _make_cluster(n_dear, is_leaving=is_leaving).decide(0.0, Unlimited())
    victims = [uid for evict in outcome.evicts for uid in evict.victims]
    assert victims == ([] if is_leaving else ["default/cheap"])
    assert {one.node for one in outcome.nominates if one.uid == "default/worker"} == {"z"}


@pytest.mark.parametrize("needed", [(), (0,), (3, 4), (0, 11), (1, 5, 9), tuple(range(12))])
def test_just_those_go_who_have_to(needed: Sequence[int]) -> None:
    gone = choose_units(UNITS, _make_fits(needed), 100)
    assert [UNITS.index(one) for one in gone] == list(needed)


def test_after_some_tries_all_go_that_were_not_judged() -> None:
    assert choose_units(UNITS, _make_fits((2, 7)), 0) == UNITS
    gone = choose_units(UNITS, _make_fits((2, 7)), 5)
    assert set(map(UNITS.index, gone)) >= {2, 7}


def _make_fits(needed: Sequence[int]) -> Callable[[Sequence[Unit]], bool]:
    return lambda gone: {UNITS.index(one) for one in gone} >= set(needed)


def test_pods_that_are_alike_are_not_tried_without_nodes_that_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All nodes but the dearest are too few for the group. So no try may end with fewer victims, however many there are."""
    engine = Engine(Config(), is_shared=False)
    for number in range(40):
        name = f"n{number:02}"
        engine.handle(events.Seen(make.node(name=name, cpu=16, gpus=8)), 0.0)
        pod = make.pod(name=f"low-{number:02}", node=name, priority=number, cpu=8, gpu=8)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 30, priority=100)), 0.0)
    for number in range(30):
        pod = make.member(make.pod(name=f"m{number:02}", cpu=8, gpu=8, priority=100))
        engine.handle(events.Seen(pod), 0.0)
    tries = record_calls(monkeypatch, Placer, "place")
    outcome = engine.decide(0.0, Unlimited())
    victims = {uid for evict in outcome.evicts for uid in evict.victims}
    assert victims == {f"default/low-{number:02}" for number in range(30)}
    # As things are, where all may go, and on the nodes that cost least.
    assert len(tries) <= 3
