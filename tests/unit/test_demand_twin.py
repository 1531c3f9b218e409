"""What is learnt of the demand against its twin: prices, values, CPU per GPU, typical pods, departures."""

import numpy as np
import pytest

from scheduler.schema import columns as c
from tests import make
from tests.oracles import demand, fleet, hami
from tests.unit import twin_objects, twin_worlds
from tests.unit.twin_worlds import Kit, World

WHOLE = hami.Container(nums=1, percent=100, cores=100)


def one_node(mib: int = 15360, cards: int = 2) -> World:
    """A world of one node with like cards."""
    made = [hami.Card(f"GPU-{i}", i, mem=mib, model="NVIDIA-Tesla T4") for i in range(cards)]
    node = fleet.Node("node", 16000, 64 << 30, made, gpus=10 * cards)
    return World(make.cluster(nodes=[twin_objects.wire_node(node)]), {"node": node})


def asking(container: hami.Container, cpu: int = 0) -> fleet.Pod:
    return fleet.Pod("pod", cpu, gpu=hami.Pod((container,), policy=""))


def wrong(world: World) -> list[str]:
    """What a cycle learns and the twin does not, or the other way round."""
    cycle = twin_worlds.cycle_of(world)
    known, seen = twin_worlds.counts(world)
    nodes = list(world.nodes.values())
    return twin_worlds.wrong(world.cluster, cycle.learner.tables, known, nodes, seen=seen)


@pytest.mark.parametrize("kit", [Kit(even=False), Kit(odd=False, taints=False)])
def test_all_tables_are_the_twins_in_random_clusters(kit: Kit) -> None:
    learnt = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        past = int(rng.choice([0, 400, 500]))
        world = twin_worlds.world(rng, kit, 14, load=10, past=past)
        assert not wrong(world), seed
        learnt += twin_worlds.counts(world)[1]
    assert 20 < learnt < 40


@pytest.mark.parametrize("seed", range(20))
def test_values_are_optimal_whatever_sizes_are_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = one_node(mib=int(rng.choice([15360, 16280, 24576, 81920])))
    sizes = rng.choice(np.arange(9, 100), 6, replace=False).tolist()
    for _ in range(320):
        percent = int(sizes[int(6 * rng.random() ** 2)])
        world.see(asking(hami.Container(nums=1, percent=percent, cores=percent)))
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
        world.see(asking(hami.Container(nums=1, percent=65, cores=65), cpu=3000))
        world.see(fleet.Pod("no-gpu", 100))
    assert twin_worlds.counts(world)[1] == (seen == 60)
    assert not wrong(world)


def test_pods_that_fit_nowhere_raise_no_price_and_do_no_harm() -> None:
    world = one_node()
    for _ in range(200):
        world.see(asking(hami.Container(nums=3, percent=100, cores=100)))
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
