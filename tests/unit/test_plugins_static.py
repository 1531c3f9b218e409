"""Taints, node affinity, cordons and host ports, against a twin that looks at one node at a time."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import wire
from scheduler.plugins import table
from scheduler.shapes.boards import Key
from scheduler.state.cluster import Cluster
from tests import make, slices
from tests.oracles import filters as twin

Json = dict[str, Any]


def node(name: str = "a", *, features: list[str] | None = None, **spec: Any) -> Json:
    labels = spec.pop("labels", {})
    status: Json = {"allocatable": {"cpu": 9, "pods": 99}, "declaredFeatures": features}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec,
            "status": status}  # fmt: skip


def pod(
    name: str = "p",
    *,
    ports: list[Json] | None = None,
    container: Json | None = None,
    **spec: Any,
) -> Json:
    holder = {"name": "main", "ports": ports or [], **(container or {})}
    return {"metadata": {"name": name, "uid": name},
            "spec": {"schedulerName": "evenkeel", "containers": [holder], **spec}}  # fmt: skip


def refusals(wanted: Json, nodes: list[Json], others: dict[str, list[Json]]) -> dict[str, str]:
    """The first filter that refuses each node, by the columns."""
    cluster = make.cluster(nodes=[msgspec.convert(one, wire.Node) for one in nodes])
    for name, there in others.items():
        for other in there:
            body = other | {"spec": other["spec"] | {"nodeName": name}}
            cluster.see_pod(msgspec.convert(body, wire.Pod))
    return first_refusals(cluster, wanted)


def first_refusals(cluster: Cluster, wanted: Json) -> dict[str, str]:
    record = cluster.see_pod(msgspec.convert(wanted, wire.Pod))
    assert record is not None
    rows = np.array(sorted(cluster.nodes.rows.values()), np.int64)
    cycle = make.cycle(cluster=cluster)
    boards, shape = cycle.boards, cycle.get_shape(record)
    assert shape is not None
    shape = boards.make_unscored(Key(shape.asked.template, shape.asked.placement, shape.view))
    bits = table.find_first_bits(boards.find_refusals(shape, rows)[0])
    names = [table.REASONS[bit][0].name if bit >= 0 else "" for bit in bits.tolist()]
    return {cluster.nodes.find_name(int(row)): name for row, name in zip(rows, names, strict=True)}


def judged(wanted: Json, one: Json, *others: Json) -> str:
    """What the columns say of one node; the twin must agree."""
    (found,) = refusals(wanted, [one], {one["metadata"]["name"]: list(others)}).values()
    assert found == twin.refusal(wanted, one, list(others))
    return found


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        ({}, {}, False),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, {}, True),
        ({"key": "k", "value": "v"}, {}, True),
        ({"key": "k", "value": "w"}, {}, False),
        ({"key": "k"}, {}, False),
        ({"key": "k"}, {"value": ""}, True),
        ({"key": "k", "operator": "Exists"}, {}, True),
        ({"key": "other", "operator": "Exists"}, {}, False),
        ({"operator": "Exists"}, {}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, {}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, {"effect": "NoExecute"}, True),
        ({"key": "k", "operator": "Exists", "effect": "PreferNoSchedule"}, {}, False),
        ({"key": "k", "operator": "Lt", "value": "9"}, {"value": "3"}, False),
        ({"value": "v"}, {}, True),
        ({"key": "k", "operator": "Exists", "tolerationSeconds": 0}, {"effect": "NoExecute"}, True),
        ({}, {"effect": "PreferNoSchedule"}, True),
    ],
)
def test_a_taint_refuses_unless_a_toleration_matches_it(
    toleration: Json, taint: Json, tolerated: bool
) -> None:
    found = judged(pod(tolerations=[toleration]), node(taints=[TAINT | taint]))
    assert found == ("" if tolerated else "TaintToleration")


def test_every_hard_taint_needs_a_toleration() -> None:
    taints = [TAINT, TAINT | {"key": "l", "effect": "NoExecute"}]
    both = [{"key": "k", "operator": "Exists"}, {"key": "l", "operator": "Exists"}]
    assert judged(pod(tolerations=both[:1]), node(taints=taints)) == "TaintToleration"
    assert judged(pod(tolerations=both), node(taints=taints)) == ""


@pytest.mark.parametrize(
    ("toleration", "allowed"),
    [
        ({"key": "x", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)  # fmt: skip
def test_a_cordoned_node_refuses_unless_its_taint_is_tolerated(
    toleration: Json, allowed: bool
) -> None:
    found = judged(pod(tolerations=[toleration]), node(unschedulable=True))
    assert found == ("" if allowed else "NodeUnschedulable")


def requires(*terms: Json | None) -> Json:
    rule = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}


def label(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, *values: str, key: str = "metadata.name") -> Json:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (label("zone", "In", "a", "b"), True),
        (label("zone", "In", "b"), False),
        (label("zone", "In"), False),
        (label("none", "In", "a"), False),
        (label("zone", "NotIn", "a"), False),
        (label("zone", "NotIn", "b"), True),
        (label("none", "NotIn", "a"), True),
        (label("none", "NotIn"), False),
        (label("zone", "Exists"), True),
        (label("none", "Exists"), False),
        (label("zone", "DoesNotExist"), False),
        (label("none", "DoesNotExist"), True),
        (label("size", "Gt", "9"), True),
        (label("size", "Gt", "10"), False),
        (label("size", "Lt", "11"), True),
        (label("size", "Lt", "10"), False),
        (label("size", "Gt", "0009"), True),
        # No label can have these values, so no requirement may name them.
        (label("size", "Gt", "-3"), False),
        (label("size", "Gt", "+0009"), False),
        (label("zone", "In", "a", "b c"), False),
        (label("zone", "NotIn", "a b"), False),
        (label("zone", "NotIn", "é"), False),
        (label("none", "NotIn", "-"), False),
        (label("none", "NotIn", "a" * 64), False),
        (label("none", "NotIn", ""), True),
        (label("a b", "DoesNotExist"), False),
        (label("A.b/c", "DoesNotExist"), False),
        (label("zone", "Exists", "a"), False),
        (label("none", "DoesNotExist", "a"), False),
        (label("size", "Gt", "nine"), False),
        (label("size", "Gt", "0" * 5000 + "9"), False),
        (label("size", "Lt", "9" * 5000), False),
        (label("size", "Gt", "1", "2"), False),
        (label("size", "Gt"), False),
        (label("zone", "Lt", "9"), False),
        (label("none", "Lt", "9"), False),
        (label("zone", "Near", "a"), False),
        (field("In", "a"), True),
        (field("In", "b"), False),
        (field("NotIn", "a"), False),
        (field("NotIn", "gone"), True),
        (field("In", "a", "b"), False),
        (field("Exists", "a"), False),
        (field("In", "a", key="metadata.uid"), False),
        (label("zone", "In", "a") | field("In", "a"), True),
        (label("zone", "In", "a") | field("In", "b"), False),
        ({}, False),
        ({"matchExpressions": [], "matchFields": []}, False),
    ],
)
def test_a_term_of_node_affinity(term: Json, matches: bool) -> None:
    found = judged(pod(affinity=requires(term)), node(labels={"zone": "a", "size": "10"}))
    assert found == ("" if matches else "NodeAffinity")


def test_terms_are_alternatives_and_a_selector_comes_on_top() -> None:
    here = node(labels={"zone": "a"})
    both = requires(label("zone", "In", "b"), label("zone", "Exists"))
    assert judged(pod(affinity=both), here) == ""
    assert judged(pod(affinity=both, nodeSelector={"zone": "b"}), here) == "NodeAffinity"
    assert judged(pod(affinity=requires()), here) == "NodeAffinity"
    assert judged(pod(nodeSelector={"zone": "a"}), here) == ""
    assert judged(pod(nodeSelector={"zone": "a", "none": ""}), here) == "NodeAffinity"


@pytest.mark.parametrize(
    ("mine", "theirs", "free"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"containerPort": 80}, True),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "protocol": "TCP"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "::"}, False),
    ],
)
def test_a_host_port_conflicts_by_protocol_port_and_address(
    mine: Json, theirs: Json, free: bool
) -> None:
    found = judged(pod(ports=[mine]), node(), pod("q", ports=[theirs]))
    assert found == ("" if free else "NodePorts")


def test_sidecars_hold_host_ports_and_other_init_containers_do_not() -> None:
    init = {"name": "i", "ports": [{"hostPort": 80}]}
    asking = pod(ports=[{"hostPort": 80}])
    sidecar = init | {"restartPolicy": "Always"}
    assert judged(asking, node(), pod("q", initContainers=[init])) == ""
    assert judged(asking, node(), pod("q", initContainers=[sidecar])) == "NodePorts"


ALL = [
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
]
RESTARTING = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
MOUNTING = {"volumeMounts": [{"name": "v"}, {"name": "w", "bindMountOptions": ["noexec"]}]}


@pytest.mark.parametrize(
    ("wanted", "needed"),
    [
        (pod(), []),
        (pod(container=RESTARTING), ALL[:1]),
        (pod(initContainers=[{"name": "i", **RESTARTING}]), ALL[:1]),
        (pod(container={"restartPolicyRules": [{"action": "Restart"}]}), []),
        (pod(hostNetwork=True, hostUsers=False), ALL[1:2]),
        (pod(hostNetwork=True, hostUsers=True), []),
        (pod(hostNetwork=True), []),
        (pod(hostUsers=False), []),
        (pod(container=MOUNTING), ALL[2:]),
        (pod(initContainers=[{"name": "i", **MOUNTING}]), ALL[2:]),
        (pod(container={"volumeMounts": [{"name": "v"}]}), []),
        (pod(container=RESTARTING | MOUNTING, hostNetwork=True, hostUsers=False), ALL),
    ],
)
def test_a_node_must_declare_each_feature_that_a_pod_needs(wanted: Json, needed: list[str]) -> None:
    refused = "NodeDeclaredFeatures" if needed else ""
    assert judged(wanted, node(features=ALL)) == judged(wanted, node(features=needed)) == ""
    assert judged(wanted, node()) == judged(wanted, node(features=["Other"])) == refused
    for one in needed:
        assert judged(wanted, node(features=[other for other in ALL if other != one])) == refused


def test_features_are_asked_for_last() -> None:
    wanted = pod(container=MOUNTING, nodeSelector={"none": ""})
    assert judged(wanted, node(features=ALL)) == judged(wanted, node()) == "NodeAffinity"


some_words = st.sampled_from(["a", "b", "3", "-7", "12", "", "a b", "12 "])
expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["zone", "size", "none"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
        "values": st.lists(some_words, max_size=2),
    }
)
named = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(st.sampled_from(["n0", "n1", "gone"]), min_size=1, max_size=2),
    }
)
terms = st.fixed_dictionaries(
    {"matchExpressions": st.lists(expressions, max_size=2)},
    optional={"matchFields": st.lists(named, max_size=2)},
)
taints = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["k", "l"]),
        "value": st.sampled_from(["", "v", "1", "3"]),
        "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    }
)
tolerations = st.fixed_dictionaries(
    {"operator": st.sampled_from(["", "Equal", "Exists", "Lt", "Gt"])},
    optional={
        "key": st.sampled_from(["k", "l", "node.kubernetes.io/unschedulable"]),
        "value": st.sampled_from(["", "v", "2"]),
        "effect": st.sampled_from(["NoSchedule", "NoExecute"]),
    },
)
ports = st.lists(
    st.fixed_dictionaries(
        {"hostPort": st.sampled_from([80, 81])},
        optional={"hostIP": st.sampled_from(["10.0.0.1", "0.0.0.0"]), "protocol": st.just("UDP")},
    ),
    max_size=1,
)
affinities = st.none() | st.lists(terms, max_size=2).map(lambda some: requires(*some))
nodes = st.builds(
    lambda labels, some, cordoned, features: node(
        labels=labels, taints=some, unschedulable=cordoned, features=features
    ),
    st.dictionaries(st.sampled_from(["zone", "size"]), some_words, max_size=2),
    st.lists(taints, max_size=2),
    st.booleans(),
    st.lists(st.sampled_from(ALL), max_size=3),
)


@st.composite
def pods(draw: st.DrawFn) -> Json:
    spec: Json = {"tolerations": draw(st.lists(tolerations, max_size=3))}
    spec["nodeSelector"] = draw(st.dictionaries(st.just("zone"), some_words))
    if affinity := draw(affinities):
        spec["affinity"] = affinity
    container: Json = draw(st.sampled_from([{}, {}, RESTARTING, MOUNTING, RESTARTING | MOUNTING]))
    return pod(ports=draw(ports), container=container, **spec)


@given(pods(), st.lists(nodes, min_size=1, max_size=4), st.lists(ports, max_size=4))
@settings(max_examples=slices.count_examples(300), deadline=None)
def test_any_pod_is_refused_by_the_filter_that_the_twin_names(
    wanted: Json, some: list[Json], taken: list[list[Json]]
) -> None:
    for i, one in enumerate(some):
        one["metadata"] |= {"name": f"n{i}", "uid": f"n{i}"}
    others = {f"n{i}": [pod(f"q{i}", ports=held)] for i, held in enumerate(taken)}
    expected = {
        one["metadata"]["name"]: twin.refusal(wanted, one, others.get(f"n{i}", []))
        for i, one in enumerate(some)
    }
    assert refusals(wanted, some, others) == expected
