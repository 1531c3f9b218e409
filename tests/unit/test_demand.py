"""What pods ask: counted once, forgotten slowly, found again after a restart; and how fast they leave."""

from typing import Any

import msgspec
import pytest

from scheduler.api import names, wire
from scheduler.api.door import events
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.kube.lead.memory import DemandNotes
from scheduler.state import demand
from scheduler.state.cluster import Cluster
from scheduler.state.demand import Demand, DemandShape
from tests import make


def gpu_pod(name: str, **more: Any) -> wire.Pod:
    return make.pod(name=name, **{"cpu": 2, "gpu": 1, "gpucores": 30, "gpumem_percent": 30, **more})


HALF_CARD = DemandShape(cpu=2000, cards=1, percent=30, cores=30, family=names.GPU)


def test_a_pod_counts_once_however_often_it_is_seen() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    for _ in range(3):
        cluster.see_pod(gpu_pod("p"))
    cluster.see_pod(gpu_pod("p", node="a"))
    assert cluster.demand.counts() == {HALF_CARD: pytest.approx(1)}
    assert cluster.demand.seen == 1


def test_pods_of_other_schedulers_are_demand_too() -> None:
    cluster = make.cluster(pods=[gpu_pod("p", scheduler_name="default-scheduler", node="a")])
    assert list(cluster.demand.counts()) == [HALF_CARD]


def test_what_is_no_matter_of_placement_does_not_make_another_shape() -> None:
    """A thousand jobs that differ in their labels, images and names ask one thing."""
    first, second = gpu_pod("p", labels={"job": "1"}), gpu_pod("q", labels={"job": "2"})
    second.spec.containers[0].name = "other"
    cluster = make.cluster(pods=[first, second])
    assert cluster.demand.counts() == {HALF_CARD: pytest.approx(2, rel=1e-3)}


def test_where_a_pod_may_go_makes_another_shape() -> None:
    cluster = make.cluster(
        pods=[
            gpu_pod("any"),
            gpu_pod("zone", node_selector={"zone": "a"}),
            gpu_pod("type", annotations={names.USE_TYPE: "t4"}),
            gpu_pod("not", annotations={names.NOUSE_TYPE: "A10"}),
        ]
    )
    found = cluster.demand.counts()
    assert len(found) == 4
    assert {shape.use_types for shape in found} == {(), ("T4",)}
    assert {shape.nouse_types for shape in found} == {(), ("A10",)}


def test_several_containers_ask_their_cards_together() -> None:
    containers = [
        make.container(name="a", gpu=1, gpumem=1000),
        make.container(name="b", gpu=2, gpumem=4000, gpucores=20),
        make.container(name="c", cpu=1),
    ]
    cluster = make.cluster(pods=[make.pod(name="p", containers=containers)])
    shape = DemandShape(cpu=1000, cards=3, mib=4000, cores=20, family=names.GPU)
    assert list(cluster.demand.counts()) == [shape]


def test_a_shape_in_milli_of_a_card() -> None:
    shape = DemandShape(cpu=0, cards=1, mib=4000, cores=25)
    assert shape.milli(100, 16000) == (250, 250)
    assert shape.milli(200, 8000) == (125, 500)
    assert shape.milli(100, 0) == (250, 1000)
    # What is charged: 81 % of 15,360 MiB are 12,441.
    assert DemandShape(cpu=0, cards=2, percent=81, cores=81).milli(100, 15360) == (810, 809)


def test_half_is_forgotten_after_a_half_life_of_others() -> None:
    seen = Demand()
    old = make.cluster(pods=[gpu_pod("old", cpu=1)]).pods["default/old"].template
    new = make.cluster(pods=[gpu_pod("new")]).pods["default/new"].template
    seen.arrived(old)
    for _ in range(demand.HALF_LIFE):
        seen.arrived(new)
    assert seen.counts()[demand.shape_of(old)] == pytest.approx(0.5, rel=1e-3)
    assert seen.seen == demand.HALF_LIFE + 1


def test_counting_does_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "HALF_LIFE", 1)
    seen = Demand()
    template = make.cluster(pods=[gpu_pod("p")]).pods["default/p"].template
    for _ in range(2000):
        seen.arrived(template)
    assert seen.counts()[HALF_CARD] == pytest.approx(2, rel=1e-9)


def test_shapes_are_bounded_and_the_rarest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "_SHAPES_MAX", 8)
    cluster = make.cluster(pods=[gpu_pod(f"often-{i}") for i in range(5)])
    for i in range(50):
        cluster.see_pod(gpu_pod(f"odd-{i}", cpu=3 + i))
    assert len(cluster.demand.counts()) <= 8
    assert HALF_CARD in cluster.demand.counts()


