"""PodTopologySpread against its twin: random clusters, kept up and made anew; runs and one pod at a time."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.cycle import verdicts
from scheduler.cycle.schedule import Cycle
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from tests import make
from tests.oracles import filters
from tests.oracles import topology_spread as twin
from tests.unit import peer_objects as objects
from tests.unit import peer_worlds as worlds
from tests.unit.spread_lines import hard, waiting

Json = dict[str, Any]


def seen(cluster: Cluster, pod: Json, name: str = "waits") -> PodRecord:
    meta = pod["metadata"] | {"name": name, "uid": name}
    spec = pod["spec"] | {"schedulerName": names.SCHEDULER}
    found = cluster.see_pod(msgspec.convert(pod | {"metadata": meta, "spec": spec}, wire.Pod))
    assert found is not None
    return found


def cluster_of(nodes: list[Json], pods: list[Json]) -> Cluster:
    cluster = Cluster()
    for node in nodes:
        cluster.see_node(msgspec.convert(node, wire.Node))
    for i, pod in enumerate(pods):
        seen(cluster, pod, f"q{i}")
    return cluster


def compare(
    cluster: Cluster,
    cycle: Cycle,
    record: PodRecord,
    pod: Json,
    nodes: list[Json],
    pods: list[Json],
) -> None:
    """What is said of every node is what the twin says of it."""
    told = verdicts.all_nodes(cluster, cycle, record)
    refused = twin.refusals(pod, nodes, pods)
    fitting = []
    for node in nodes:
        name = node["metadata"]["name"]
        said = told[name]
        others = filters.refusal(pod, node, [])
        reason, status = refused[name]
        if not others:
            assert said["reasons"] == ([reason] if reason else []), name
            assert said["status"] == (status or "fit"), name
        else:
            assert not said["feasible"]
            assert reason not in said["reasons"]
        if said["feasible"]:
            fitting.append(name)
    scores = twin.scores(pod, nodes, pods, fitting)
    assert {name: told[name]["scores"]["PodTopologySpread"] for name in fitting} == scores


def without_affinity(pod: Json) -> Json:
    return pod | {"spec": {k: v for k, v in pod["spec"].items() if k != "affinity"}}


@given(worlds.worlds())
@settings(max_examples=300, deadline=None)
def test_spread_judges_and_scores_nodes_as_its_twin(world: worlds.World) -> None:
    pod = without_affinity(world.pod)
    there = [without_affinity(one) for one in world.pods]
    cluster = cluster_of(world.nodes, there)
    cycle = make.cycle(cluster=cluster)
    compare(cluster, cycle, seen(cluster, pod), pod, world.nodes, there)


@given(worlds.worlds(), st.data())
@settings(max_examples=150, deadline=None)
def test_spread_is_kept_up_while_pods_and_nodes_come_go_and_change(
    world: worlds.World, data: st.DataObject
) -> None:
    """The pod that waits has a live board all the time."""
    pod = without_affinity(world.pod)
    nodes = {one["metadata"]["name"]: one for one in world.nodes}
    pods = {f"q{i}": without_affinity(one) for i, one in enumerate(world.pods)}
    cluster = cluster_of(world.nodes, list(pods.values()))
    cycle = make.cycle(cluster=cluster)
    record = seen(cluster, pod)
    for step in range(data.draw(st.integers(1, 6))):
        match data.draw(st.integers(0, 3)):
            case 0 if pods:
                gone = data.draw(st.sampled_from(sorted(pods)))
                del pods[gone]
                cluster.pod_gone(gone)
            case 1:
                came = data.draw(worlds.pods(on=data.draw(st.sampled_from(sorted(nodes)))))
                uid = data.draw(st.sampled_from([f"r{step}", *sorted(pods)]))
                pods[uid] = without_affinity(came)
                seen(cluster, pods[uid], uid)
            case 2 if len(nodes) > 1:
                gone = data.draw(st.sampled_from(sorted(nodes)))
                del nodes[gone]
                cluster.node_gone(gone)
            case _:
                for node in data.draw(worlds.nodes()):
                    nodes[node["metadata"]["name"]] = node
                    cluster.see_node(msgspec.convert(node, wire.Node))
        there = [one for one in pods.values() if one["spec"]["nodeName"] in nodes]
        compare(cluster, cycle, record, pod, list(nodes.values()), there)


@given(worlds.worlds(), st.integers(2, 12))
@settings(max_examples=100, deadline=None)
def test_a_run_of_like_pods_goes_as_one_pod_at_a_time_and_as_the_twin_allows(
    world: worlds.World, n: int
) -> None:
    pod = without_affinity(world.pod)
    there = [without_affinity(one) for one in world.pods]

    def placed(*, at_once: bool) -> list[str]:
        cluster = cluster_of(world.nodes, there)
        cycle = make.cycle(cluster=cluster)
        batch = [seen(cluster, pod, f"p{i}") for i in range(n)]
        steps = [batch] if at_once else [[one] for one in batch]
        went = {b.uid: b.node for step in steps for b in cycle.schedule(step).binds}
        return [went.get(one.uid, "") for one in batch]

    went = placed(at_once=True)
    assert went == placed(at_once=False)
    now = list(there)
    for node in went:
        refused = twin.refusals(pod, world.nodes, now)
        if not node:
            assert all(
                refused[one["metadata"]["name"]][0] or filters.refusal(pod, one, [])
                for one in world.nodes
            )
            break
        assert refused[node] == twin.FITS
        now.append(pod | {"spec": pod["spec"] | {"nodeName": node}})


def labelled(name: str, zone: str) -> Json:
    return objects.node(name, {objects.HOSTNAME: name, objects.ZONE: zone})


@pytest.mark.parametrize("labels", [{}, {"pod": "one"}])
def test_pods_whose_other_labels_differ_share_a_board(labels: dict[str, str]) -> None:
    cluster = cluster_of([labelled("a", "1")], [])
    cycle = make.cycle(cluster=cluster)
    rule = hard("zone")
    one, two = waiting(rule), waiting(rule)
    two["metadata"]["labels"] |= labels
    shapes = {id(cycle.shape_of(seen(cluster, pod, f"p{i}"))) for i, pod in enumerate((one, two))}
    assert len(shapes) == 1
    # Without the label that is counted it is another shape.
    other = waiting(rule, labels="bar")
    assert id(cycle.shape_of(seen(cluster, other, "q"))) not in shapes


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
    row = cluster.nodes.row_of("b")
    for i in range(2, 4):
        seen(cluster, waiting(rule) | {}, f"s{i}")
        cluster.assume(f"s{i}", "b", ())
    assert cycle.could_place(waits)
    assert row >= 0
