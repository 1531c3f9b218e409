"""PodTopologySpread: what pods share, and when those that wait are looked at again."""

from typing import Any

import pytest

from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.shapes import boards
from scheduler.shapes.boards import Shape
from scheduler.state.cluster import Cluster
from scheduler.telling import verdicts
from tests import make
from tests.model import peer_objects as objects
from tests.unit.peer_clusters import cluster_of, compare, seen
from tests.unit.spread_lines import hard, soft, waiting

Json = dict[str, Any]


def labelled(name: str, zone: str) -> Json:
    return objects.node(name, {objects.HOSTNAME: name, objects.ZONE: zone})


@pytest.mark.parametrize("labels", [{}, {"pod": "one"}])
def test_pods_whose_other_labels_differ_share_a_board(labels: dict[str, str]) -> None:
    cluster = cluster_of([labelled("a", "1")], [])
    cycle = make.cycle(cluster=cluster)
    rule = hard("zone")
    one, two = waiting(rule), waiting(rule)
    two["metadata"]["labels"] |= labels
    shapes = {id(cycle.get_shape(seen(cluster, pod, f"p{i}"))) for i, pod in enumerate((one, two))}
    assert len(shapes) == 1
    # Without the label that is counted it is another shape.
    other = waiting(rule, labels="bar")
    assert id(cycle.get_shape(seen(cluster, other, "q"))) not in shapes


def test_pods_that_waited_go_when_a_pod_elsewhere_evens_the_zones() -> None:
    """What changed is another zone's node; the one that becomes free did not change."""
    nodes = [labelled("a", "1"), labelled("b", "2")]
    rule = hard(objects.ZONE, {"matchLabels": {"foo": ""}})
    cluster = cluster_of(nodes, [])
    cycle = make.cycle(cluster=cluster)
    for i in range(2):
        (bind,) = cycle.schedule([seen(cluster, waiting(rule), f"p{i}")]).binds
        assert bind.node == "ab"[i]
    selector: Json = {"nodeSelector": {objects.ZONE: "1"}}
    pods = [seen(cluster, waiting(rule, **selector), f"q{i}") for i in range(2)]
    outcome = cycle.schedule(pods)
    # Only zone 1 is counted for these, so they are even by themselves.
    assert [bind.node for bind in outcome.binds] == ["a", "a"]
    picky = waiting(hard(objects.ZONE, {"matchLabels": {"foo": ""}}, nodeAffinityPolicy="Ignore"))
    picky["spec"] |= selector
    waits = seen(cluster, picky, "w")
    assert cycle.schedule([waits]).holds
    row = cluster.nodes.find_row("b")
    for i in range(2, 4):
        seen(cluster, waiting(rule) | {}, f"s{i}")
        cluster.assume(f"s{i}", "b", ())
    assert cycle.could_place(waits)
    assert row >= 0


def test_shapes_with_many_tallies_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant's pods may have a hundred constraints each, and each takes a column of all nodes."""
    monkeypatch.setattr(boards, "_TALLIES_MAX", 40)
    cluster = cluster_of([labelled("a", "1")], [])
    cycle = make.cycle(cluster=cluster)
    shapes = []
    for i in range(20):
        rules = [hard(f"{objects.ZONE}", skew=1 + i), soft(objects.HOSTNAME), soft("rack")]
        shape = cycle.get_shape(seen(cluster, waiting(*rules), f"p{i}"))
        assert shape is not None
        cycle.boards.refresh(shape)
        shapes.append(shape)
        live = [one for _, one in cycle.boards._shapes.items()]
        assert sum(len(one.counted) for one in live) <= 40
        assert shape in live
    assert len(live) > 3


def test_shapes_with_unusually_many_tallies_displace_no_usual_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boards, "_TALLIES_OF_UNUSUAL_MAX", 40)
    cluster = cluster_of([labelled("a", "1")], [])
    cycle = make.cycle(cluster=cluster)
    usual = [
        _count_shape(cycle, cluster, f"usual-{i}", [hard(objects.ZONE, skew=1 + i)])
        for i in range(9)
    ]
    for i in range(30):
        rules = [soft(f"rack-{i}-{j}") for j in range(8)]
        unusual = _count_shape(cycle, cluster, f"unusual-{i}", rules)
        live = [one for _, one in cycle.boards._shapes.items()]
        assert unusual in live
        assert all(one in live for one in usual)
        assert sum(len(one.counted) for one in live if one not in usual) <= 40


