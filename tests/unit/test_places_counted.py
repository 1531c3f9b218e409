"""Whose room and whose wishes count where places are learnt, and when they are learnt anew."""

from typing import Any

import numpy as np
import pytest

from scheduler.kernels.modes import rooms
from scheduler.schema import places as schema
from scheduler.schema.places import Places
from scheduler.state.cluster import Cluster
from tests import make
from tests.unit import places_worlds
from tests.unit.places_worlds import IOPS

RARE = "example.com/rare"
GIB = 1 << 30


def cluster_of(*more: Any, pods: int = 40) -> Cluster:
    nodes = [make.node(name=f"n{i}", cpu=16, memory="64Gi") for i in range(6)]
    cluster = make.cluster(nodes=[*nodes, *more])
    for i in range(pods):
        cluster.see_pod(make.pod(name=f"past-{i}", cpu=2, memory="8Gi"))
    return cluster


def learnt(cluster: Cluster) -> Places:
    return places_worlds.cycle_of(cluster).learner.tables.places


def is_same(a: Places, b: Places) -> bool:
    """But for how far the bounds reach: nodes that do not count have bounds, too."""
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("resources", "per", "worth", "price", "level", "value", "cell", "weights")
    )


@pytest.mark.parametrize(
    "more",
    [
        make.node(name="z", cpu=64, memory="256Gi", unschedulable=True),
        make.node(name="z", cpu=64, memory="256Gi", taints=[("dedicated", "ml", "NoSchedule")]),
        make.node(name="z", cpu=9_999, memory="99Ti", taints=[("virtual", "", "NoExecute")]),
    ],
    ids=["cordoned", "tainted", "virtual"],
)
def test_room_that_is_closed_to_most_is_no_room(more: Any) -> None:
    assert is_same(learnt(cluster_of(more)), learnt(cluster_of()))


def test_room_that_is_only_rather_not_taken_is_room() -> None:
    soft = make.node(
        name="z", cpu=64, memory="256Gi", taints=[("rather", "not", "PreferNoSchedule")]
    )
    assert not is_same(learnt(cluster_of(soft)), learnt(cluster_of()))


def test_where_most_nodes_are_for_some_all_count() -> None:
    taints = [("team", "a", "NoSchedule")]
    nodes = [make.node(name=f"t{i}", cpu=64, memory="256Gi", taints=taints) for i in range(8)]
    known = learnt(cluster_of(*nodes))
    assert not is_same(known, learnt(cluster_of()))
    assert known.wide[0] == pytest.approx(1024 / 64_000)


def test_few_who_wait_for_what_hardly_any_node_has_do_not_make_it_all_that_counts() -> None:
    rare = make.node(name="r", cpu=16, memory="64Gi", allocatable={RARE: 2})
    cluster, plain = cluster_of(rare), make.node(name="r", cpu=16, memory="64Gi")
    before = learnt(cluster_of(plain))
    for i in range(12):
        one = {RARE: 1}
        cluster.see_pod(make.pod(name=f"wants-{i}", cpu=2, memory="8Gi", requests=one, limits=one))
    now = learnt(cluster)
    by_row = dict(zip(now.resources.tolist(), now.price.tolist(), strict=True))
    row = cluster.nodes.find_row_asked(RARE)
    assert by_row[row] == 0
    assert [by_row[r] for r in before.resources.tolist()] == pytest.approx(before.price)


def test_a_node_that_grows_is_learnt_at_once_and_bounds_hold_on_it() -> None:
    cluster = cluster_of()
    cycle = places_worlds.cycle_of(cluster)
    assert not cycle.learn()
    cluster.see_node(make.node(name="n0", cpu=64, memory="256Gi"))
    assert cycle.learn()
    assert cycle.learner.tables.places.wide[0] == pytest.approx(1024 / 64_000)
    cluster.see_node(make.node(name="n0", cpu=64, memory="256Gi", images={"a:1": 5}))
    assert not cycle.learn()


def test_tables_know_no_row_that_is_another_resource_by_now() -> None:
    def offering(name: str) -> Any:
        return make.node(name="n0", cpu=16, memory="64Gi", allocatable={name: 8})

    cluster = cluster_of(offering(IOPS), pods=0)
    for i in range(20):
        one = {IOPS: 1}
        cluster.see_pod(make.pod(name=f"i{i}", cpu=1, memory="4Gi", requests=one, limits=one))
    cycle = places_worlds.cycle_of(cluster)
    row = cluster.nodes.find_row_asked(IOPS)
    assert row in cycle.learner.tables.places.resources
    for other in ("example.com/second", "example.com/third"):
        cluster.see_node(make.node(name="n0", cpu=16, memory="64Gi"))
        cluster.see_node(offering(other))
        cycle.learn()
        used = cycle.learner.tables.places.resources.tolist()
        assert cluster.nodes.find_row_asked(other) not in used


