"""Nodes with devices of several families: each is judged as if there were no other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.placement import MODES, Mode, Placement
from scheduler.config import Config
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from tests import make, slices

Rng = np.random.Generator
# Of each node its milli-CPU, cards of HAMi's, whole NVIDIA GPUs where it has none, and AMD's devices.
Sizes = tuple[int, int, int, int]
# Of each pod its family ("card", "amd" or ""), how many devices it asks, percent of each, CPU, and its node.
Asked = tuple[str, int, int, int, str]
FAMILIES = ("card", "amd")


def sizes(rng: Rng) -> Sizes:
    cards = int(rng.choice([0, 1, 4, 8]))
    whole = 0 if cards else int(rng.choice([0, 4]))
    return int(rng.choice([8000, 32000])), cards, whole, int(rng.choice([0, 2, 8]))


def asked(rng: Rng, n_nodes: int) -> Asked:
    family, node = str(rng.choice(["card", "amd", ""])), f"node-{rng.integers(n_nodes)}"
    n = int(rng.choice([1, 1, 2, 4])) if family else 0
    percent = int(rng.choice([25, 50, 100])) if family == "card" and n == 1 else 100
    return (
        family,
        n,
        percent,
        int(rng.choice([500, 1000, 4000])),
        node if rng.random() < 0.3 else "",
    )


def node(name: str, figures: Sizes, families: tuple[str, ...], amd: str) -> Any:
    """A node as it would be if only ``families`` were devices; ``amd`` is the resource that AMD's are asked by."""
    cpu, cards, whole, n_amd = figures
    offered = {amd: n_amd} if n_amd and "amd" in families else {}
    if cards and "card" in families:
        return make.hami_node(name=name, cpu=f"{cpu}m", cards=cards, allocatable=offered)
    n_whole = whole if "card" in families else 0
    more = {names.GPU: n_whole} if n_whole else {}
    return make.node(name=name, cpu=f"{cpu}m", allocatable=offered | more)


def pod(name: str, figures: Asked, families: tuple[str, ...], amd: str) -> Any:
    family, n, percent, cpu, where = figures
    wanted: dict[str, Any] = {}
    if family == "amd" and "amd" in families:
        wanted = {"requests": {amd: n}}
    elif family == "card" and "card" in families:
        wanted = {"gpu": n}
        if percent < 100:
            wanted |= {"gpumem_percent": percent, "gpucores": percent}
    return make.pod(name=name, cpu=f"{cpu}m", node=where, **wanted)


def parts(
    seed: int, families: tuple[str, ...], new: tuple[str, ...], amd: str, mode: Mode
) -> Iterator[dict[str, int]]:
    """What nodes score for new pods of ``new`` in a world of which only ``families`` are devices."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    cluster = Cluster()
    for i in range(n):
        cluster.see_node(node(f"node-{i}", sizes(rng), families, amd))
    for i in range(int(rng.choice([20, 200]))):
        cluster.see_pod(pod(f"seen-{i}", asked(rng, n), families, amd))
    cycle = make.cycle(cluster=cluster, config=Config(placement=Placement(mode=mode)))
    cycle.learn()
    for i in range(30):
        figures = asked(rng, n)
        if figures[0] in new:
            record = cluster.see_pod(pod(f"new-{i}", (*figures[:4], ""), families, amd))
            assert record is not None
            shape = cycle.get_shape(record)
            assert shape is not None
            cycle.boards.refresh(shape)
            yield {name: int(shape.board.part[row]) for name, row in cluster.nodes.rows.items()}


# Modes by which the pods of one family change what nodes score for another, and why.
MIXING = {
    Mode.GPU_CLUSTERING: "pods of all families are counted on a node, by how many devices they ask",
    Mode.FGD: "pods without devices weigh in its fragments, and to a family the pods of others are such",
}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in MIXING])
@settings(
    max_examples=slices.count_examples(25), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_family_is_judged_as_if_there_were_no_other(seed: int, mode: Mode) -> None:
    """Pods of one vendor would be packed by the cards of another, and its demand would set their prices."""
    beside = list(parts(seed, FAMILIES, ("card",), names.AMD_GPU, mode))
    assert beside == list(parts(seed, ("card",), ("card",), names.AMD_GPU, mode))
    beside = list(parts(seed, FAMILIES, ("amd",), names.AMD_GPU, mode))
    # Whole devices are judged alike, whatever the resource is called.
    assert beside == list(parts(seed, ("amd",), ("amd",), names.GPU, mode))


def test_the_worlds_have_both_families_and_pods_that_fit() -> None:
    found = [
        one
        for seed in range(5)
        for one in parts(seed, FAMILIES, FAMILIES, names.AMD_GPU, Mode.KEEL)
    ]
    assert sum(max(one.values()) >= 0 for one in found) > 30
    assert sum(len({part for part in one.values() if part >= 0}) > 1 for one in found) > 20


def test_pods_without_devices_are_judged_by_a_nodes_first_pool() -> None:
    """On a node with AMD's devices alone, CPU is as dear as where there are NVIDIA's."""
    rooms = []
    for resource in (names.GPU, names.AMD_GPU):
        nodes = [
            make.node(name="bare", cpu="16", allocatable={resource: 1}),
            make.node(name="full", cpu="16", allocatable={resource: 8}),
        ]
        cluster = make.cluster(nodes=nodes, pods=[make.pod(name="p", cpu="8")])
        cycle = make.cycle(cluster=cluster)
        cycle.learn()
        (bind,) = cycle.schedule(list(cluster.pods.values())).binds
        rooms.append(bind.node)
    assert rooms == ["bare", "bare"]


def test_a_decision_names_the_driver_whose_cards_it_gives() -> None:
    cluster = make.cluster(
        nodes=[make.hami_node(name="cards"), make.node(name="whole", gpus=1)],
        pods=[
            make.pod(name=node, gpu=1, node_selector={names.HOSTNAME: node})
            for node in ("cards", "whole")
        ],
    )
    cycle = make.cycle(cluster=cluster)
    binds = {bind.node: bind for bind in cycle.schedule(list(cluster.pods.values())).binds}
    assert [one.driver for one in binds["cards"].devices] == ["HAMi"]
    assert binds["whole"].devices == ()


def test_all_pools_of_a_node_are_summed_up() -> None:
    node = make.hami_node(cards=2, allocatable={names.AMD_GPU: 4})
    cluster = make.cluster(nodes=[node])
    nodes, first = cluster.nodes.columns, cluster.registers.list_pools(0).start
    assert list(cluster.registers.list_pools(0)) == [first, first + 1]
    assert nodes.pools.family[first : first + 2].tolist() == [0, 1]
    assert nodes.pools.total[c.CORES, first : first + 2].tolist() == [200, 400]
    assert nodes.pools.managed[first : first + 2].tolist() == [True, False]
    assert nodes.has_gpu[0]
