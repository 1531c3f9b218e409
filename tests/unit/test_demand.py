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
from scheduler.state.structures import tally
from tests import make


def gpu_pod(name: str, **more: Any) -> wire.Pod:
    return make.pod(name=name, **{"cpu": 2, "gpu": 1, "gpucores": 30, "gpumem_percent": 30, **more})


TO_A_NODE = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
AS_A_DAEMON: dict[str, Any] = {
    "spec": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TO_A_NODE}
            }
        }
    }
}
HALF_CARD = DemandShape(cpu=2000, cards=1, percent=30, cores=30, family=names.GPU)


def test_a_pod_counts_once_however_often_it_is_seen() -> None:
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    for _ in range(3):
        cluster.see_pod(gpu_pod("p"))
    cluster.see_pod(gpu_pod("p", node="a"))
    assert cluster.demand.list_counts() == {HALF_CARD: pytest.approx(1)}
    assert cluster.demand.devices.seen == 1


def test_pods_of_other_schedulers_are_demand_too() -> None:
    cluster = make.cluster(pods=[gpu_pod("p", scheduler_name="default-scheduler", node="a")])
    assert list(cluster.demand.list_counts()) == [HALF_CARD]


def test_what_is_no_matter_of_placement_does_not_make_another_shape() -> None:
    """A thousand jobs that differ in their labels, images and names ask one thing."""
    first, second = gpu_pod("p", labels={"job": "1"}), gpu_pod("q", labels={"job": "2"})
    second.spec.containers[0].name = "other"
    cluster = make.cluster(pods=[first, second])
    assert cluster.demand.list_counts() == {HALF_CARD: pytest.approx(2, rel=1e-3)}


def test_where_a_pod_may_go_makes_another_shape() -> None:
    cluster = make.cluster(
        pods=[
            gpu_pod("any"),
            gpu_pod("zone", node_selector={"zone": "a"}),
            gpu_pod("type", annotations={names.USE_TYPE: "t4"}),
            gpu_pod("not", annotations={names.NOUSE_TYPE: "A10"}),
        ]
    )
    found = cluster.demand.list_counts()
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
    assert list(cluster.demand.list_counts()) == [shape]


def test_of_pods_without_devices_all_that_they_ask_makes_the_shape() -> None:
    containers = [
        make.container(
            name="a",
            cpu=1,
            memory="1Gi",
            requests={"example.com/fpga": 1, "ephemeral-storage": "1Ki"},
        ),
        make.container(name="b", cpu=1, requests={"example.com/fpga": 2, "hugepages-2Mi": "4Mi"}),
    ]
    cluster = make.cluster(
        pods=[
            make.pod(name="p", containers=containers, node_selector={"zone": "a"}),
            make.pod(name="q", containers=containers),
            make.pod(name="r", cpu=1, memory="1Gi"),
            make.pod(name="s", cpu=1, memory="2Gi"),
        ]
    )
    others = (("ephemeral-storage", 1024), ("example.com/fpga", 3), ("hugepages-2Mi", 4 << 20))
    assert cluster.demand.list_counts() == {
        DemandShape(2000, 1 << 30, others=others): pytest.approx(2, rel=1e-3),
        DemandShape(1000, 1 << 30): pytest.approx(1, rel=1e-3),
        DemandShape(1000, 2 << 30): pytest.approx(1, rel=1e-3),
    }
    assert (cluster.demand.devices.seen, cluster.demand.plain.seen) == (0, 4)


def test_what_belongs_to_devices_is_nothing_else() -> None:
    odd = make.pod(name="p", requests={names.GPU_MEMORY: 4000, names.GPU_CORES: 10})
    cluster = make.cluster(pods=[gpu_pod("q"), odd])
    assert list(cluster.demand.list_counts()) == [HALF_CARD, DemandShape(0)]


