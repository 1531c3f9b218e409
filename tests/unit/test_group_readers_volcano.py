"""Groups in Volcano's words."""

from typing import Any

import pytest
from hypothesis import given

from scheduler.api.groups.definitions import OTHERS, Disruption, GroupKey, Part
from scheduler.api.groups.objects import VolcanoPodGroup
from tests.unit import group_objects as group

Json = dict[str, Any]
NAME, TOO = "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"
TASKS: Json = {"minMember": 5, "minTaskMember": {"master": 1, "worker": 4}}


@pytest.mark.parametrize("notes", [{NAME: "g"}, {TOO: "g"}, {NAME: "g", TOO: "g"}])
def test_a_pod_names_its_group_and_its_task(notes: dict[str, str]) -> None:
    member = group.read_member(group.make_pod({"volcano.sh/task-spec": "worker"}, notes))
    assert member.group == GroupKey("PodGroup.scheduling.volcano.sh", "ns", "g")
    assert member.part == "worker"


@pytest.mark.parametrize(
    ("label", "annotation", "task"),
    [("", "ps", "ps"), ("worker", "ps", "ps"), ("worker", "", "worker"), ("", "", "")],
)
def test_the_annotation_for_the_task_comes_before_the_label(
    label: str, annotation: str, task: str
) -> None:
    labels = {"volcano.sh/task-spec": label} if label else {}
    notes = {NAME: "g", "volcano.sh/task-spec": annotation}
    assert group.read_member(group.make_pod(labels, notes)).part == task


def test_two_names_that_differ_are_named() -> None:
    problem = group.find_problem(group.make_pod({}, {NAME: "g", TOO: "h"}))
    assert problem == f"metadata.annotations[{TOO}]: 'h' is another group than 'g' of {NAME}"


def test_a_group_has_a_minimum() -> None:
    definition = group.read(group.make_object(VolcanoPodGroup, {"minMember": 3}))
    assert definition.key == GroupKey("PodGroup.scheduling.volcano.sh", "ns", "g")
    assert definition.root == Part("", 3)
    assert definition.disruption == Disruption.EXTRAS
    assert group.read(group.make_object(VolcanoPodGroup, {})).root == Part("", 0)


def test_tasks_are_parts_and_pods_of_other_tasks_are_extras() -> None:
    parts = (Part("master", 1), Part("worker", 4), Part(OTHERS, 0))
    assert group.read(group.make_object(VolcanoPodGroup, TASKS)).root == Part("", 3, parts=parts)


def test_minima_of_tasks_above_that_of_the_group_do_not_count() -> None:
    root = group.read(group.make_object(VolcanoPodGroup, TASKS | {"minMember": 3})).root
    assert root == Part("", 3)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"minMember": 6}, "spec.minMember: 6 is more than minTaskMember adds up to, 5"),
        ({"minMember": "5"}, "spec.minMember: '5' is not an integer"),
        ({"minTaskMember": {"worker": -1}}, "spec.minTaskMember[worker]: -1 is not"),
        ({"minTaskMember": {OTHERS: 5}}, "spec.minTaskMember[*]: is not the name of a task"),
        ({"minTaskMember": {f"t{i}": 1 for i in range(65)}}, "has 65 items; at most 64"),
        ({"networkTopology": {"mode": "hard"}}, "spec.networkTopology: is not supported: it needs HyperNode"),
        ({"subGroupPolicy": [{"name": "a"}]}, "spec.subGroupPolicy: is not supported: it needs HyperNode"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(change: Json, problem: str) -> None:
    assert problem in group.find_mistake(group.make_object(VolcanoPodGroup, TASKS | change))


@given(group.damage(TASKS))
def test_any_spec_gives_a_definition_or_a_mistake(spec: Any) -> None:
    group.check_odd(group.make_object(VolcanoPodGroup, spec))
