"""Groups and topologies in KAI's words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api.groups import table
from scheduler.api.groups.definitions import Constraint, Disruption, GroupKey, Level, Part, Rule
from scheduler.api.groups.objects import KaiPodGroup, KaiTopology
from tests.unit import group_objects as group

Json = dict[str, Any]
NAME = {"pod-group-name": "g"}
PART, ORDER = "kai.scheduler/subgroup-name", "kai.scheduler/task-priority"
RACK: Json = {"topology": "net", "requiredTopologyLevel": "rack", "preferredTopologyLevel": "host"}
NESTED: Json = {
    "topologyConstraint": {"topology": "net", "requiredTopologyLevel": "zone"},
    "subGroups": [
        {"name": "decode", "minSubGroup": 1, "topologyConstraint": RACK},
        {"name": "leaders", "parent": "decode", "minMember": 1},
        {"name": "workers", "parent": "Decode", "minMember": 4},
        {"name": "prefill", "minMember": 2},
    ],
}


def of_parts(*parts: Json, **more: Any) -> KaiPodGroup:
    return group.make_object(KaiPodGroup, {"subGroups": list(parts), **more})


def test_a_pod_names_its_group_and_its_part() -> None:
    member = group.read_member(group.make_pod({PART: "workers"}, NAME))
    assert member.group == GroupKey("PodGroup.scheduling.run.ai", "ns", "g")
    assert (member.part, member.order) == ("workers", 0)


def test_the_highest_priority_of_a_task_comes_first_and_none_comes_last() -> None:
    texts = ["5", "2147483647", "-2147483648", "0"]
    orders = {one: group.read_member(group.make_pod({ORDER: one}, NAME)).order for one in texts}
    assert sorted(texts, key=orders.__getitem__) == ["2147483647", "5", "0", "-2147483648"]
    assert max(orders.values()) < group.read_member(group.make_pod({}, NAME)).order


def test_a_priority_of_a_task_that_is_no_number_is_named() -> None:
    problem = group.find_problem(group.make_pod({ORDER: "high"}, NAME))
    assert problem.startswith(f"metadata.labels[{ORDER}]: 'high' is not an integer")


def test_a_group_of_pods_is_elastic_and_has_a_grace() -> None:
    definition = group.read(group.make_object(KaiPodGroup, {"minMember": 4}))
    assert definition.key == GroupKey("PodGroup.scheduling.run.ai", "ns", "g")
    assert definition.root == Part("", 4)
    assert definition.disruption == Disruption.EXTRAS
    assert definition.grace_seconds == 60


@pytest.mark.parametrize("spec", [{}, None, {"minMember": 0}, {"minMember": None}])
def test_a_group_without_a_minimum_needs_one_pod(spec: Any) -> None:
    assert group.read(group.make_object(KaiPodGroup, spec)).root == Part("", 1)


def test_groups_within_have_minima_and_places_of_their_own() -> None:
    root = group.read(group.make_object(KaiPodGroup, NESTED)).root
    rack = Constraint(Rule.KAI, topology="net", required="rack", preferred=("host",))
    leaves = (Part("leaders", 1), Part("workers", 4))
    decode = Part("decode", 1, constraint=rack, parts=leaves)
    zone = Constraint(Rule.KAI, topology="net", required="zone")
    assert root == Part("", 2, constraint=zone, parts=(decode, Part("prefill", 2)))


def test_all_groups_within_are_needed_unless_fewer_are_said_to_be() -> None:
    parts = [{"name": f"p{i}", "minMember": 1} for i in range(3)]
    assert group.read(of_parts(*parts, minMember=9)).root.minimum == 3
    assert group.read(of_parts(*parts, minSubGroup=2)).root.minimum == 2


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"minMember": 2, "minSubGroup": 1}, "spec.minSubGroup: may not stand beside minMember"),
        ({"minMember": -1}, "spec.minMember: -1 is not an integer within 0.."),
        ({"minSubGroup": 1}, "spec.minSubGroup: 1 is more than the 0 groups directly within"),
        ({"subGroups": [{"minMember": 1}]}, "spec.subGroups[0].name: None is not a name"),
        ({"subGroups": [{"name": "a", "minMember": 1}] * 2}, "spec.subGroups[1].name: 'a' is there twice"),
        ({"subGroups": [{"name": "a"}]}, "spec.subGroups[0].minMember: is missing"),
        ({"subGroups": [{"name": "a", "minMember": 1, "parent": "b"}]}, "subGroups[0].parent: there is no group 'b'"),
        ({"subGroups": [{"name": "a", "minMember": 1, "minSubGroup": 1}]}, "minSubGroup: no group lies within this one"),
        (
            {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "parent": "a", "minMember": 1}]},
            "subGroups[0].minMember: groups lie within this one: give minSubGroup",
        ),
        (
            {"subGroups": [{"name": "a", "minSubGroup": 2}, {"name": "b", "parent": "a", "minMember": 1}]},
            "subGroups[0].minSubGroup: 2 is more than the 1 groups directly within",
        ),
        ({"subGroups": [{"name": "a", "minMember": 1, "parent": "a"}]}, "its parents are a cycle"),
        (
            {"subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}, {"name": "c", "minMember": 1}]},
            "spec.subGroups[0].parent: the group lies within itself: its parents are a cycle",
        ),
        ({"subGroups": [{"name": f"p{i}", "minMember": 1} for i in range(65)]}, "has 65 items; at most 64"),
        ({"topologyConstraint": {"requiredTopologyLevel": 3}}, "requiredTopologyLevel: 3 is not a name"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(spec: Json, problem: str) -> None:
    assert problem in group.find_mistake(group.make_object(KaiPodGroup, spec))


def nest(depth: int) -> KaiPodGroup:
    parts: list[Json] = [{"name": f"p{i}", "parent": f"p{i - 1}"} for i in range(depth)]
    del parts[0]["parent"]
    parts[-1]["minMember"] = 1
    return of_parts(*parts)


def test_groups_lie_eight_deep_within_each_other_at_most() -> None:
    assert len(list(group.read(nest(8)).root.list_leaves())) == 1
    assert "more than 8 deep within each other" in group.find_mistake(nest(9))


def test_a_topology_lists_its_levels() -> None:
    spec = {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}
    topology = table.read_topology(group.make_object(KaiTopology, spec, name="net"))
    assert (topology.rule, topology.name) == (Rule.KAI, "net")
    assert topology.levels == (Level("zone", "zone"), Level("rack", "rack"))


@given(group.damage(NESTED))
def test_any_spec_gives_a_definition_or_a_mistake(spec: Any) -> None:
    group.check_odd(group.make_object(KaiPodGroup, spec))
    group.check_odd_topology(group.make_object(KaiTopology, spec))


PARENTS = st.lists(st.sampled_from([None, "p0", "p1", "p2", "p3", "P4", "p9"]), max_size=9)


@given(PARENTS)
def test_any_parents_give_a_definition_or_a_mistake(parents: list[str | None]) -> None:
    parts: list[Json] = [{"name": f"p{i}", "parent": one} for i, one in enumerate(parents)]
    for part in parts:
        if part["name"] not in {(one or "").lower() for one in parents}:
            part |= {"minMember": 1}
    group.check_odd(of_parts(*parts))