def test_pods_with_devices_and_pods_without_do_not_make_each_other_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "HALF_LIFE", 10)
    cluster = make.cluster(pods=[gpu_pod("p"), make.pod(name="old", cpu=1)])
    for i in range(10):
        cluster.see_pod(make.pod(name=f"p{i}", cpu=2))
    found = cluster.demand.list_counts()
    assert found[HALF_CARD] == pytest.approx(1)
    assert found[DemandShape(1000)] == pytest.approx(0.5)


def test_a_shape_in_milli_of_a_card() -> None:
    shape = DemandShape(cpu=0, cards=1, mib=4000, cores=25)
    assert shape.convert_to_milli(100, 16000) == (250, 250)
    assert shape.convert_to_milli(200, 8000) == (125, 500)
    assert shape.convert_to_milli(100, 0) == (250, 1000)
    # What is charged: 81 % of 15,360 MiB are 12,441.
    assert DemandShape(cpu=0, cards=2, percent=81, cores=81).convert_to_milli(100, 15360) == (
        810,
        809,
    )


def test_shapes_are_bounded_and_the_rarest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_SHAPES_MAX", 8)
    cluster = make.cluster(pods=[gpu_pod(f"often-{i}") for i in range(5)])
    for i in range(50):
        cluster.see_pod(gpu_pod(f"odd-{i}", cpu=3 + i))
    assert len(cluster.demand.list_counts()) <= 8
    assert HALF_CARD in cluster.demand.list_counts()


def test_a_restart_finds_the_demand_in_the_pods_that_are_there() -> None:
    pods = [gpu_pod(f"p{i}", cpu=1 + i % 3, node="a" if i % 2 else "") for i in range(30)]
    lived = make.cluster(pods=pods)
    restarted = Cluster()
    make.relist_pods(restarted, pods, scheduler="evenkeel", is_first=True)
    assert restarted.demand.list_counts() == lived.demand.list_counts()
    assert restarted.demand.devices.seen == lived.demand.devices.seen == 30


def departures(*stories: str) -> tuple[float, float]:
    """Departures per arrival, of pods with devices and without, after some pods came and went."""
    cluster = make.cluster(nodes=[make.hami_node(name="a")])
    for i in range(1000):
        for story in stories:
            name = f"{story}-{i}"
            make_pod = make.pod if story.startswith("plain") else gpu_pod
            more: dict[str, Any] = AS_A_DAEMON if story.endswith("daemon") else {}
            pending = story.endswith("pending")
            cluster.see_pod(make_pod(name=name, node="" if pending else "a", **more))
            if story.endswith("finished"):
                cluster.see_pod(make_pod(name=name, node="a", phase="Succeeded", **more))
            elif not story.endswith("stays"):
                cluster.drop_pod(f"default/{name}")
    return cluster.demand.devices.departures, cluster.demand.plain.departures


def test_departures_are_of_pods_that_had_a_node_by_arrivals_of_their_own_kind() -> None:
    # As if 20 more had come of whom none left; the last 19 fade what was before them.
    one = 1 - 20 / 1000 * 0.999**19
    assert departures("deleted") == departures("finished") == pytest.approx((one, 0.0))
    assert departures("plain deleted") == departures("plain finished") == pytest.approx((0.0, one))
    for kind in ("", "plain "):
        assert departures(f"{kind}pending") == departures(f"{kind}stays") == (0.0, 0.0)
    assert departures("deleted", "plain stays") == pytest.approx((one, 0.0))
    assert departures("stays", "plain deleted") == pytest.approx((0.0, one))
    assert departures("deleted", "plain deleted") == pytest.approx((one, one))


@pytest.mark.parametrize("kind", ["", "plain "])
def test_pods_that_their_spec_binds_to_a_node_are_nobodys_demand(kind: str) -> None:
    assert departures(f"{kind}daemon") == (0.0, 0.0)
    make_pod = make.pod if kind else gpu_pod
    cluster = make.cluster(pods=[make_pod(name="d", **AS_A_DAEMON)])
    assert cluster.demand.list_known() == Demand().list_known()
    assert cluster.demand.count_seen(names.GPU) == 0
    # A label is no name, though it may say which node.
    cluster.see_pod(make_pod(name="p", node_selector={"kubernetes.io/hostname": "a"}))
    assert len(cluster.demand.list_counts()) == 1


