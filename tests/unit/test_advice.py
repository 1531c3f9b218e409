"""Advice for pods that wait, on clusters where the right one is known."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from scheduler.api import names, storage, wire
from scheduler.plugins import table
from scheduler.telling.advice import advise, nearest
from scheduler.telling.advice.asking import Asking
from scheduler.telling.explained import sentences
from tests import make

Json = dict[str, Any]
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def asking(
    nodes: Sequence[wire.Node], pods: Sequence[wire.Pod] = (), stored: Sequence[Json] = ()
) -> Asking:
    cluster = make.cluster(nodes=nodes, pods=pods)
    for one in stored:
        cluster.storage.see(msgspec.convert(one, storage.KINDS[one["kind"]]))
    return Asking(cluster, make.cycle(cluster=cluster))


def advised(
    pod: wire.Pod,
    nodes: Sequence[wire.Node],
    pods: Sequence[wire.Pod] = (),
    silent: str = "",
    stored: Sequence[Json] = (),
) -> list[Json]:
    of = asking(nodes, pods, stored)
    if silent:
        of.cluster.close_cards(silent, closed=True)
    record = of.cluster.see_pod(pod)
    assert record is not None
    known = advise.ObjectFacts(pod, {one.metadata.name: one for one in nodes}, lambda _: True)
    found = [sentences.write_advice(of, one) for one in advise.find_advice(of, record, known)]
    # What was tried is undone.
    assert of.answers.explain_hold(record) is not None
    assert [one["text"] for one in found] == [
        sentences.write_advice(of, one)["text"] for one in advise.find_advice(of, record, known)
    ]
    return found


def texts(pod: wire.Pod, nodes: Sequence[wire.Node], *pods: wire.Pod) -> list[str]:
    return [one["text"] for one in advised(pod, nodes, pods)]


def node_affinity(*keys: str) -> Json:
    expressions = [{"key": key, "operator": "In", "values": ["x"]} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms}}}


def peers(kind: str, key: str, **labels: str) -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def test_the_most_of_a_resource_that_fits_is_told_in_its_own_unit() -> None:
    nodes = [make.node(name="a", cpu="7500m", memory="8Gi"), make.node(name="b", cpu=4)]
    assert texts(make.pod(cpu=12), nodes) == ["request at most 7.5 cpu instead of 12: it fits on a"]
    asked = make.pod(memory="20Gi")
    running = make.pod(name="r", node="a", memory="1Mi")
    assert texts(asked, nodes[:1], running)[0] == (
        "request at most 8191Mi memory instead of 20Gi: it fits on a"
    )


def test_what_is_asked_of_a_card_is_told_of_each_container() -> None:
    nodes = [make.hami_node(name="g", cards=2)]
    assert texts(make.pod(gpu=1, gpumem=20000), nodes) == [
        "request at most 15360 nvidia.com/gpumem in each container instead of 20000: it fits on g"
    ]
    assert texts(make.pod(gpu=3), nodes) == [
        "request at most 2 nvidia.com/gpu in each container instead of 3: it fits on g"
    ]


def test_cores_of_a_card_that_others_have() -> None:
    nodes = [make.hami_node(name="g", cards=1)]
    there = {"hami.io/vgpu-node": "g", "hami.io/vgpu-devices-allocated": "g-GPU-0,NVIDIA,4000,70:;"}
    running = make.pod(name="r", node="g", gpu=1, gpumem=4000, gpucores=70, annotations=there)
    found = texts(make.pod(gpu=1, gpumem=4000, gpucores=50), nodes, running)
    assert found == [
        "request at most 30 nvidia.com/gpucores in each container instead of 50: it fits on g",
        "end pod default/r (priority 0): it fits on g",
    ]


@pytest.mark.parametrize(
    ("figures", "field"),
    [
        ({"node_selector": {"zone": "q"}}, "spec.nodeSelector zone=q"),
        (
            {"spec": node_affinity("zone")},
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0] zone In x",
        ),
        (
            {"spec": peers("podAffinity", HOST, app="none")},
            f"spec.affinity.podAffinity.{REQUIRED}[0] app=none by {HOST}",
        ),
        (
            {"spec": {"topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule",
                 "labelSelector": {"matchLabels": {"app": "a"}}}]}},
            "spec.topologySpreadConstraints[0] app=a by rack, maxSkew 1",
        ),
        (
            {"gpu": 1, "annotations": {"nvidia.com/use-gputype": "H100"}},
            "metadata.annotations nvidia.com/use-gputype=H100",
        ),
        (
            {"gpu": 1, "annotations": {"nvidia.com/use-gpuuuid": "GPU-x"}},
            "metadata.annotations nvidia.com/use-gpuuuid=GPU-x",
        ),
    ],
)  # fmt: skip
def test_the_one_thing_that_a_pod_insists_on_in_vain_is_named(figures: Json, field: str) -> None:
    nodes = [make.hami_node(name="g", cards=2)]
    assert texts(make.pod(cpu=1, **figures), nodes) == [f"drop {field}: it fits on g"]


def claiming(*claims: str) -> Json:
    own: Json = {"ephemeral": {}}
    return {
        "volumes": [
            {"name": name}
            | (own if name == "own" else {"persistentVolumeClaim": {"claimName": name}})
            for name in claims
        ]
    }


CSI = {"driver": "d.csi", "volumeHandle": "h"}


def bound_in(zone: str) -> list[Json]:
    """A claim and its volume, which only nodes of a zone can use."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    meta = {"name": "far", "namespace": "default", "uid": "c", "annotations": {names.BIND_COMPLETED: "yes"}}  # fmt: skip
    reference = {"name": "far", "namespace": "default", "uid": "c"}
    affinity = {"required": {"nodeSelectorTerms": terms}}
    return [
        {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {"volumeName": "v"}},
        {"kind": "PersistentVolume", "metadata": {"name": "v"},
         "spec": {"claimRef": reference, "nodeAffinity": affinity, "csi": CSI}},
    ]  # fmt: skip


