"""Room is made for groups at the least cost: a slow twin tries every set of pods that may go."""

from collections import Counter
from dataclasses import replace

import pytest

from tests import slices
from tests.oracles import making_room, together
from tests.oracles.making_room import Cost, Running, Unit
from tests.oracles.making_room import World as Crowd
from tests.oracles.together import WHOLE, Card, Group, Member, Node
from tests.unit import room_worlds
from tests.unit.room_worlds import PRIORITY, RACK, World


def find_cheapest(world: World) -> making_room.Room | None:
    return making_room.make_room(world.group, PRIORITY, world.crowd)


def fits_now(world: World) -> bool:
    nodes = making_room.list_left(world.crowd, frozenset())
    return together.place_group(world.group, nodes).fits


def is_elastic(world: World) -> bool:
    return any(making_room.count_extras(unit) for unit in world.crowd.units)


@pytest.mark.parametrize("seed", slices.pick_part(tuple(range(1500))))
def test_the_pods_that_go_are_those_of_the_twin(seed: int) -> None:
    world = room_worlds.make_world(seed)
    made = room_worlds.make_room(world)
    members = {one.name for one in world.group.members}
    if fits_now(world):
        assert made.binds.keys() == members
        assert not made.victims
        return
    assert not made.binds
    room = find_cheapest(world)
    if room is None:
        assert not made.victims
        assert not made.nominates
        return
    assert made.nominates.keys() == members
    cost = making_room.price(made.victims, world.crowd)
    assert cost[:-1] == room.cost[:-1]
    if not is_elastic(world):
        assert tuple(sorted(made.victims)) == room.victims
        return
    # Of an elastic gang's pods that cost the same, those that come last in its order go.
    assert made.victims in making_room.list_sets(world.crowd, PRIORITY)
    gone = made.victims | making_room.list_leaving(world.crowd)
    assert together.place_group(world.group, making_room.list_left(world.crowd, gone)).fits


@pytest.mark.parametrize("free", [0, 1, 2])
def test_two_pods_of_a_group_do_not_count_on_the_same_free_card(free: int) -> None:
    """Beside each other pod, taken by itself, the card that is free would be enough."""
    ask = Member(name="", requests={"cpu": 1}, cards=1, memory=8000, cores=75)
    node = Node(
        name="n0", free={"cpu": 8}, cards=(Card(memory=16000, sharers=4),) * 3, labels={RACK: "x"}
    )
    taken = [card for card in range(3) if card != free]
    units = tuple(
        Unit(
            name=f"u{at}",
            pods=(
                Running(pod=replace(ask, name=f"u{at}-0"), node="n0", cards=(card,), age=3 - at),
            ),
        )
        for at, card in enumerate(taken)
    )
    members = tuple(replace(ask, name=f"m{i}") for i in range(2))
    world = World(Group(members=members, minimum=2), Crowd(nodes=(node,), units=units))
    assert room_worlds.make_room(world).victims == {"u1-0"}


def drop_figure(cost: Cost, at: int) -> tuple[object, ...]:
    return (*cost[:at], *cost[at + 1 :])


def find_cheapest_without(world: World, at: int) -> Cost:
    """Find the cost of the set that would go if one figure did not count."""
    leaving = making_room.list_leaving(world.crowd)
    costs = [
        making_room.price(gone, world.crowd)
        for gone in making_room.list_sets(world.crowd, PRIORITY)
        if together.place_group(
            world.group, making_room.list_left(world.crowd, gone | leaving)
        ).fits
    ]
    return min(costs, key=lambda cost: drop_figure(cost, at))


def list_features(world: World, victims: tuple[str, ...]) -> list[str]:
    """List what is special about a world in which pods go."""
    pods = [one for unit in world.crowd.units for one in unit.pods]
    gone = [one for one in pods if one.pod.name in victims]
    n_budgets = [sum(one.pod.name in each.pods for each in world.crowd.budgets) for one in gone]
    n_extras = [
        sum(one in gone for one in unit.pods) <= making_room.count_extras(unit)
        for unit in world.crowd.units
        if any(one in gone for one in unit.pods)
    ]
    features = {
        "a pod with plain GPUs goes": any(one.pod.requests.get("gpu") for one in gone),
        "a pod with a part of a card goes": any(0 < one.pod.cores < WHOLE for one in gone),
        "a pod under two budgets goes": max(n_budgets) > 1,
        "extra pods go alone": any(n_extras),
        "the work was saved": any(one.saves is not None and one.saves < one.age for one in gone),
        "a pod is leaving": any(one.is_leaving for one in pods),
        "a pod goes that wants to be apart": any(one.shuns for one in gone),
        "several pods go": len(gone) > 1,
    }
    return [name for name, is_there in features.items() if is_there]


def test_the_worlds_are_of_all_kinds() -> None:
    """Each figure of the cost decides in some worlds, and each feature is there in many."""
    worlds = [room_worlds.make_world(seed) for seed in range(400)]
    rooms = [(world, find_cheapest(world)) for world in worlds]
    n_fit = sum(map(fits_now, worlds))
    assert n_fit > 40
    assert sum(room is None for _, room in rooms) > 80
    # Who is being deleted is enough.
    assert sum(room is not None and not room.victims for _, room in rooms) > n_fit + 5
    made = [(world, room) for world, room in rooms if room is not None and room.victims]
    assert len(made) > 150
    decides = Counter(
        at
        for world, room in made
        for at in range(len(room.cost))
        if find_cheapest_without(world, at)[at] != room.cost[at]
    )
    assert min(decides[at] for at in range(6)) >= 4
    features = Counter(one for world, room in made for one in list_features(world, room.victims))
    assert len(features) == 8
    assert min(features.values()) > 10
