"""Groups and places in Kueue's words."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.api import names
from scheduler.api.groups import table
from scheduler.api.groups.definitions import (
    Constraint,
    Disruption,
    GroupKey,
    Level,
    Part,
    Rule,
    Slice,
)
from scheduler.api.groups.objects import KueueTopology
from scheduler.errors import BadInput
from tests.unit import group_objects as group

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/"
GROUP, TOTAL = f"{KUEUE}pod-group-name", f"{KUEUE}pod-group-total-count"
RACK = {f"{KUEUE}podset-required-topology": "rack"}


def podset(**texts: str) -> dict[str, str]:
    return {f"{KUEUE}podset-{key.replace('_', '-')}": text for key, text in texts.items()}


def layers(*sizes: Any) -> str:
    return json.dumps([{"topology": f"l{i}", "size": size} for i, size in enumerate(sizes)])


def test_plain_pods_are_a_group_of_which_all_must_have_a_node() -> None:
    pod = group.make_pod(
        {GROUP: "g", f"{KUEUE}pod-group-pod-index": "2"},
        {TOTAL: "3", **RACK},
    )
    member = group.read_member(pod)
    assert member.group == GroupKey("PodGroup.kueue.x-k8s.io", "ns", "g")
    assert member.index == 2
    assert member.constraint == Constraint(Rule.KUEUE, required="rack")
    assert member.definition is not None
    assert member.definition.root == Part("", 3, 3)
    assert member.definition.disruption == Disruption.WHOLE


def test_the_pods_of_a_group_that_its_first_pod_admits_may_come_one_after_the_other() -> None:
    notes = {TOTAL: "3", f"{KUEUE}pod-group-fast-admission": "true"}
    definition = group.read_member(group.make_pod({GROUP: "g"}, notes)).definition
    assert definition is not None
    assert definition.root == Part("", 1, 3)
    notes[f"{KUEUE}pod-group-fast-admission"] = "false"
    definition = group.read_member(group.make_pod({GROUP: "g"}, notes)).definition
    assert definition is not None
    assert definition.root == Part("", 3, 3)


def test_an_annotation_may_name_the_label_of_the_index_and_where_it_starts() -> None:
    notes = {
        TOTAL: "9",
        f"{KUEUE}pod-group-pod-index-label": "rank",
        f"{KUEUE}pod-index-offset": "1",
    }
    assert group.read_member(group.make_pod({GROUP: "g", "rank": "4"}, notes)).index == 3
    assert group.read_member(group.make_pod({GROUP: "g"}, notes)).index == -1


def test_a_pod_of_a_job_that_says_where_it_goes_is_in_a_group_of_the_job() -> None:
    pod = group.make_pod({names.JOB_INDEX: "5"}, RACK, owner="batch/v1 Job train")
    member = group.read_member(pod)
    assert member.group == GroupKey("Job.batch", "ns", "train")
    assert member.index == 5
    assert member.constraint == Constraint(Rule.KUEUE, required="rack")
    assert member.definition is None


def test_a_pod_alone_that_says_where_it_goes_is_a_group_of_one() -> None:
    pod = group.make_pod(annotations=RACK)
    member = group.read_member(pod)
    assert member.group == GroupKey("Pod", "ns", "p")
    assert member.definition is not None
    assert member.definition.root == Part("", 1, 1)


def test_a_plain_pod_may_say_how_long_it_runs() -> None:
    assert table.read_run_seconds(group.make_pod(annotations={names.RUN_TIME: "90m"})) == 5400
    assert table.read_run_seconds(group.make_pod(spec={"activeDeadlineSeconds": 30})) == 30
    labels = {GROUP: "g", f"{KUEUE}max-exec-time-seconds": "60"}
    assert table.read_run_seconds(group.make_pod(labels, {TOTAL: "3"})) == 60
    assert table.read_run_seconds(group.make_pod()) is None
    with pytest.raises(BadInput, match="is not a duration"):
        table.read_run_seconds(group.make_pod(annotations={names.RUN_TIME: "soon"}))


@pytest.mark.parametrize(
    ("texts", "constraint"),
    [
        (podset(preferred_topology="block"), Constraint(Rule.KUEUE, preferred=("block",))),
        (podset(unconstrained_topology="true"), Constraint(Rule.KUEUE, spreads_freely=True)),
        (podset(unconstrained_topology="false"), None),
        (
            podset(slice_required_topology="host", slice_size="4"),
            Constraint(Rule.KUEUE, slices=(Slice("host", 4),)),
        ),
        (
            podset(preferred_topology="zone", slice_required_topology_constraints=layers(16, 8, 2)),
            Constraint(
                Rule.KUEUE,
                preferred=("zone",),
                slices=(Slice("l0", 16), Slice("l1", 8), Slice("l2", 2)),
            ),
        ),
        (
            podset(required_topology="rack", group_name="both"),
            Constraint(Rule.KUEUE, required="rack"),
        ),
    ],
)
def test_annotations_say_where_pods_go(texts: dict[str, str], constraint: Constraint) -> None:
    assert group.read_member(group.make_pod(annotations=texts)).constraint == constraint


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (podset(required_topology="a", preferred_topology="b"), "preferred-topology]: may not stand beside kueue.x-k8s.io/podset-required"),
        (podset(required_topology="a", unconstrained_topology="true"), "unconstrained-topology]: may not stand beside"),
        (podset(unconstrained_topology="yes"), "'yes' is neither true nor false"),
        (podset(required_topology=""), "'' is not a label"),
        (podset(slice_size="2"), "slice-size]: needs both"),
        (podset(slice_required_topology="a"), "slice-required-topology]: needs both"),
        (podset(slice_required_topology="a", slice_size="0"), "slice-size]: '0' is not an integer"),
        (podset(slice_required_topology_constraints="[]"), "has no layer; 1 to 3"),
        (podset(slice_required_topology_constraints="x"), "'x' is not JSON"),
        (podset(slice_required_topology_constraints=layers(8, 4, 2, 1)), "has 4 items; at most 3"),
        (podset(slice_required_topology_constraints=layers(8, 3)), "[1].size: 3 does not divide 8"),
        (podset(slice_required_topology_constraints=layers("8")), "[0].size: '8' is not an integer"),
        (podset(slice_required_topology_constraints=layers(8), slice_size="2"), "constraints]: may not stand beside"),
        (podset(slice_required_topology_constraints='[{"topology":"a","size":4},{"topology":"a","size":2}]'), "[1].topology: 'a' is there twice"),
        (podset(group_name="both"), "group-name]: needs kueue.x-k8s.io/podset-required-topology or"),
        (podset(group_name="7", required_topology="a"), "group-name]: must not be a number"),
        (podset(group_name="both", slice_size="1", slice_required_topology="a"), "group-name]: may not stand beside"),
        ({TOTAL: "3"}, "metadata.labels[kueue.x-k8s.io/pod-group-name]: is missing"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(texts: dict[str, str], problem: str) -> None:
    assert problem in group.find_problem(group.make_pod(annotations=texts))


@pytest.mark.parametrize(
    ("total", "problem"),
    [
        (None, "pod-group-total-count]: is missing; the label"),
        ("0", "'0' is not an integer within 1.."),
        ("²", "is not an integer"),
        ("2147483648", "'2147483648' is not an integer"),
    ],
)
def test_a_group_of_plain_pods_needs_its_total(total: str | None, problem: str) -> None:
    notes = {} if total is None else {TOTAL: total}
    assert problem in group.find_problem(group.make_pod({GROUP: "g"}, notes))


def test_an_index_before_the_first_is_named() -> None:
    notes = {TOTAL: "2", f"{KUEUE}pod-index-offset": "3"}
    pod = group.make_pod({GROUP: "g", f"{KUEUE}pod-group-pod-index": "1"}, notes)
    assert "pod-index-offset]: 3 is more than the pod's index, 1" in group.find_problem(pod)


def test_a_topology_lists_its_levels() -> None:
    spec = {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": names.HOSTNAME}]}
    topology = table.read_topology(group.make_object(KueueTopology, spec, name="net"))
    hosts = Level(names.HOSTNAME, names.HOSTNAME)
    assert (topology.rule, topology.name) == (Rule.KUEUE, "net")
    assert topology.levels == (Level("rack", "rack"), hosts)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([], r"spec.levels: has no level"),
        (["a"] * 2, r"levels\[1\].nodeLabel: 'a' is there twice"),
        ([names.HOSTNAME, "a"], "nothing lies within kubernetes.io/hostname"),
        ([f"l{i}" for i in range(17)], "has 17 items; at most 16"),
        ([3], r"levels\[0\].nodeLabel: 3 is not a label"),
    ],
)
def test_a_wrong_topology_is_refused(labels: list[Any], problem: str) -> None:
    spec = {"levels": [{"nodeLabel": label} for label in labels]}
    with pytest.raises(BadInput, match=problem):
        table.read_topology(group.make_object(KueueTopology, spec))


ODD = st.sampled_from([
    "", "1", "-1", "true", "rack", "[]", "{}", "[1]", "[" * 10_000, "9" * 5000, "\ud800", "x" * 300,
    layers(4, 2), layers(10**30), layers(0), layers(None),
])  # fmt: skip


@given(st.dictionaries(st.sampled_from(sorted(table._ANNOTATIONS)), ODD, max_size=5), ODD)
def test_any_annotations_give_a_membership_or_a_mistake(notes: dict[str, str], name: str) -> None:
    group.check_odd_pod(group.make_pod({GROUP: name}, notes))
    group.check_odd_pod(group.make_pod({}, notes, owner="batch/v1 Job train"))


@given(group.damage({"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]}))
def test_any_topology_is_read_or_refused(spec: Any) -> None:
    group.check_odd_topology(group.make_object(KueueTopology, spec))
