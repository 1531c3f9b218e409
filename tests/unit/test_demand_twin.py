"""What is learnt of the demand against its twin: prices, values, CPU per GPU, typical pods, departures."""

import random
from typing import Any

import pytest

from scheduler.schema import columns as c
from tests import make
from tests.model.clusters import Json, Kit
from tests.oracles import demand, fleet
from tests.unit import twin_worlds
from tests.unit.twin_worlds import World


def share(percent: int, cores: int | None = None, gpus: int = 1) -> Json:
    """What a container asks: that percent of the memory and of the cores."""
    return {"gpu": gpus, "gpumem_percent": percent, "gpucores": percent if cores is None else cores}


WHOLE = share(100)


def one_node(mib: int = 15360, cards: int = 2) -> World:
    """A world of one node with like cards."""
    made = make.cards(count=cards, mib=mib)
    return World.of([make.raw(make.hami_node(cpu="16", memory="64Gi", cards=made))])


def asking(figures: Json, cpu: int = 0, memory: str = "0", **more: Any) -> fleet.Pod:
    container = make.container(cpu=f"{cpu}m", memory=memory, **figures)
    return fleet.Pod.of(make.raw(make.pod(containers=[container], **more)))


def wrong(world: World) -> list[str]:
    """What a cycle learns and the twin does not, or the other way round."""
    cycle = twin_worlds.cycle_of(world)
    known, seen = twin_worlds.counts(world)
    nodes = list(world.nodes.values())
    return twin_worlds.wrong(world.cluster, cycle.learner.tables, known, nodes, seen=seen)


@pytest.mark.parametrize("kit", [Kit(even=False), Kit(odd=False, taints=0, closed=0)])
def test_all_tables_are_the_twins_in_random_clusters(kit: Kit) -> None:
    learnt = 0
    for seed in range(40):
        rng = random.Random(seed)
        past = rng.choice([0, 400, 500])
        world = twin_worlds.world(rng, kit, 14, load=10, past=past)
        assert not wrong(world), seed
        learnt += twin_worlds.counts(world)[1]
    assert 20 < learnt < 40


@pytest.mark.parametrize("seed", range(20))
def test_values_are_optimal_whatever_sizes_are_asked(seed: int) -> None:
    rng = random.Random(seed)
    world = one_node(mib=rng.choice([15360, 16280, 24576, 81920]))
    sizes = rng.sample(range(9, 100), 6)
    for _ in range(320):
        percent = sizes[int(6 * rng.random() ** 2)]
        world.see(asking(share(percent)))
    assert not wrong(world)


def test_without_shares_no_remainder_is_of_value() -> None:
    world = one_node()
    for _ in range(300):
        world.see(asking(WHOLE, cpu=4000))
    assert not wrong(world)
    tables = twin_worlds.cycle_of(world).learner.tables
    assert not tables.value.any()


@pytest.mark.parametrize("seen", [0, 59, 60])
def test_the_demand_is_assumed_until_60_pods_that_ask_gpus_were_seen(seen: int) -> None:
    world = one_node()
    for _ in range(seen):
        world.see(asking(share(65), cpu=3000))
        world.see(asking({}, cpu=100))
    assert twin_worlds.counts(world)[1] == (seen == 60)
    assert not wrong(world)


def test_pods_that_fit_nowhere_raise_no_price_and_do_no_harm() -> None:
    world = one_node()
    for _ in range(200):
        world.see(asking(share(100, gpus=3)))
        world.see(asking(WHOLE))
    assert not wrong(world)


def test_departures_follow_the_twin_in_steps_of_more_than_a_tenth() -> None:
    world = one_node()
    cycle = make.cycle(cluster=world.cluster)
    cycle.learn()
    pod, used, steps = asking(WHOLE), 0.0, 0
    for i in range(1000):
        uid = world.see(pod, node="elsewhere" if i < 600 else "")
        world.gone(uid, pod)
        cycle.learn()
        told = float(cycle.learner.tables.rates[c.RATE_DEPARTURES])
        mean = demand.departures(world.happened)
        if abs(mean - used) > 0.1:
            used = mean
            steps += 1
        assert told == pytest.approx(used, abs=1e-12)
    assert steps >= 4
