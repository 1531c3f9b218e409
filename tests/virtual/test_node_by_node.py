"""A migration node by node: another scheduler has some nodes, and what it does on ours is charged and told."""

import pytest

from scheduler.api import names
from tests import make, slices
from tests.model.server import Json
from tests.virtual import climate
from tests.virtual.conftest import Make
from tests.virtual.test_interleavings import led
from tests.virtual.test_node_locks import FOREIGN, NODE, create, with_node, write_lock
from tests.virtual.world import World

pytestmark = pytest.mark.many

SEEDS = slices.pick_part(range(8))
BY_LABEL = climate.quiet(nodes=0, foreign_nodes="scheduler=hami")
NOTES = {
    names.HAMI_NODE: NODE,
    names.HAMI_ALLOCATED: f"{NODE}-GPU-0,NVIDIA,500,0:;",
    names.HAMI_BIND_PHASE: "allocating",
}


def label(world: World, owner: str) -> None:
    def edit(node: Json) -> None:
        node["metadata"]["labels"] = {"scheduler": owner} if owner else {}

    world.server.change("nodes", "", NODE, edit)


def bind_theirs(world: World, name: str, **notes: str) -> None:
    """A pod that the other scheduler has placed on the node."""
    pod = make.pod(
        name=name, node=NODE, scheduler_name=FOREIGN, annotations=NOTES | notes, gpu=1, gpumem=500, phase="Pending"
    )  # fmt: skip
    world.server.create("pods", make.raw(pod))


def told(world: World) -> dict[str, int]:
    """How many foreign writes of each kind the present leader has counted."""
    leader = world.leader()
    assert leader is not None
    family = leader.parts._tally._metrics.foreign_writes.collect()
    return {
        one.labels["kind"]: int(one.value) for one in family.samples if one.name.endswith("_total")
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_changes_its_owner_takes_or_refuses_pods_at_once(
    make_world: Make, seed: int
) -> None:
    world = make_world(seed, BY_LABEL)
    bound = with_node(world, is_silent=False)
    label(world, "hami")
    led(world)
    create(world, "first")
    world.run(30.0)
    assert bound == []
    label(world, "")
    world.run(3.0)
    assert bound == ["first"]
    label(world, "hami")
    world.run(1.0)
    create(world, "second")
    world.run(30.0)
    assert bound == ["first"]
    label(world, "evenkeel")
    world.run(3.0)
    assert bound == ["first", "second"]


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_pods_that_wait_for_their_turn_are_taken_back_when_the_node_is_given_away(
    make_world: Make, seed: int
) -> None:
    world = make_world(seed, BY_LABEL)
    bound = with_node(world)
    led(world)
    create(world, "first")
    world.run(2.0)
    create(world, "second")
    world.run(2.0)
    label(world, "hami")
    world.run(2.0)
    world.plugins_answer()
    world.run(10.0)
    assert bound == ["first"]


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_what_another_scheduler_allocates_on_our_node_is_told_once_and_charged(
    make_world: Make, seed: int, *, is_listed: bool
) -> None:
    """Whether the watch delivers it or the first list has it."""
    world = make_world(seed, BY_LABEL)
    with_node(world)
    events = world.events_of("ForeignAllocation")
    if is_listed:
        bind_theirs(world, "theirs-0")
    led(world)
    world.run(2.0)
    for i in range(is_listed, 5):
        bind_theirs(world, f"theirs-{i}")
        world.run(1.0)
    # It ran before, or is served by now: that is no allocation of now.
    bind_theirs(world, "old", **{names.HAMI_BIND_PHASE: names.BIND_SUCCESS})
    world.run(5.0)
    assert told(world) == {"allocation": 5, "lock": 0}
    assert len(events) == 1
    assert f"scheduler {FOREIGN} allocates devices here to default/theirs-0" in events[0]["note"]
    assert events[0]["regarding"]["name"] == NODE
    label(world, "hami")
    world.run(1.0)
    bind_theirs(world, "at-home")
    world.run(5.0)
    assert told(world) == {"allocation": 5, "lock": 0}


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_lock_of_another_scheduler_on_our_node_is_told_and_ours_are_not(
    make_world: Make, seed: int
) -> None:
    world = make_world(seed, BY_LABEL)
    bound = with_node(world, is_silent=False)
    events = world.events_of("ForeignAllocation")
    led(world)
    create(world, "ours")
    world.run(5.0)
    assert bound == ["ours"]
    create(world, "theirs", scheduler_name=FOREIGN)
    write_lock(world, "theirs")
    world.run(5.0)
    write_lock(world, "gone")
    world.run(5.0)
    assert told(world) == {"allocation": 0, "lock": 1}
    (event,) = events
    assert f"scheduler {FOREIGN} has locked the node" in event["note"]


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_a_lock_that_stays_when_a_node_becomes_ours_is_told_then(
    make_world: Make, seed: int
) -> None:
    world = make_world(seed, BY_LABEL)
    with_node(world)
    label(world, "hami")
    led(world)
    create(world, "theirs", scheduler_name=FOREIGN)
    write_lock(world, "theirs")
    world.run(5.0)
    assert told(world) == {"allocation": 0, "lock": 0}
    label(world, "evenkeel")
    world.run(5.0)
    assert told(world) == {"allocation": 0, "lock": 1}


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_without_the_setting_nobody_looks(make_world: Make, seed: int) -> None:
    world = make_world(seed, climate.quiet(nodes=0))
    with_node(world)
    events = world.events_of("ForeignAllocation")
    led(world)
    bind_theirs(world, "theirs")
    world.run(5.0)
    assert events == []
