"""Places where there is little to learn from, or odd figures; and nodes with one card each."""

import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from scheduler.api import wire
from scheduler.kernels import parts
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from tests import make
from tests.oracles import places as twin
from tests.oracles.places import CORES, CPU, MEMORY, MIB, PODS
from tests.unit import places_worlds
from tests.unit.places_worlds import IOPS, Asked, World
from tests.unit.test_places_twin import agrees, near, scored

NOWHERE = "example.com/nowhere"
GIB = 1 << 30
PIB, MEGACORES = 1 << 50, 10**9
SMALL: Asked = {CPU: 1000, MEMORY: GIB}


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def goes(world: World, pod: Asked) -> str:
    """Where a pod goes, without a board and with one alike; tables are numbers."""
    cycle = places_worlds.cycle_of(world.cluster)
    for tables in (cycle.learner.tables.places, cycle.learner.tables.single):
        assert places_worlds.is_finite(tables)
    record = world.see(pod)
    cold = cycle.schedule([record], explain=False).binds
    if cold:
        world.cluster.forget(record.uid)
    cycle.learn(anew=True)
    assert cycle.get_shape(record) is not None
    hot = cycle.schedule([record], explain=False).binds
    if hot:
        world.cluster.forget(record.uid)
    assert cold == hot
    return hot[0].node if hot else ""


@pytest.mark.parametrize(
    "pod",
    [{}, {CPU: 0, MEMORY: 0}, {MEMORY: GIB}, {CPU: 500}, SMALL | {IOPS: 1}, SMALL | {NOWHERE: 1}],
    ids=str,
)
@pytest.mark.parametrize("before", [0, 1, 70])
def test_pods_that_ask_little_or_what_nobody_offers(pod: Asked, before: int) -> None:
    world = World.of([make.node(name="a"), make.node(name="b", allocatable={IOPS: 10})])
    for _ in range(before):
        world.see(pod)
    assert bool(goes(world, pod)) == (NOWHERE not in pod)


def test_a_node_may_lack_a_resource_or_be_in_use_by_more_than_it_has() -> None:
    world = World.of(
        [make.node(name=name, cpu=cpu) for name, cpu in (("a", 0), ("b", 4), ("z", 4))]
    )
    for _ in range(6):
        world.see(SMALL, "b")
    assert world.nodes["b"].free(CPU) == 0
    assert goes(world, SMALL) == "z"
    assert goes(world, {MEMORY: GIB}) in {"a", "z"}


