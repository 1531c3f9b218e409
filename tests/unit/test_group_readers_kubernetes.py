"""Groups in Kubernetes' own words, and what all readers share: pods in no group, and pods in two."""

from typing import Any

import pytest
from hypothesis import given

from scheduler.api.groups import table
from scheduler.api.groups.definitions import Constraint, Disruption, GroupKey, Part, Rule
from scheduler.api.groups.objects import CompositePodGroup, KubePodGroup
from tests import make
from tests.unit import group_objects as group

Json = dict[str, Any]
KIND, ABOVE = "PodGroup.scheduling.k8s.io", "CompositePodGroup.scheduling.k8s.io"
GANG: Json = {"schedulingPolicy": {"gang": {"minCount": 4}}}
WHOLE: Json = {
    **GANG,
    "parentCompositePodGroupName": "above",
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "disruptionMode": {"all": {}},
    "priority": 7,
    "preemptionPolicy": "Never",
}


def of_kubernetes(name: Any = "g", **more: Any) -> Any:
    return group.make_pod(spec={"schedulingGroup": {"podGroupName": name}}, **more)


def test_a_plain_pod_is_in_no_group() -> None:
    assert table.read_membership(make.pod()) is None
    assert table.read_membership(make.pod(labels={"app": "web"}, annotations={"a": "b"})) is None
    assert table.read_membership(group.make_pod(owner="batch/v1 Job train")) is None


def test_a_pod_names_its_group() -> None:
    member = group.read_member(of_kubernetes())
    assert member.group == GroupKey(KIND, "ns", "g")
    assert (member.part, member.index, member.order, member.definition) == ("", -1, 0, None)


@pytest.mark.parametrize("name", [None, "", 3, "x" * 254])
def test_a_pod_that_names_no_name_has_a_problem(name: Any) -> None:
    assert group.find_problem(of_kubernetes(name)).startswith("spec.schedulingGroup.podGroupName: ")


def test_a_pod_in_two_groups_has_a_problem_that_names_both() -> None:
    pod = of_kubernetes(annotations={"pod-group-name": "other"})
    assert "Kubernetes group 'g' and KAI group 'other'" in group.find_problem(pod)
    member = table.read_membership(pod)
    assert member is not None
    assert member.group == GroupKey(KIND, "ns", "g")


@pytest.mark.parametrize(
    ("labels", "notes"), [({}, {"pod-group-name": "x" * 254}), ({"kai.scheduler/subgroup-name": "x" * 254}, {"pod-group-name": "g"})]
)  # fmt: skip
def test_a_name_that_no_object_can_have_is_cut(labels: Json, notes: Json) -> None:
    pod = group.make_pod(labels, notes)
    assert "has more than 253 characters" in group.find_problem(pod)
    member = table.read_membership(pod)
    assert member is not None
    assert max(len(member.group.name), len(member.part)) == 253


def test_kueues_constraint_is_no_second_group() -> None:
    pod = of_kubernetes(annotations={"kueue.x-k8s.io/podset-required-topology": "rack"})
    member = group.read_member(pod)
    assert member.group == GroupKey(KIND, "ns", "g")
    assert member.constraint == Constraint(Rule.KUEUE, required="rack")


def test_the_group_of_the_api_server_comes_before_that_of_the_owner() -> None:
    pod = of_kubernetes(annotations={"evenkeel.dev/gang": "all"}, owner="batch/v1 Job train")
    assert group.read_member(pod, "Job").group == GroupKey(KIND, "ns", "g")


def test_a_gang_says_everything() -> None:
    definition = group.read(group.make_object(KubePodGroup, WHOLE))
    assert definition.key == GroupKey(KIND, "ns", "g")
    assert definition.root == Part("", 4, constraint=Constraint(Rule.KUBERNETES, required="rack"))
    assert definition.is_gang
    assert (definition.priority, definition.preempts) == (7, False)
    assert definition.disruption == Disruption.WHOLE
    assert definition.parent == GroupKey(ABOVE, "ns", "above")


def test_defaults_are_those_of_the_api_server() -> None:
    definition = group.read(group.make_object(KubePodGroup, GANG))
    assert definition.disruption == Disruption.SINGLE
    assert (definition.priority, definition.preempts, definition.parent) == (0, None, None)
    assert definition.grace_seconds is None


def test_a_priority_class_that_nobody_has_resolved_is_no_priority() -> None:
    spec = GANG | {"priorityClassName": "high"}
    assert group.read(group.make_object(KubePodGroup, spec)).priority is None


def test_any_pod_of_a_basic_group_runs() -> None:
    spec = {"schedulingPolicy": {"basic": {}}, "preemptionPolicy": "PreemptLowerPriority"}
    definition = group.read(group.make_object(KubePodGroup, spec))
    assert not definition.is_gang
    assert definition.root == Part("", 1)
    assert definition.preempts is True


def test_a_composite_group_counts_its_children() -> None:
    spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    definition = group.read(group.make_object(CompositePodGroup, spec))
    assert definition.key == GroupKey(ABOVE, "ns", "g")
    assert definition.root == Part("", 2)


def test_an_annotation_says_how_long_a_group_runs() -> None:
    notes = {"evenkeel.dev/run-time": "1h30m"}
    definition = group.read(group.make_object(KubePodGroup, GANG, annotations=notes))
    assert definition.run_seconds == 5400


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schedulingPolicy": None}, "spec.schedulingPolicy: must have exactly one of basic and gang"),
        ({"schedulingPolicy": {"basic": {}, "gang": {}}}, "spec.schedulingPolicy: must have exactly"),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: None is not"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "gang.minCount: 0 is not an integer within 1.."),
        ({"schedulingPolicy": {"gang": {"minCount": 2**31}}}, "gang.minCount: 2147483648 is not"),
        ({"schedulingPolicy": {"gang": {"minCount": 10**5000}}}, "a number with thousands of digits is not"),
        ({"disruptionMode": {}}, "spec.disruptionMode: must have exactly one of single and all"),
        ({"schedulingConstraints": {"topology": [{}]}}, "topology[0].key: None is not a label"),
        ({"schedulingConstraints": {"topology": [{}, {}]}}, "topology: has 2 items; at most 1"),
        ({"priority": "7"}, "spec.priority: '7' is not an integer"),
        ({"preemptionPolicy": "Sometimes"}, "'Sometimes' is not one of Never, PreemptLowerPriority"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(change: Json, problem: str) -> None:
    assert problem in group.find_mistake(group.make_object(KubePodGroup, WHOLE | change))


@given(group.damage(WHOLE))
def test_any_spec_gives_a_definition_or_a_mistake(spec: Any) -> None:
    group.check_odd(group.make_object(KubePodGroup, spec))
    group.check_odd(group.make_object(CompositePodGroup, spec))


@given(group.JSON)
def test_any_name_gives_a_membership_or_a_mistake(name: Any) -> None:
    group.check_odd_pod(of_kubernetes(name))
