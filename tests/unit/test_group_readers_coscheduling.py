"""Groups in the words of scheduler-plugins and Koordinator."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api.groups import table
from scheduler.api.groups.definitions import Constraint, GroupKey, Level, Match, Part, Rule, Slice
from scheduler.api.groups.objects import ClusterNetworkTopology, SigsPodGroup, XPodGroup
from scheduler.errors import BadInput
from tests.unit import group_objects as group

Json = dict[str, Any]
KIND, LABEL = "PodGroup.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io"
X_LABEL = "scheduling.x-k8s.io/pod-group"
GANG = "gang.scheduling.koordinator.sh/"
GATHER: Json = {
    "gatherStrategy": [
        {"layer": "spine", "strategy": "MustGather", "podCountMultiple": 8},
        {"layer": "block", "strategy": "MustGather", "podCountMultiple": 4},
        {"layer": "rack", "strategy": "PreferGather"},
        {"layer": "host", "strategy": "PreferGather"},
    ]
}
LAYERS: Json = {
    "networkTopologySpec": [
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "block"},
        {"topologyLayer": "block", "parentTopologyLayer": "spine", "labelKey": ["net/block"]},
        {"topologyLayer": "spine", "parentTopologyLayer": "ClusterTopologyLayer", "labelKey": ["net/spine"]},
        {"topologyLayer": "ClusterTopologyLayer"},
    ]
}  # fmt: skip


def notes(**texts: str) -> dict[str, str]:
    return {GANG + key.replace("_", "-"): text for key, text in texts.items()}


def test_a_label_names_the_group_and_an_object_says_what_it_is() -> None:
    pod = group.make_pod({LABEL: "g"}, notes(network_topology_index="3"))
    member = group.read_member(pod)
    assert member.group == GroupKey(KIND, "ns", "g")
    assert (member.index, member.definition) == (3, None)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("min_available", "3"),
        ("total_number", "5"),
        ("network_topology_spec", json.dumps(GATHER)),
        ("groups", '["ns/other"]'),
        ("match_policy", "only-waiting"),
    ],
)
def test_the_annotation_is_named_in_which_two_pods_of_a_group_differ(key: str, text: str) -> None:
    texts = notes(name="g", min_available="4", total_number="4")
    pods = [group.make_pod(annotations=one) for one in (texts, texts | notes(**{key: text}))]
    one, other = (group.read_member(pod).definition for pod in pods)
    assert one is not None
    assert other is not None
    (changed,) = notes(**{key: text})
    assert table.name_difference(one, other) == f"metadata.annotations[{changed}]"


def test_annotations_alone_say_what_the_group_is() -> None:
    texts = notes(
        name="g",
        min_available="2",
        total_number="4",
        match_policy="only-waiting",
    )
    definition = group.read_member(group.make_pod(annotations=texts)).definition
    assert definition is not None
    assert definition.key == GroupKey(KIND, "ns", "g")
    assert definition.root == Part("", 2, 4)
    assert definition.match == Match.WAITING


def test_a_group_has_koordinators_defaults() -> None:
    definition = group.read(group.make_object(SigsPodGroup, {"minMember": 3}))
    assert definition.root == Part("", 3, 3)
    assert definition.match == Match.ONCE
    assert definition.together == ()


def test_a_total_below_the_minimum_is_raised() -> None:
    found = group.make_object(SigsPodGroup, {"minMember": 3}, annotations=notes(total_number="1"))
    assert group.read(found).root == Part("", 3, 3)


def test_how_long_pods_would_wait_and_in_which_mode_is_not_read() -> None:
    spec = {"minMember": 3, "scheduleTimeoutSeconds": "soon"}
    found = group.make_object(SigsPodGroup, spec, annotations=notes(mode="?", waiting_time="?"))
    assert group.read(found) == group.read(group.make_object(SigsPodGroup, {"minMember": 3}))


def test_scheduler_plugins_names_groups_by_a_label_of_its_own_api_group() -> None:
    member = group.read_member(group.make_pod({X_LABEL: "g"}))
    assert member.group == GroupKey("PodGroup.scheduling.x-k8s.io", "ns", "g")
    definition = group.read(group.make_object(XPodGroup, {"minMember": 3}))
    assert definition.key == member.group
    assert definition.root == Part("", 3, 3)
    assert definition.match == Match.WAITING_AND_RUNNING


@pytest.mark.parametrize(
    ("labels", "texts", "problem"),
    [
        ({LABEL: "h"}, {}, f"metadata.labels[{LABEL}]: 'h' is another group than 'g' of the label {X_LABEL}"),
        ({}, notes(name="h"), "'h' is another group than 'g' of the label"),
    ],
)  # fmt: skip
def test_a_pod_is_in_one_group_of_these_systems(
    labels: dict[str, str], texts: dict[str, str], problem: str
) -> None:
    pod = group.make_pod({X_LABEL: "g"} | labels, texts)
    assert problem in group.find_problem(pod)


def test_the_policy_may_stand_under_its_other_name() -> None:
    texts = {f"{LABEL}/match-policy": "waiting-and-running"}
    definition = group.read(group.make_object(SigsPodGroup, {"minMember": 1}, annotations=texts))
    assert definition.match == Match.WAITING_AND_RUNNING


def test_groups_that_are_placed_together_are_sorted_and_the_group_is_among_them() -> None:
    texts = notes(groups='["ns/z", "other/a", "ns/z"]')
    definition = group.read(group.make_object(SigsPodGroup, {"minMember": 1}, annotations=texts))
    keys = [GroupKey(KIND, *one) for one in (("ns", "g"), ("ns", "z"), ("other", "a"))]
    assert definition.together == tuple(keys)
    alone = group.make_object(SigsPodGroup, {"minMember": 1}, annotations=notes(groups='["ns/g"]'))
    assert group.read(alone).together == ()


def test_layers_gather_pods_or_wish_to() -> None:
    texts = notes(network_topology_spec=json.dumps(GATHER))
    definition = group.read(group.make_object(SigsPodGroup, {"minMember": 8}, annotations=texts))
    assert definition.root.constraint == Constraint(
        Rule.KOORDINATOR,
        required="spine",
        also_required=("block",),
        preferred=("rack", "host"),
        slices=(Slice("spine", 8), Slice("block", 4)),
    )


def test_no_rules_about_layers_are_no_constraint() -> None:
    texts = notes(network_topology_spec='{"gatherStrategy": []}')
    definition = group.read(group.make_object(SigsPodGroup, {"minMember": 8}, annotations=texts))
    assert definition.root.constraint is None


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (notes(name="g"), "min-available]: is missing"),
        (notes(name="g", min_available="0"), "min-available]: '0' is not an integer within 1.."),
        (notes(name="g", min_available="two"), "min-available]: 'two' is not an integer"),
        (notes(name="g", min_available="2", total_number="x"), "total-number]: 'x' is not"),
        (notes(name="g", min_available="2", match_policy="x"), "not one of once-satisfied, only-waiting, waiting-and-running"),
        (notes(name="g", min_available="2", groups="a,b"), "groups]: 'a,b' is not JSON"),
        (notes(name="g", min_available="2", groups=" " * 20_000), "groups]: has more than 16384 characters"),
        (notes(name="g", min_available="2", groups='["a"]'), "groups][0]: 'a' is not namespace/name"),
        (notes(name="g", min_available="2", groups="[1]"), "groups][0]: 1 is not a text"),
        (notes(name="g", min_available="2", network_topology_index="-1"), "index]: '-1' is not"),
        (
            notes(name="g", min_available="2", total_number="3", network_topology_spec=json.dumps(GATHER)),
            "needs all pods at once, but the minimum is 2 of 3",
        ),
    ],
)  # fmt: skip
def test_a_mistake_of_a_pod_is_named(texts: dict[str, str], problem: str) -> None:
    assert problem in group.find_problem(group.make_pod(annotations=texts))


def test_a_label_and_an_annotation_that_differ_are_named() -> None:
    problem = group.find_problem(group.make_pod({LABEL: "g"}, notes(name="h")))
    assert "'h' is another group than 'g' of the label" in problem


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"layer": "rack", "strategy": "Gather"}, "strategy: 'Gather' is not one of MustGather, PreferGather"),
        ({"strategy": "MustGather"}, "gatherStrategy[0].layer: None is not a name"),
        ({"layer": "rack", "strategy": "MustGather", "podCountMultiple": -1}, "podCountMultiple: -1 is not"),
    ],
)  # fmt: skip
def test_a_mistake_about_layers_is_named(rule: Json, problem: str) -> None:
    texts = notes(network_topology_spec=json.dumps({"gatherStrategy": [rule]}))
    found = group.make_object(SigsPodGroup, {"minMember": 1}, annotations=texts)
    assert problem in group.find_mistake(found)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([{"layer": "spine", "strategy": "MustGather"}, {"layer": "spine", "strategy": "PreferGather"}], "'spine' is there twice"),
        ([{"layer": "ClusterTopologyLayer", "strategy": "PreferGather", "podCountMultiple": 2}], "is not supported for ClusterTopologyLayer"),
        ([{"layer": "spine", "strategy": "MustGather", "podCountMultiple": -1}], "podCountMultiple"),
    ],
)  # fmt: skip
def test_odd_layers_are_refused(rules: list[Json], problem: str) -> None:
    texts = notes(network_topology_spec=json.dumps({"gatherStrategy": rules}))
    found = group.make_object(SigsPodGroup, {"minMember": 1}, annotations=texts)
    assert problem in group.find_mistake(found)


def test_the_cluster_and_single_pods_constrain_nothing() -> None:
    rules = [
        {"layer": "ClusterTopologyLayer", "strategy": "MustGather"},
        {"layer": "block", "strategy": "MustGather", "podCountMultiple": 1},
    ]
    texts = notes(network_topology_spec=json.dumps({"gatherStrategy": rules}))
    definition = group.read(group.make_object(SigsPodGroup, {"minMember": 8}, annotations=texts))
    assert definition.root.constraint == Constraint(Rule.KOORDINATOR, required="block")


def test_a_pod_names_the_company_that_it_belongs_near() -> None:
    key = "scheduling.koordinator.sh/network-topology-selector"
    assert group.read_member(group.make_pod({LABEL: "g"}, {key: "job-7"})).company == "job-7"
    problem = group.find_problem(group.make_pod({LABEL: "g"}, {key: "x" * 254}))
    assert "has more than 253 characters" in problem


def test_layers_are_ordered_by_their_parents() -> None:
    topology = table.read_topology(group.make_object(ClusterNetworkTopology, LAYERS, name="net"))
    assert (topology.rule, topology.name) == (Rule.KOORDINATOR, "net")
    hosts = Level("NodeTopologyLayer", "kubernetes.io/hostname")
    assert topology.levels == (Level("spine", "net/spine"), Level("block", "net/block"), hosts)


@pytest.mark.parametrize(
    ("layers", "problem"),
    [
        ([], "has no layer NodeTopologyLayer, which must be the finest"),
        ([{"topologyLayer": "a", "labelKey": ["x"]}], "has no layer NodeTopologyLayer"),
        ([{"topologyLayer": "a", "labelKey": ["x", "y"]}], "has 2 labels; exactly 1 is supported"),
        ([{"topologyLayer": "a", "labelKey": ["x"]}, {"topologyLayer": "b", "labelKey": ["y"]}], "a and b lie in one layer"),
        ([{"topologyLayer": "a", "parentTopologyLayer": "a", "labelKey": ["x"]}], "a: no line of parents"),
    ],
)  # fmt: skip
def test_layers_that_are_no_line_are_refused(layers: list[Json], problem: str) -> None:
    found = group.make_object(ClusterNetworkTopology, {"networkTopologySpec": layers})
    with pytest.raises(BadInput, match=problem):
        table.read_topology(found)


@given(group.damage({"minMember": 3}), group.damage(GATHER))
def test_any_object_gives_a_definition_or_a_mistake(spec: Any, gather: Any) -> None:
    group.check_odd(group.make_object(XPodGroup, spec))
    text = json.dumps(gather, default=str) if len(str(gather)) < 4000 else "[" * 20_000
    group.check_odd(
        group.make_object(SigsPodGroup, spec, annotations=notes(network_topology_spec=text))
    )


@given(
    st.dictionaries(
        st.sampled_from([
            "name", "min_available", "total_number", "waiting_time", "mode", "groups",
            "match_policy", "network_topology_spec", "network_topology_index",
        ]),
        st.sampled_from(["1", "-1", "1h", "[", '["a/b"]', "{}", "9" * 5000, "[" * 10_000, "\ud800", "x" * 300]),
    ).map(lambda texts: {"name": "g"} | texts)
)  # fmt: skip
def test_any_annotations_give_a_membership_or_a_mistake(texts: dict[str, str]) -> None:
    group.check_odd_pod(group.make_pod(annotations=notes(**texts)))


@given(group.damage(LAYERS))
def test_any_layers_are_read_or_refused(spec: Any) -> None:
    group.check_odd_topology(group.make_object(ClusterNetworkTopology, spec))