def _count_shape(cycle: Cycle, cluster: Cluster, name: str, rules: list[Json]) -> Shape:
    shape = cycle.get_shape(seen(cluster, waiting(*rules), name))
    assert shape is not None
    cycle.boards.refresh(shape)
    return shape


def test_labels_that_no_node_has_take_no_memory_each() -> None:
    """A tenant can name any number of them, and a topology takes 8 bytes a node."""
    cluster = cluster_of([labelled("a", "1")], [])
    cycle = make.cycle(cluster=cluster)
    for i in range(30):
        rules = [soft(f"rack-{i}-{j}") for j in range(8)] + [hard(objects.ZONE)]
        _count_shape(cycle, cluster, f"p{i}", rules)
    # The zone, and one for all labels that no node has.
    assert len(cycle.boards._topologies._made) == 2


@pytest.mark.parametrize(
    ("said", "asks", "spreads"),
    [
        ({}, {}, True),
        ({"objective": "spread"}, {}, True),
        ({"objective": "pack"}, {}, False),
        ({"mode": Mode.LEAST_ALLOCATED}, {}, True),
        ({"mode": Mode.FGD}, {}, False),
        ({"node_policy": "spread"}, {}, False),
        ({}, {"gpu": 1}, False),
        ({"objective": "spread"}, {"gpu": 1}, False),
    ],
)
def test_pods_of_a_service_are_spread_where_nothing_packs_them(
    said: dict[str, Any], asks: dict[str, Any], *, spreads: bool
) -> None:
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}  # fmt: skip
    cluster = cluster_of([labelled("a", "1")], [], owners=[service])
    cycle = make.cycle(cluster=cluster, config=Config(placement=Placement(**said)))
    record = cluster.see_pod(make.pod(labels={"app": "web"}, **asks))
    assert record is not None
    shape = cycle.get_shape(record)
    assert shape is not None
    cycle.boards.refresh(shape)
    assert bool(len(shape.counted)) == spreads


def test_pods_are_not_counted_as_long_as_no_rule_looks_at_pods() -> None:
    cluster = cluster_of([labelled("a", "1")], [objects.pod({"foo": ""}, on="a")])
    cycle = make.cycle(cluster=cluster)
    cycle.schedule([seen(cluster, objects.pod({"foo": ""}), "plain")])
    assert cluster.terms.read_held() is None
    cycle.schedule([seen(cluster, waiting(hard(objects.ZONE)), "looks")])
    held = cluster.terms.read_held()
    assert held is not None
    assert [sum(rows.values()) for rows in held.values()] == [3]


@pytest.mark.parametrize("zones", [("1", "2", None), ("1", "", None), (None, None, "2")])
def test_nodes_without_a_zone_are_scored_where_a_pod_asks_for_no_spread(
    zones: tuple[str | None, ...],
) -> None:
    """They are one domain more, together with those of the empty zone, and are not charged for it."""
    nodes = [
        objects.node(
            name, {objects.HOSTNAME: name} | ({} if zone is None else {objects.ZONE: zone})
        )
        for name, zone in zip("abc", zones, strict=True)
    ]
    service: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"foo": ""}},
    }
    pods = [objects.pod({"foo": ""}, on=name) for name in "aabccc"]
    pod = objects.pod({"foo": ""})
    cluster = cluster_of(nodes, pods, owners=[service])
    cycle = make.cycle(cluster=cluster)
    compare(cluster, cycle, seen(cluster, pod), pod, (nodes, pods, {}), [service])
    told = verdicts.judge_nodes(cluster, cycle, cluster.pods["waits"]).nodes
    assert len({said["scores"]["PodTopologySpread"] for said in told.values()}) > 1