def test_noise_in_what_costs_nothing_makes_no_size_new() -> None:
    """Pods that differ only in memory, of which nobody is short, are of one size."""
    nodes = [make.node(name=f"n{i:02}", cpu=64, memory="4Ti") for i in range(20)]
    quiet, noisy = make.cluster(nodes=nodes), make.cluster(nodes=nodes)
    for i in range(100):
        for cluster, mib in ((quiet, 1000), (noisy, 1000 + i)):
            cluster.see_pod(make.pod(name=f"past-{i}", cpu=(2, 4, 8)[i % 3], memory=f"{mib}Mi"))
    for cluster in (quiet, noisy):
        weights = places_worlds.cycle_of(cluster).learner.tables.places.weights
        assert weights[schema.UNEVEN] == 0
        assert weights[schema.PART] == 0


def test_pods_that_fit_nowhere_make_no_size_new() -> None:
    cluster = make.cluster(nodes=[make.node(name="n", cpu=64, memory="256Gi")])
    for i in range(20):
        cluster.see_pod(make.pod(name=f"past-{i}", cpu=2, memory="8Gi"))
        for k in range(9):
            cluster.see_pod(make.pod(name=f"huge-{i}-{k}", cpu=100 + 9 * i + k, memory="1Gi"))
    places_now = places_worlds.cycle_of(cluster).learner.tables.places
    assert places_now.resources.size
    assert places_now.weights[schema.PART] == 0


def test_sizes_that_all_differ_are_new() -> None:
    cluster = make.cluster(
        nodes=[make.node(name=f"n{i}", cpu=64, memory="256Gi") for i in range(9)]
    )
    for i in range(40):
        cluster.see_pod(make.pod(name=f"past-{i}", cpu=f"{1000 + 37 * i}m", memory="2Gi"))
    assert places_worlds.cycle_of(cluster).learner.tables.places.weights[schema.PART] == 0.5


@pytest.mark.parametrize("seed", range(20))
def test_what_nodes_hold_is_what_dividing_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    there = np.floor(rng.uniform(0, 8, (3, 8)))
    amounts = np.floor(rng.uniform(0, 9, (40, 3)))
    amounts[:, 0] = np.maximum(amounts[:, 0], 1)
    amounts[0] = 10
    fits = np.zeros(40, np.bool_)
    rooms.find_fitting(np.ascontiguousarray(there.T), there.max(axis=1), amounts, fits)
    assert fits.tolist() == [any((pod <= node).all() for node in there.T) for pod in amounts]
    assert fits.any()
    assert not fits.all()
    with np.errstate(divide="ignore"):
        per = np.ascontiguousarray(np.where(amounts > 0, 1 / amounts, 0.0).T)
    beyond = np.where(per > 0, 1e-7, schema.ANY)
    held = np.zeros(40)
    rooms.count_rooms(there, per, beyond, held)
    assert held.tolist() == [
        sum(min(int(n // a) for n, a in zip(node, pod, strict=True) if a) for node in there.T)
        for pod in amounts
    ]


def test_a_bundle_knows_only_pods_of_its_family() -> None:
    def single() -> Cluster:
        nodes = [make.hami_node(name=f"n{i:02}", cards=1, cpu=16) for i in range(12)]
        cluster = make.cluster(nodes=nodes)
        for i in range(70):
            cluster.see_pod(make.pod(name=f"past-{i}", cpu=2, gpu=1, gpumem=3000))
        return cluster

    alone, beside = single(), single()
    for i in range(40):
        others = {"amd.com/gpu": 1}
        beside.see_pod(
            make.pod(name=f"amd-{i}", cpu=1, memory="120Gi", requests=others, limits=others)
        )
    known, too = (
        places_worlds.cycle_of(one).learner.get_tables(0).single for one in (alone, beside)
    )
    assert known.resources.size
    assert np.array_equal(known.per, too.per)
    # That others came, too, makes what was seen a little older.
    assert known.worth == pytest.approx(too.worth, rel=0.01)