def test_a_list_without_a_pod_is_its_departure() -> None:
    cluster = make.cluster(pods=[gpu_pod("p", node="a"), gpu_pod("q", node="a")])
    make.relist_pods(cluster, [gpu_pod("q", node="a")], scheduler="evenkeel")
    cluster.see_pod(gpu_pod("r"))
    assert cluster.demand.devices.departures == pytest.approx(1 / 22)


def test_shapes_are_values() -> None:
    first = msgspec.convert(msgspec.to_builtins(gpu_pod("p")), wire.Pod)
    assert demand.read_shape(make.cluster(pods=[first]).pods["default/p"].template) == HALF_CARD


def test_what_was_there_before_anybody_watched_is_no_arrival() -> None:
    """A restart lists ten thousand pods: they would drown what is known of departures."""
    cluster = Cluster()
    cluster.demand.devices.recall(0.8, 1000)
    pods = [gpu_pod(f"p{i}", node="a") for i in range(60)]
    make.relist_pods(cluster, pods[:50], scheduler="evenkeel", is_first=True)
    others = [gpu_pod(f"q{i}", node="a", scheduler_name="x") for i in range(50)]
    make.relist_pods(cluster, others, scheduler="", is_first=True)
    assert cluster.demand.devices.departures == 0.8
    assert cluster.demand.devices.seen == 100
    # A later list of the same stream tells of pods that came meanwhile.
    make.relist_pods(cluster, pods, scheduler="evenkeel")
    assert cluster.demand.devices.departures == pytest.approx(0.8 * 0.999**10)


@pytest.mark.parametrize("part", ["", "no", "0.5", "nan/1", "inf/1", "-1/1", "0.5/x", "0.5/-1"])
@pytest.mark.parametrize("text", ["{}", "{},0.5/20", "0.5/20,{}", "0.5/20,0.5/20,{}"])
def test_a_note_that_is_no_number_is_passed_over(text: str, part: str) -> None:
    assert heard_of(text.format(part)) == []


def heard_of(note: str) -> list[events.Event]:
    heard: list[events.Event] = []
    DemandNotes(Engine(Config()), heard.append, lambda: True).read_annotations(
        {names.DEPARTURES: note}
    )
    return heard


def test_departures_are_handed_on_by_a_note() -> None:
    """The lease writes no state: what it brings is an event like all others."""
    first, second = Engine(Config()), Engine(Config())
    first._cluster.demand.devices.recall(0.3456, 25)
    first._cluster.demand.plain.recall(0.91, 640)

    def hear(event: events.Event) -> None:
        second.handle(event, 0.0)

    note = DemandNotes(first, hear, lambda: True).write_annotations()
    # Before it decides it knows nothing better than what is on the lease.
    assert DemandNotes(first, hear, lambda: False).write_annotations() == {}
    assert note == {names.DEPARTURES: "0.346/25,0.910/640"}
    DemandNotes(second, hear, lambda: True).read_annotations(note)
    # What was a mean of few is still one of few.
    learnt = second._cluster.demand
    assert (learnt.devices.departures, learnt.devices.horizon) == (0.346, 25)
    assert (learnt.plain.departures, learnt.plain.horizon) == (0.91, 640)


def test_a_note_of_a_leader_that_knew_only_pods_with_devices_is_read() -> None:
    engine = Engine(Config())
    engine._cluster.demand.plain.recall(0.2, 500)
    for event in heard_of("0.532/1000"):
        engine.handle(event, 0.0)
    learnt = engine._cluster.demand
    assert (learnt.devices.departures, learnt.devices.horizon) == (0.532, 1000)
    assert (learnt.plain.departures, learnt.plain.horizon) == (0.2, 500)
