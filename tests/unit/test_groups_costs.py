"""Who goes for a group: the GPU-hours that are lost, and which pods of an elastic group."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.api import hami, names
from scheduler.api.cards import CardUse
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.disruption.elastic import SETS_MAX, list_elastic, list_sets
from scheduler.disruption.group_units import list_units
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from tests import make
from tests.unit.test_backfill import BEGIN, write_time

_GANG = "gang.scheduling.koordinator.sh/"


class Place:
    """Nodes with eight GPUs each, pods that run there, and a pod of higher priority that needs all of one node."""

    def __init__(self, *, is_hami: bool = False) -> None:
        self.engine = Engine(Config(), is_shared=False)
        self._is_hami = is_hami
        self._n = 0

    def run(self, hours: float, **said: Any) -> None:
        """Add a node with a pod that has run there for so long."""
        i, self._n = self._n, self._n + 1
        if self._is_hami:
            node = make.hami_node(name=f"n{i}", cards=2, cpu=64)
        else:
            node = make.node(name=f"n{i}", cpu=64, gpus=8)
        self.engine.handle(events.Seen(node), BEGIN)
        annotations = dict(said.pop("annotations", {}))
        if self._is_hami:
            cards = said["gpu"]
            annotations |= hami.make_bind_annotations(
                f"n{i}",
                (tuple(make_use(i, k, said["gpucores"]) for k in range(cards)),),
                1,
            )
        pod = make.pod(name=f"v{i}", node=f"n{i}", annotations=annotations, **said)
        pod.status.start_time = write_time(BEGIN - 3600 * hours)
        self.engine.handle(events.Seen(pod), BEGIN)

    def find_victims(self, *, waits: float = 0.0) -> list[str]:
        """Name the pods that go for a group of one pod that has waited for so many hours."""
        self.engine.handle(events.Seen(make.pod_group("gang", 1, priority=5)), BEGIN)
        asks: dict[str, Any] = (
            {"gpu": 2, "gpucores": 100, "gpumem": 100} if self._is_hami else {"gpu": 8}
        )
        pod = make.member(make.pod(name="m", cpu=64, priority=5, **asks))
        pod.metadata.creation_timestamp = write_time(BEGIN - 3600 * waits)
        self.engine.handle(events.Seen(pod), BEGIN)
        outcome = self.engine.decide(BEGIN, Unlimited())
        return [uid.partition("/")[2] for evict in outcome.evicts for uid in evict.victims]


def make_use(node: int, card: int, cores: int) -> CardUse:
    return CardUse(f"n{node}-GPU-{card}", 100, cores)


def test_hours_count_for_each_gpu_that_is_counted_by_its_node() -> None:
    place = Place()
    place.run(5, cpu=1, gpu=8)
    place.run(6, cpu=1, gpu=1)
    assert place.find_victims() == ["v1"]


def test_a_pod_without_gpus_loses_no_gpu_hours() -> None:
    place = Place()
    place.run(9, cpu=1, gpu=8)
    place.run(10, cpu=1)
    assert place.find_victims() == ["v1"]


def test_hours_are_those_until_the_decision_however_long_the_group_has_waited() -> None:
    place = Place()
    place.run(10, cpu=1, gpu=8)
    place.run(0.1, cpu=1, gpu=8)
    assert place.find_victims(waits=20) == ["v1"]


def test_of_a_shared_card_the_part_counts_that_a_pod_holds() -> None:
    place = Place(is_hami=True)
    place.run(3, cpu=1, gpu=1, gpucores=100, gpumem=100)
    place.run(5, cpu=1, gpu=1, gpucores=50, gpumem=100)
    assert place.find_victims() == ["v1"]


@pytest.mark.parametrize(("said", "victim"), [("30m", "v1"), ("6h", "v0"), ("20h", "v0")])
def test_a_pod_that_saves_its_work_loses_no_more_than_what_came_after(
    said: str, victim: str
) -> None:
    place = Place()
    place.run(5, cpu=1, gpu=8)
    place.run(9, cpu=1, gpu=8, annotations={names.CHECKPOINT: said})
    assert place.find_victims() == [victim]


def test_an_annotation_that_is_no_duration_keeps_the_pod_waiting_with_its_mistake() -> None:
    engine = Engine(Config(), is_shared=False)
    engine.handle(events.Seen(make.node(name="n", cpu=4)), 0.0)
    said = {names.CHECKPOINT: "often"}
    engine.handle(events.Seen(make.pod(name="p", cpu=1, annotations=said)), 0.0)
    (hold,) = engine.decide(0.0, Unlimited()).holds
    assert names.CHECKPOINT in str(hold)


@pytest.mark.parametrize("in_the_way", [0, 3, 19])
@pytest.mark.parametrize(("minimum", "n_victims"), [(2, 1), (19, 1), (20, 20)])
def test_an_elastic_group_loses_the_pod_that_is_in_the_way(
    in_the_way: int, minimum: int, n_victims: int
) -> None:
    engine = Engine(Config(), is_shared=False)
    words = {f"{_GANG}name": "elastic", f"{_GANG}min-available": str(minimum)}
    for i in range(20):
        labels = {"rack": "r1" if i == in_the_way else "r0"}
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4, labels=labels)), 0.0)
        pod = make.pod(name=f"w{i}", cpu=4, node=f"n{i}", annotations=words)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 1, priority=5)), 0.0)
    member = make.pod(name="m", cpu=4, priority=5, node_selector={"rack": "r1"})
    engine.handle(events.Seen(make.member(member)), 0.0)
    victims = [uid for evict in engine.decide(0.0, Unlimited()).evicts for uid in evict.victims]
    assert len(victims) == n_victims
    assert f"default/w{in_the_way}" in victims


def test_a_group_with_ranks_loses_its_last_ranks_or_goes_whole() -> None:
    """The first rank may be the one that all others need."""
    engine = Engine(Config(), is_shared=False)
    for i in range(3):
        labels = {"rack": "r1" if i == 0 else "r0"}
        engine.handle(events.Seen(make.node(name=f"n{i}", cpu=4, labels=labels)), 0.0)
        labels = {"kueue.x-k8s.io/pod-group-name": "ranked", names.KUEUE_INDEX: str(i)}
        words = {names.KUEUE_TOTAL: "3", names.GANG: "2"}
        pod = make.pod(name=f"w{i}", cpu=4, node=f"n{i}", labels=labels, annotations=words)
        engine.handle(events.Seen(pod), 0.0)
    engine.handle(events.Seen(make.pod_group("gang", 1, priority=5)), 0.0)
    member = make.pod(name="m", cpu=4, priority=5, node_selector={"rack": "r1"})
    engine.handle(events.Seen(make.member(member)), 0.0)
    victims = [uid for evict in engine.decide(0.0, Unlimited()).evicts for uid in evict.victims]
    assert sorted(victims) == [f"default/w{i}" for i in range(3)]


@pytest.mark.parametrize(("n_pods", "minimum"), [(3, 1), (40, 33), (400, 393)])
def test_no_more_sets_of_an_elastic_group_are_weighed_than_eight_units_have(
    n_pods: int, minimum: int
) -> None:
    """A group of 40 pods has 10 ** 12 sets of pods."""
    cluster = make.cluster(nodes=[make.node(name="n", cpu=999)])
    words = {f"{_GANG}name": "elastic", f"{_GANG}min-available": str(minimum)}
    for i in range(n_pods):
        cluster.see_pod(make.pod(name=f"w{i}", cpu=1, node="n", annotations=words))
    units = list_units(cluster, cluster.pods.values(), 5)
    sets = list(list_sets(units, list_elastic(cluster, units)))
    assert len(sets) <= SETS_MAX
    gone = [{pod.uid for unit in chosen for pod in unit.pods} for chosen in sets]
    assert {len(one) for one in gone} >= {0, 1, n_pods - minimum if n_pods < 9 else 1}
    assert all(len(one) in {*range(n_pods - minimum + 1), n_pods} for one in gone)
