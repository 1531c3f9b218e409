"""Where scheduler and specification part ways: the smallest case of each, as the specification has it."""

import pytest

from scheduler.api import names
from tests import make, slices
from tests.model.clusters import TAINT, TOLERATION, Kit
from tests.oracles import demand, keel
from tests.unit import test_keel_twin, twin_worlds
from tests.unit.test_demand_twin import WHOLE, asking, one_node, share
from tests.unit.twin_worlds import World

QUARTER, HALF = share(25), share(50)


def test_a_third_of_the_memory_is_the_size_it_was_seen_with() -> None:
    """33 % of 15,360 MiB is charged as 5,068 MiB: less than 330 milli, but no smaller a size."""
    world, pod = one_node(cards=1), asking(share(33, cores=0))
    for _ in range(300):
        world.see(pod)
    tables = twin_worlds.tables(world, twin_worlds.cycle_of(world).learner.tables)
    (cost, _), *_ = keel.judged(world.nodes["node"], pod, tables)
    assert twin_worlds.parts(world, pod, "keel") == {"node": 5 * keel.points(cost)}


def test_keel_agrees_whatever_percents_of_memory_are_asked() -> None:
    seen = test_keel_twin.several(slices.pick_part(range(30)), Kit(even=False), "keel")
    assert seen["share"] > slices.scale_bound(50)


def test_fgd_takes_the_first_card_of_those_with_the_highest_whole_score() -> None:
    """The artifact compares whole scores of a node's cards too: 0 and 17 milli are both 50 points."""
    world = one_node()
    for card, container in (("GPU-0", QUARTER), ("GPU-1", HALF), ("GPU-1", QUARTER)):
        figures = {card: (1, 15360 * container["gpumem_percent"] // 100, container["gpucores"])}
        world.see(asking(container), node="node", charge=figures)
    for _ in range(280):
        world.see(asking(QUARTER))
    for _ in range(20):
        world.see(asking(HALF))
    cycle = twin_worlds.cycle_of(world)
    judge = test_keel_twin.Judge(world, cycle)
    pod = asking(QUARTER)
    choices = judge.choices("fgd", world.nodes["node"], pod)
    assert [(score, list(charge)) for score, charge in choices] == [
        (50, ["GPU-0"]),
        (50, ["GPU-1"]),
    ]
    record = world.cluster.pods[world.see(pod, "fgd")]
    (bind,) = cycle.schedule([record]).binds
    assert list(test_keel_twin.chosen(bind)) == ["GPU-0"]


def test_fgd_counts_a_taint_that_typical_pods_do_not_tolerate() -> None:
    """With a node selector on the typical pod the scheduler counts the taint, without it does not."""
    world = World.of([make.raw(make.hami_node(cpu="16", memory="64Gi", taints=[TAINT]))])
    for _ in range(300):
        world.see(asking(WHOLE))
    pod = asking(WHOLE, tolerations=[TOLERATION])
    # All of the node is a fragment before, nothing after: 100 · sigmoid(1).
    assert twin_worlds.parts(world, pod, "fgd") == {"node": 5 * 1000 * 73}


def test_a_wish_that_a_node_meets_changes_nothing_in_fgds_measure() -> None:
    """Half a GPU on a node without HAMi: a fragment with the wish, none without."""
    found = []
    for nouse in ("", "P100"):
        world = World.of([make.raw(make.node(cpu="16", memory="64Gi", gpus=1))])
        typical = asking(HALF, annotations={names.NOUSE_TYPE: nouse})
        for _ in range(300):
            world.see(typical)
        found.append(twin_worlds.parts(world, asking({"gpu": 1}), "fgd"))
    assert found[0] == found[1]


def test_keel_sees_that_a_card_has_one_sharer_left_though_another_has_the_same_free() -> None:
    """With its last sharer a card is idle no more; its neighbour keeps a quarter."""
    cards = make.cards(count=2, sharers=3, mib=16384)
    world = World.of([make.raw(make.hami_node(cpu="96", memory="256Gi", cards=cards))])
    for card, container in (("GPU-0", QUARTER), ("GPU-0", QUARTER), ("GPU-1", HALF)):
        figures = {card: (1, 16384 * container["gpumem_percent"] // 100, container["gpucores"])}
        world.see(asking(container), node="node", charge=figures)
    for _ in range(300):
        world.see(asking(QUARTER))
    cycle = twin_worlds.cycle_of(world)
    tables = twin_worlds.tables(world, cycle.learner.tables)
    pod = asking(QUARTER)
    cheapest = keel.judged(world.nodes["node"], pod, tables)[0][1]
    assert list(cheapest) == ["GPU-1"]
    (bind,) = cycle.schedule([world.cluster.pods[world.see(pod, "keel")]]).binds
    assert test_keel_twin.chosen(bind) == cheapest


@pytest.mark.parametrize("cores", [50, 100])
def test_a_card_with_fewer_cores_than_are_asked_does_not_host_the_pod(cores: int) -> None:
    """100 percent of cores are asked and 50 are there: more than 1000 milli, not exactly 1000."""
    world = World.of(
        make.raw(make.hami_node(name=name, cpu="16", cards=[make.card(uuid=name, cores=total)]))
        for name, total in (("few", cores), ("full", 100))
    )
    for _ in range(300):
        world.see(asking(WHOLE))
    told = twin_worlds.cycle_of(world).learner.tables.price
    expected = demand.prices(twin_worlds.counts(world)[0], list(world.nodes.values()))
    assert {
        name: float(told[world.cluster.nodes.find_row(name)]) for name in world.nodes
    } == pytest.approx(expected, abs=1e-9)
