"""Sizes of which there are many, when places are judged anew, and which nodes are bundles."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from scheduler.modes import places
from scheduler.modes.places import Pods
from scheduler.modes.plain import PlainPlaces
from scheduler.schema import places as schema
from scheduler.schema.places import Places
from scheduler.state.cluster import Cluster
from tests import make
from tests.unit import places_worlds


def bins(pods: Pods, base: float) -> dict[tuple[float, ...], list[tuple[float, ...]]]:
    """The slow twin: pods whose every amount has the same rounded logarithm, each with its count last."""
    found = defaultdict(list)
    for amounts, count in zip(pods.amounts.tolist(), pods.counts.tolist(), strict=True):
        key = tuple(round(math.log(one) / math.log(base)) if one else -1e9 for one in amounts)
        found[key].append((*amounts, count))
    return found


@pytest.mark.parametrize("most", [3.0, 30.0, 300.0, 30_000.0])
def test_many_sizes_are_bins_to_the_first_base_that_makes_few(most: float) -> None:
    rng = np.random.default_rng(3)
    amounts = np.exp(rng.uniform(0, math.log(most), (500, 2)))
    amounts[::7, 1] = 0
    pods = Pods(amounts, rng.uniform(0.5, 9, 500))
    base = next(one for one in (1.1, 1.2, 1.35, 1.5, 2, 3, 4) if len(bins(pods, one)) <= 128)
    wanted = []
    for members in bins(pods, base).values():
        total = sum(member[-1] for member in members)
        means = [sum(member[r] * member[-1] for member in members) / total for r in range(2)]
        wanted.append((*means, total))
    made = places._bin_pods(pods)
    found = np.column_stack((made.amounts, made.counts))
    assert np.allclose(sorted(found.tolist()), sorted(wanted), rtol=1e-9)


def test_few_sizes_stay_as_they_are() -> None:
    pods = Pods(np.arange(1.0, 129.0).reshape(64, 2), np.ones(64))
    assert places._bin_pods(pods) is pods


def waiting(n: int) -> Cluster:
    """Twelve nodes, and pods that wait to go there."""
    cluster = make.cluster(
        nodes=[make.node(name=f"n{i:02}", cpu=8, memory="32Gi") for i in range(12)]
    )
    for i in range(n):
        cluster.see_pod(make.pod(name=f"pod-{i}", cpu=1, memory="4Gi"))
    return cluster


def bind(cluster: Cluster, i: int) -> str:
    """A pod runs from now on; its uid."""
    bound = make.pod(name=f"pod-{i}", node=f"n{i % 12:02}", cpu=1, memory="4Gi")
    cluster.see_pod(bound)
    return bound.metadata.uid


def test_places_are_judged_anew_when_enough_has_moved_though_nothing_new_came() -> None:
    cluster = waiting(84)
    plain = PlainPlaces(cluster, None)
    assert plain.refresh()
    assert plain.places.weights[schema.USED] > 0
    for i in range(49):
        bind(cluster, i)
    assert not plain.refresh()
    for i in range(49, 84):
        bind(cluster, i)
    assert plain.refresh()
    assert plain.places.weights[schema.USED] == 0
    assert plain.places.weights[schema.REST] > 0


def test_places_are_learnt_anew_when_pods_begin_to_leave() -> None:
    cluster = waiting(300)
    plain = PlainPlaces(cluster, None)
    plain.refresh()
    for i in range(50):
        cluster.drop_pod(bind(cluster, i))
        cluster.see_pod(make.pod(name=f"more-{i}", cpu=1, memory="4Gi"))
    departures = cluster.demand.plain.departures
    assert departures > 0.1
    plain.refresh()
    assert plain._departures == departures


def singles(alone: int, pairs: int, **pod: Any) -> Places:
    """What is known of bundles where so many nodes have one card, and so many two."""
    nodes = [make.hami_node(name=f"a{i}", cards=1, cpu=16) for i in range(alone)]
    nodes += [make.hami_node(name=f"b{i}", cards=2, cpu=16) for i in range(pairs)]
    cluster = make.cluster(nodes=nodes)
    for i in range(9):
        cluster.see_pod(make.pod(name=f"past-{i}", cpu=2, gpu=1, **pod))
    return places_worlds.cycle_of(cluster).learner.tables.single


@pytest.mark.parametrize(
    ("alone", "pairs", "known"), [(1, 0, False), (2, 0, True), (18, 1, True), (17, 1, False)]
)
def test_nodes_are_bundles_where_nine_cards_of_ten_are_alone(
    alone: int, pairs: int, *, known: bool
) -> None:
    assert bool(singles(alone, pairs, gpumem=3000).resources.size) == known


def test_memory_asked_by_percent_is_that_part_of_a_card() -> None:
    by_percent, by_mib = singles(4, 0, gpumem_percent=50), singles(4, 0, gpumem=make.T4_MIB // 2)
    assert schema.OF_MIB in by_mib.resources
    assert np.allclose(by_percent.per, by_mib.per, rtol=1e-3)


def test_of_devices_that_are_only_counted_the_whole_is_what_is_asked() -> None:
    cluster = make.cluster(nodes=[make.node(name=f"n{i}", cpu=16, gpus=1) for i in range(4)])
    for i in range(9):
        cluster.see_pod(make.pod(name=f"past-{i}", cpu=2, gpu=1))
    tables = places_worlds.cycle_of(cluster).learner.tables.single
    (at,) = np.flatnonzero(tables.resources == schema.OF_CORES)
    assert np.isclose(tables.per[at].min(), 1 / 100)