def test_a_restart_finds_the_demand_in_the_pods_that_are_there() -> None:
    pods = [gpu_pod(f"p{i}", cpu=1 + i % 3, node="a" if i % 2 else "") for i in range(30)]
    lived = make.cluster(pods=pods)
    restarted = Cluster()
    make.relist_pods(restarted, pods, scheduler="evenkeel")
    assert restarted.demand.counts() == lived.demand.counts()
    assert restarted.demand.seen == lived.demand.seen == 30


def departures(*stories: str) -> float:
    """Departures per arrival after some pods came and went."""
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    for i in range(1000):
        for story in stories:
            name = f"{story}-{i}"
            gpu = story != "cpu"
            make_pod = gpu_pod if gpu else lambda name, **more: make.pod(name=name, **more)
            pending = story == "pending"
            cluster.see_pod(make_pod(name, node="" if pending else "a"))
            if story == "finished":
                cluster.see_pod(make_pod(name, node="a", phase="Succeeded"))
            elif story != "stays":
                cluster.pod_gone(f"default/{name}")
    return cluster.demand.departures


def test_departures_are_of_pods_with_gpus_that_had_a_node() -> None:
    # As if 20 more had come of whom none left; the last 19 fade what was before them.
    one = 1 - 20 / 1000 * 0.999**19
    assert departures("deleted") == pytest.approx(one, rel=1e-6)
    assert departures("finished") == pytest.approx(one, rel=1e-6)
    assert departures("pending") == departures("stays") == departures("cpu") == 0.0
    assert departures("deleted", "cpu") == departures("deleted")


def test_a_list_without_a_pod_is_its_departure() -> None:
    cluster = make.cluster(pods=[gpu_pod("p", node="a"), gpu_pod("q", node="a")])
    make.relist_pods(cluster, [gpu_pod("q", node="a")], scheduler="evenkeel")
    cluster.see_pod(gpu_pod("r"))
    assert cluster.demand.departures == pytest.approx(1 / 22)


def test_departures_are_an_average_until_a_thousand_came_and_fade_after_that() -> None:
    seen = Demand()
    template = make.cluster(pods=[gpu_pod("p")]).pods["default/p"].template
    for _ in range(980):
        seen.arrived(template)
        seen.left(template)
    told = seen.departures
    assert told == pytest.approx(979 / 999)
    seen.arrived(template)
    for i in range(1, 100):
        assert seen.departures == pytest.approx((told * 0.999 + 0.001) * 0.999 ** (i - 1))
        seen.arrived(template)


def test_shapes_are_values() -> None:
    first = msgspec.convert(msgspec.to_builtins(gpu_pod("p")), wire.Pod)
    assert demand.shape_of(make.cluster(pods=[first]).pods["default/p"].template) == HALF_CARD


def test_what_was_there_before_anybody_watched_is_no_arrival() -> None:
    """A restart lists ten thousand pods: they would drown what is known of departures."""
    cluster = Cluster()
    cluster.demand.recall(0.8, 1000)
    make.relist_pods(cluster, [gpu_pod(f"p{i}", node="a") for i in range(50)], scheduler="evenkeel")
    make.relist_pods(
        cluster, [gpu_pod(f"q{i}", node="a", scheduler_name="x") for i in range(50)], scheduler=""
    )
    assert cluster.demand.departures == 0.8
    assert cluster.demand.seen == 100
    # A later list of the same stream tells of pods that came meanwhile.
    make.relist_pods(cluster, [gpu_pod(f"p{i}", node="a") for i in range(60)], scheduler="evenkeel")
    assert cluster.demand.departures == pytest.approx(0.8 * 0.999**10)


def test_a_predecessors_departures_count_until_enough_was_watched() -> None:
    seen = Demand()
    template = make.cluster(pods=[gpu_pod("p")]).pods["default/p"].template
    seen.recall(0.5, 1000)
    for _ in range(1000):
        seen.arrived(template)
    own = seen.departures
    seen.recall(0.9, 1000)
    assert seen.departures == own


@pytest.mark.parametrize("text", ["", "no", "0.5", "nan/1", "inf/1", "-1/1", "0.5/x", "0.5/-1"])
def test_a_note_that_is_no_number_is_passed_over(text: str) -> None:
    heard: list[events.Event] = []
    DemandNotes(Engine(Config()), heard.append).read({names.DEPARTURES: text})
    assert heard == []


def test_departures_are_handed_on_by_a_note() -> None:
    """The lease writes no state: what it brings is an event like all others."""
    first, second = Engine(Config()), Engine(Config())
    first.cluster.demand.recall(0.3456, 25)

    def hear(event: events.Event) -> None:
        second.handle(event, 0.0)

    DemandNotes(second, hear).read(DemandNotes(first, hear).write())
    assert second.cluster.demand.departures == 0.346
    # What was a mean of few is still one of few.
    assert second.cluster.demand.horizon == 25