def test_huge_figures_are_figures() -> None:
    cpu, memory = str(MEGACORES // 1000), PIB * 8
    world = World.of([make.node(name=name, cpu=cpu, memory=memory) for name in "ab"])
    for i in range(70):
        world.see({CPU: 1 if i % 2 else MEGACORES // 3, MEMORY: 1 if i % 3 else PIB})
    world.see({CPU: MEGACORES // 2, MEMORY: PIB}, "a")
    cycle = places_worlds.cycle_of(world.cluster)
    for pod in ({CPU: MEGACORES // 3, MEMORY: PIB}, {CPU: 1, MEMORY: 1}, SMALL):
        scored(world, cycle, pod, "spread", cold=False)
        assert goes(world, pod)


def test_a_cluster_with_no_nodes_but_those_with_cards_knows_no_places() -> None:
    world = World.of([make.hami_node(name="a", cards=4)])
    assert goes(world, SMALL) == "a"
    assert not places_worlds.cycle_of(world.cluster).learner.tables.places.resources.size


def test_an_empty_cluster_knows_no_places() -> None:
    assert goes(World.of([]), SMALL) == ""


def test_nodes_that_have_nothing_for_the_most_part() -> None:
    nothing = [make.node(name=name, cpu=0, memory=0, pods=0) for name in "abc"]
    world = World.of([*nothing, make.node(name="z", cpu=0, memory=0, allocatable={IOPS: 10})])
    assert goes(world, {}) == "z"


def test_nodes_that_take_no_pods() -> None:
    assert goes(World.of([make.node(name="a", pods=0)]), SMALL) == ""


def test_shares_asked_where_devices_are_only_counted() -> None:
    world = World.of([make.node(name=f"n{i}", gpus=1) for i in range(10)])
    world.cluster.see_pod(make.pod(gpu=1, gpumem=100))
    assert goes(world, SMALL) != ""


def test_the_card_is_chosen_by_what_is_free_on_the_node_at_hand() -> None:
    cluster = make.cluster(
        nodes=[make.hami_node(name="z", cards=2), *one_card_each(random.Random(1), 18)]
    )
    share: dict[str, Any] = {"gpu": 1, "gpumem": 3000, "gpucores": 20}
    for i in range(60):
        cluster.see_pod(make.pod(name=f"past-{i}", cpu=1, **share))
    cycle = places_worlds.cycle_of(cluster)
    assert cycle.learner.tables.single.resources.size
    record = cluster.see_pod(make.pod(cpu=1, **share))
    assert record is not None
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    world, chosen = cycle.boards.get_world(shape), set()
    for left in (0, 1000), (1000, 0):
        world.scratch.free[:, :2] = left
        parts.choose_cards(world, shape.ask, cluster.nodes.find_row("z"))
        chosen.add(int(world.scratch.picks[0]))
    assert len(chosen) == 1


def one_card_each(rng: random.Random, n: int) -> list[wire.Node]:
    return [
        make.hami_node(
            name=f"n{i:02}", cards=1, cpu=rng.choice((8, 16)), memory=rng.choice(("32Gi", "64Gi"))
        )
        for i in range(n)
    ]


def share(rng: random.Random) -> Asked:
    return {
        CPU: rng.choice((500, 1000, rng.randrange(4000))),
        MEMORY: rng.choice((1, 2, rng.randrange(1, 9))) * GIB,
        CORES: rng.choice((10, 25, 100)),
        MIB: rng.choice((1000, 4000, rng.randrange(1, 9000))),
    }


def see_share(cluster: Cluster, name: str, pod: Asked, node: str = "") -> str:
    notes = {}
    if node in cluster.nodes.rows:
        said = f"{node}-GPU-0,NVIDIA,{pod[MIB]},{pod[CORES]}:;"
        notes = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": said}
    body = make.pod(
        name=name, node=node, cpu=f"{pod[CPU]}m", memory=pod[MEMORY], annotations=notes,
        gpu=1, gpumem=pod[MIB], gpucores=pod[CORES],
    )  # fmt: skip
    record = cluster.see_pod(body)
    assert record is not None
    return record.uid


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("objective", ["", "spread", "pack"])
def test_nodes_with_one_card_each_are_bundles_with_the_card_in_them(
    seed: int, objective: str
) -> None:
    rng = random.Random(seed)
    bodies = one_card_each(rng, rng.randrange(2, 16))
    cluster = make.cluster(nodes=bodies)
    nodes = {node.name: node for node in map(twin.Node.of, map(make.raw, bodies))}
    for node in nodes.values():
        node.there |= {CORES: 100, MIB: make.T4_MIB}
    arrivals = []
    for i in range(rng.choice((3, 40))):
        pod, node = share(rng), nodes[rng.choice(sorted(nodes))]
        there = node.name if node.holds(pod) and pod[CORES] < 100 else ""
        see_share(cluster, f"past-{i}", pod, there)
        arrivals.append(pod)
        if there:
            nodes[there] = node.with_pod({PODS: 1, **pod})
    cycle = places_worlds.cycle_of(cluster)
    tables = places_worlds.told(cluster, cycle.learner.tables.single)
    compare(tables, nodes, arrivals)
    pod = share(rng)
    uid = see_share(cluster, "new", pod)
    record = cluster.pods[uid]
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    wanted = {"": c.NO_OBJECTIVE, "spread": c.SPREAD_NODES, "pack": c.PACK_NODES}[objective]
    prefers = shape.ask.prefers
    shape.ask = shape.ask.replace(
        prefers=prefers.replace(mode=prefers.mode.replace(objective=wanted))
    )
    for name, node in nodes.items():
        row = cluster.nodes.find_row(name)
        if shape.board.part[row] >= 0:
            part = parts.weigh_cards(cycle.boards.get_world(shape), shape.ask, row)
            assert agrees(part, shape.ask, node, pod, tables, objective), (node, pod)


def compare(found: twin.Places, nodes: dict[str, twin.Node], arrivals: list[Asked]) -> None:
    expected = twin.learnt(
        list(nodes.values()), twin.counted(arrivals), [CPU, MEMORY, CORES, MIB], believed=False
    )
    wanted = expected.places
    for r, price in wanted.price.items():
        assert near(found.price[r], price)
        assert near(found.level[r], wanted.level[r])
    assert found.price.keys() == wanted.price.keys()
    told, twins = (sorted(float(one.worth) for one in places.typical) for places in (found, wanted))
    assert np.allclose(told, twins, rtol=1e-7) or len(arrivals) > 28
    assert found.weights == twin.Weights(
        step=30.0, full=1.0, part=0.5, uneven=12_000.0, square=2_400.0
    )
    assert PODS not in found.price