def test_a_claim_that_is_not_there_or_ties_a_pod_to_other_nodes_can_be_dropped() -> None:
    nodes = [make.node(name="a", labels={"zone": "y"})]
    stored = bound_in("x")

    def said(*claims: str) -> list[str]:
        pod = make.pod(cpu=1, spec=claiming(*claims))
        return [one["text"] for one in advised(pod, nodes, stored=stored)]

    assert said("nope") == ["drop spec.volumes[0] claim nope: it fits on a"]
    assert said("own") == ["drop spec.volumes[0] ephemeral claim: it fits on a"]
    assert said("far") == ["drop spec.volumes[0] claim far: it fits on a"]
    assert said("far", "nope") == [
        "drop spec.volumes[0] claim far and drop spec.volumes[1] claim nope: it fits on a"
    ]
    nodes.append(make.node(name="b", labels={"zone": "x"}))
    assert said("far", "nope") == ["drop spec.volumes[1] claim nope: it fits on b"]


def test_a_port_and_a_pod_that_is_shunned_can_be_dropped_or_end() -> None:
    nodes = [make.node(name="a")]
    running = make.pod(name="r", node="a", labels={"app": "r"}, host_ports=[80])
    assert texts(make.pod(host_ports=[80, 81]), nodes, running) == [
        "drop spec.containers[].ports[].hostPort 80/TCP: it fits on a",
        "end pod default/r (priority 0): it fits on a",
    ]
    shunning = make.pod(spec=peers("podAntiAffinity", HOST, app="r"))
    assert texts(shunning, nodes, running)[1] == "end pod default/r (priority 0): it fits on a"


def test_who_is_shunned_in_a_zone_may_be_on_another_node() -> None:
    nodes = [make.node(name=name, labels={"zone": "z"}) for name in ("a", "b")]
    others = [make.pod(name=f"o{i}", node="a", cpu=1) for i in range(3)]
    running = make.pod(name="r", node="b", labels={"app": "r"})
    shunning = make.pod(spec=peers("podAntiAffinity", "zone", app="r"))
    found = advised(shunning, nodes, [*others, running])
    ends = [one for one in found if one["steps"][0]["do"] == "end"]
    # It opens both nodes, and is told once.
    assert [one["names"] for one in ends] == [["a", "b"]]
    assert [pod["name"] for pod in ends[0]["steps"][0]["pods"]] == ["r"]
    # A pod that runs may shun the one that waits.
    term = peers("podAntiAffinity", "zone", app="w")
    owner = make.pod(name="owner", node="b", spec=term)
    waits = make.pod(labels={"app": "w"})
    assert {one["text"].partition(":")[0] for one in advised(waits, nodes, [*others, owner])} == {
        "end pod default/owner (priority 0)"
    }


def test_taints_are_tolerated_by_name_and_those_of_a_state_are_not() -> None:
    nodes = [
        make.node(name="a", taints=[("team", "x", "NoSchedule"), ("soft", "", "PreferNoSchedule")]),
        make.node(name="b", taints=[("node.kubernetes.io/not-ready", "", "NoExecute")]),
        make.node(name="c", unschedulable=True),
    ]
    assert texts(make.pod(cpu=1), nodes) == [
        "tolerate taint team=x:NoSchedule: it fits on a",
        "bring back node b (taint node.kubernetes.io/not-ready): it fits on b",
        "bring back node c (cordoned): it fits on c",
    ]
    # One that is too small would not help.
    assert texts(make.pod(cpu=9), [*nodes[:2], make.node(name="c", cpu=16, unschedulable=True)])[
        -1
    ] == ("bring back node c (cordoned): it fits on c")


def test_closed_cards_and_a_silent_plugin_can_come_back() -> None:
    closed = [make.hami_node(name="g", cards=1, cordoned=["g-GPU-0"])]
    pod = make.pod(gpu=1)
    assert texts(pod, closed) == ["bring back node g (cards are cordoned): it fits on g"]
    found = advised(pod, [make.hami_node(name="g", cards=1)], silent="g")
    assert [one["text"] for one in found] == [
        "bring back node g (its device plugin does not answer): it fits on g"
    ]


def test_of_pods_that_would_have_to_end_the_least_important_and_the_fewest_are_named() -> None:
    nodes = [make.node(name="a", cpu=8)]
    small = [make.pod(name=f"s{i}", node="a", cpu=1) for i in range(4)]
    large = make.pod(name="large", node="a", cpu=4)
    assert texts(make.pod(cpu=4), nodes, *small, large)[-1] == (
        "end pod default/large (priority 0): it fits on a"
    )
    important = make.pod(name="large", node="a", cpu=4, priority=1)
    assert texts(make.pod(cpu=2), nodes, *small, important)[-1] == (
        "end pods default/s2, default/s3 (priority 0 at most): it fits on a"
    )
    # Three of 2 would do as well.
    sizes = [3, 3, 2, 2, 2]
    mixed = [make.pod(name=f"r{i}", node="a", cpu=size) for i, size in enumerate(sizes)]
    assert texts(make.pod(cpu=6), [make.node(name="a", cpu=12)], *mixed)[-1] == (
        "end pods default/r0, default/r1 (priority 0 at most): it fits on a"
    )
    # Of less important ones three are cheaper than two.
    mixed[0].spec.priority = 1
    assert texts(make.pod(cpu=6), [make.node(name="a", cpu=12)], *mixed)[-1] == (
        "end pods default/r2, default/r3, default/r4 (priority 0 at most): it fits on a"
    )


def test_a_pod_that_a_budget_protects_is_not_named_where_another_will_do() -> None:
    labels = {"app": "web"}
    nodes = [make.node(name="a", cpu=8)]
    # The pod that is protected would be named otherwise: one is enough, and the last by name is as good.
    of = asking(
        nodes,
        [
            make.pod(name="db", node="a", cpu=4),
            make.pod(name="web", node="a", cpu=4, labels=labels),
        ],
    )
    record = of.cluster.see_pod(make.pod(cpu=4))
    assert record is not None
    known = advise.ObjectFacts(make.pod(cpu=4), {"a": nodes[0]}, lambda _: True)

    def last_advice() -> str:
        found = advise.find_advice(of, record, known)
        return str(sentences.write_advice(of, found[-1])["text"])

    assert last_advice() == "end pod default/web (priority 0): it fits on a"
    budget = make.budget("web", wire.LabelSelector(match_labels=labels))
    of.cluster.budgets.see(
        "default", "web", budget.spec.selector, (budget.status.disruptions_allowed, ())
    )
    assert last_advice() == "end pod default/db (priority 0): it fits on a"


def test_pods_that_end_already_come_first() -> None:
    nodes = [make.node(name="a", cpu=4), make.node(name="b", cpu=4)]
    going = make.pod(name="going", node="b", cpu=4)
    going.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    staying = make.pod(name="staying", node="a", cpu=4)
    assert texts(make.pod(cpu=3), nodes, staying, going)[0] == (
        "wait until pod default/going (priority 0) ends, which ends already: it fits on b"
    )


def test_several_steps_are_told_where_one_is_not_enough_and_none_that_is_not_needed() -> None:
    nodes = [make.node(name="a", cpu=8, labels={"disk": "ssd"}, taints=[("t", "", "NoSchedule")])]
    pod = make.pod(cpu=1, node_selector={"zone": "q", "disk": "ssd"})
    assert texts(pod, nodes) == [
        "drop spec.nodeSelector zone=q and tolerate taint t:NoSchedule: it fits on a"
    ]
    assert texts(make.pod(cpu=9, memory="64Gi"), [make.node(name="a")]) == [
        "request at most 8 cpu instead of 9 and request at most 32Gi memory instead of 64Gi: it fits on a"
    ]


def test_nothing_is_made_up() -> None:
    assert texts(make.pod(cpu=1), []) == []
    only = make.node(name="a", allocatable={"pods": 0})
    assert texts(make.pod(), [only]) == []
    of = asking([make.node(name="a")])
    record = of.cluster.see_pod(pod := make.pod(cpu=1))
    assert record is not None
    assert advise.find_advice(of, record, advise.ObjectFacts(pod, {}, lambda _: True)) == []


def test_the_closest_node_lacks_the_least_and_is_told_by_every_rule() -> None:
    nodes = [
        make.node(name="a", cpu=8),
        make.node(name="b", cpu=16, taints=[("t", "", "NoSchedule")]),
        make.node(name="c", cpu=4),
        make.hami_node(name="g", cards=2, cpu=64, unschedulable=True),
    ]
    of = asking(nodes, [make.pod(name="r", node="a", cpu=2)])

    def closest(pod: wire.Pod) -> nearest.Nearest:
        record = of.cluster.see_pod(pod)
        assert record is not None
        found = nearest.order_nodes(of, record)
        assert found is not None
        return nearest.describe_node(of, found.judged, int(found.order[0]))

    one = closest(make.pod(cpu=7))
    assert of.cluster.nodes.find_name(one.row) == "a"
    assert one.short == (nearest.Short("cpu", 7000, 6000, 8000),)
    assert [(lack.texts, lack.resolvable) for lack in one.lacks] == [(("Insufficient cpu",), True)]
    one = closest(make.pod(name="gpus", cpu=9, gpu=3))
    assert of.cluster.nodes.find_name(one.row) == "g"
    assert [lack.rule for lack in one.lacks] == ["NodeUnschedulable", "GpuCards"]
    assert (one.wanted, [card.refusal for card in one.cards]) == (3, [None, None])


def test_every_rule_tells_of_a_node_the_same_whether_it_is_asked_alone_or_among_all() -> None:
    nodes = [make.hami_node(name="g", cards=1, cpu=4, labels={"zone": "y"})]
    driver = {
        "kind": "CSIDriver",
        "metadata": {"name": "d.csi"},
        "spec": {"preventPodSchedulingIfMissing": True},
    }
    there = {"kind": "CSINode", "metadata": {"name": "g"}, "spec": {"drivers": []}}
    of = asking(nodes, stored=[*bound_in("x"), driver, there])
    pod = make.pod(cpu=8, gpu=2, gpumem=100, spec=claiming("far"))
    record = of.cluster.see_pod(pod)
    assert record is not None
    shape = of.make_shape(record)
    assert shape is not None
    judged = of.judge_rows(shape)
    for bit, (rule, reason) in enumerate(table.REASONS):
        bits = judged.bits.copy()
        # What is short of each resource stays.
        bits[0] = bits[0] >> len(table.REASONS) << len(table.REASONS) | 1 << bit
        part = judged._replace(bits=bits)
        ((_, alone),) = table.tell_reasons(part)
        ((name, _, among),) = table.tell_all_reasons(part)
        assert name == rule.name
        assert alone.texts == among.texts, (rule.name, reason)
        assert alone.which.tolist() == among.which.tolist(), (rule.name, reason)
        assert alone.which.any(), (rule.name, reason)


def test_the_closest_node_is_not_one_on_which_a_volume_cannot_be_used() -> None:
    nodes = [
        make.node(name="a", cpu=12, labels={"zone": "y"}),
        make.node(name="b", cpu=12, labels={"zone": "x"}),
    ]
    of = asking(nodes, [make.pod(name="r", node="b", cpu=12)], bound_in("x"))
    record = of.cluster.see_pod(make.pod(cpu=2, spec=claiming("far")))
    assert record is not None
    found = nearest.order_nodes(of, record)
    assert found is not None
    one, other = (nearest.describe_node(of, found.judged, int(at)) for at in found.order)
    assert of.cluster.nodes.find_name(one.row) == "b"
    assert [lack.texts for lack in one.lacks] == [("Insufficient cpu",)]
    assert [lack.texts for lack in other.lacks] == [
        ("node(s) didn't match PersistentVolume's node affinity",)
    ]
