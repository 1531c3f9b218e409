"""NodeResourcesFit, and the sentences of pods that fit nowhere."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.api import names, wire
from scheduler.api.door.decisions import Diagnosis, Hold, Outcome
from scheduler.config import Config
from scheduler.errors import Mistake
from scheduler.telling import sayings
from tests import make, slices
from tests.oracles import quantities


def outcome(pod: wire.Pod, nodes: list[wire.Node], there: list[wire.Pod]) -> Outcome:
    cluster = make.cluster(nodes=nodes, pods=there)
    record = cluster.see_pod(pod)
    assert record is not None
    return make.cycle(cluster=cluster, config=Config(preemption=False)).schedule([record])


def sentence(pod: wire.Pod, nodes: list[wire.Node], *there: wire.Pod) -> str:
    """Why the pod is pending; empty when it is not."""
    decided = outcome(pod, nodes, list(there))
    return sayings.write_sentence(decided.holds[0]) if decided.holds else ""


@pytest.mark.parametrize(
    ("asked", "has", "reason"),
    [
        ({"cpu": "1"}, {"cpu": "1"}, ""),
        ({"cpu": "1001m"}, {"cpu": "1"}, "Insufficient cpu"),
        ({"cpu": "1000001u"}, {"cpu": "1"}, "Insufficient cpu"),
        ({"memory": "1Gi"}, {"memory": "1Gi"}, ""),
        ({"memory": "1073741825"}, {"memory": "1Gi"}, "Insufficient memory"),
        ({"ephemeral-storage": "1"}, {}, "Insufficient ephemeral-storage"),
        ({"ephemeral-storage": "0"}, {}, ""),
        ({"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "1Gi"}, ""),
        ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "2Mi"}, "Insufficient hugepages-2Mi"),
        ({"hugepages-2Mi": "2Mi"}, {"hugepages-2Mi": "2Mi"}, ""),
        ({"example.com/x": "1"}, {}, "Insufficient example.com/x"),
        ({"example.com/x": "2"}, {"example.com/x": "2"}, ""),
        ({"example.com/x": "3"}, {"example.com/x": "2"}, "Insufficient example.com/x"),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, ""),
        ({"cpu": "1"}, {"pods": "0"}, "Too many pods"),
        ({}, {"pods": "0"}, "Too many pods"),
        ({}, {"cpu": "0", "memory": "0"}, ""),
    ],
)
def test_a_resource_fits_to_the_last_unit(
    asked: dict[str, str], has: dict[str, str], reason: str
) -> None:
    node = make.node(allocatable=has)
    found = sentence(make.pod(requests=asked), [node])
    assert found == (f"0/1 nodes are available: 1 {reason}." if reason else "")


def test_a_resource_that_is_over_full_refuses_only_who_asks_some_of_it() -> None:
    node = make.node(cpu=1, memory="1Gi", allocatable={"example.com/x": 1})
    there = make.pod(name="there", node="node", cpu=2, requests={"example.com/x": 2})
    assert not sentence(make.pod(name="p", memory="1Gi"), [node], there)
    assert not sentence(make.pod(name="p", cpu=0, requests={"example.com/x": 0}), [node], there)
    assert "Insufficient cpu" in sentence(make.pod(name="p", cpu="1m"), [node], there)


@pytest.mark.parametrize(
    ("asked", "has", "helpless"),
    [
        ({"cpu": "2"}, {"cpu": "1"}, True),
        ({"cpu": "2"}, {"cpu": "2"}, False),
        ({"cpu": "2", "memory": "1"}, {"cpu": "2", "memory": "0"}, True),
        ({"example.com/x": "1"}, {}, True),
        # Also where a node takes no pods at all, kube-scheduler looks for somebody to evict.
        ({}, {"pods": "0"}, False),
        ({"cpu": "2"}, {"cpu": "2", "pods": "1"}, False),
        ({"cpu": "2"}, {"cpu": "1", "pods": "0"}, True),
    ],
)
def test_eviction_cannot_help_where_a_resource_is_more_than_the_whole_node_has(
    asked: dict[str, str], has: dict[str, str], helpless: bool
) -> None:
    there = make.pod(name="there", node="node", cpu=1)
    (hold,) = outcome(make.pod(requests=asked), [make.node(allocatable=has)], [there]).holds
    assert hold.diagnosis is not None
    assert hold.diagnosis.unresolvable == int(helpless)


def test_what_others_hold_is_not_free_whichever_scheduler_placed_them() -> None:
    nodes = [make.node(cpu=2, pods=2, allocatable={"example.com/x": 2})]
    other = make.pod(
        name="o", node="node", scheduler_name="s", cpu="1500m", requests={"example.com/x": 1}
    )
    more = {"example.com/x": 1}
    assert not sentence(make.pod(cpu="500m", requests=more), nodes, other)
    assert sentence(make.pod(cpu="501m", requests={"example.com/x": 2}), nodes, other) == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/x."
    )
    another = make.pod(name="q", node="node")
    assert sentence(make.pod(), nodes, other, another) == (
        "0/1 nodes are available: 1 Too many pods."
    )


def test_a_default_for_scores_is_never_charged_in_fit() -> None:
    there = [make.pod(name=f"q{i}", node="node") for i in range(9)]
    assert not sentence(make.pod(cpu="1"), [make.node(cpu=1)], *there)


def test_cards_memory_and_cores_are_no_capacity_of_a_node_that_hami_manages() -> None:
    asked = make.pod(gpu=1, gpumem=100, gpucores=10, requests={"nvidia.com/priority": 1})
    assert not sentence(asked, [make.hami_node()])
    assert sentence(asked, [make.node(gpus=1)]) == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpucores, "
        "1 Insufficient nvidia.com/gpumem, 1 Insufficient nvidia.com/priority."
    )


def test_slots_of_a_hami_node_count_before_its_cards() -> None:
    node = make.hami_node(cards=2, allocatable={names.GPU: 1})
    assert sentence(make.pod(gpu=2, gpumem=1), [node]) == (
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )


@pytest.mark.parametrize("size", [64, 65, 200])
def test_every_node_of_a_large_cluster_is_counted(size: int) -> None:
    nodes = [make.node(name=f"n{i:03}", cpu=1 + i % 2) for i in range(size)]
    low, high = size - size // 2, size // 2
    found = sentence(make.pod(cpu=2, requests={"memory": "64Gi"}), nodes)
    assert found == (
        f"0/{size} nodes are available: "
        + ", ".join(sorted([f"{low} Insufficient cpu", f"{low + high} Insufficient memory"]))
        + "."
    )


def test_a_node_is_counted_under_the_first_filter_that_refuses_it() -> None:
    all_of_it: dict[str, Any] = {
        "cpu": 1,
        "unschedulable": True,
        "taints": [("k", "", "NoExecute")],
    }
    tolerant = make.pod(
        cpu=2, node_selector={"a": "b"}, host_ports=[80],
        tolerations=[{"operator": "Exists"}],
    )  # fmt: skip
    holder = make.pod(name="q", node="n", host_ports=[80])
    chain: list[tuple[Any, dict[str, Any], str]] = [
        (make.pod(cpu=2, node_selector={"a": "b"}, host_ports=[80]), {}, "node(s) were unschedulable"),
        (make.pod(cpu=2, node_selector={"a": "b"}, host_ports=[80]), {"unschedulable": False}, "node(s) had untolerated taint(s)"),
        (tolerant, {}, "node(s) didn't match Pod's node affinity/selector"),
        (tolerant, {"labels": {"a": "b"}}, "node(s) didn't have free ports for the requested pod ports"),
    ]  # fmt: skip
    for pod, more, reason in chain:
        node = make.node(name="n", **(all_of_it | more))
        assert sentence(pod, [node], holder) == f"0/1 nodes are available: 1 {reason}."


def test_a_node_with_a_mistake_on_it_is_left_out_and_counted() -> None:
    broken = make.node(name="b", annotations={names.HAMI_REGISTER: "oops"})
    assert sentence(make.pod(cpu=99), [broken, make.node(name="a")]) == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had malformed annotations or quantities."
    )


def test_no_nodes_is_said_as_such_and_a_problem_as_it_is() -> None:
    assert sentence(make.pod(), []) == "no nodes available to schedule pods"
    assert (
        sayings.write_sentence(Hold("u", problem=Mistake("spec.x", "is wrong")))
        == "spec.x: is wrong"
    )
    assert sayings.write_sentence(Hold("u")) == "no nodes available to schedule pods"


def test_parts_are_sorted_as_text_with_their_counts() -> None:
    reasons = (("Insufficient cpu", 2), ("Too many pods", 10), ("Insufficient memory", 1))
    assert sayings.write_fit_error(Diagnosis(12, reasons)) == (
        "0/12 nodes are available: 1 Insufficient memory, 10 Too many pods, 2 Insufficient cpu."
    )


RESOURCES = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "hugepages-1Gi",
    "example.com/x",
    "example.com/y",
]
figures = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(["0", "1", "1500m", "3"]))


@given(figures, st.lists(st.tuples(figures, st.lists(figures, max_size=3)), min_size=1, max_size=4))
@settings(max_examples=slices.count_examples(150), deadline=None)
def test_any_histogram_is_what_counting_node_by_node_gives(
    asked: dict[str, str], some: list[tuple[dict[str, str], list[dict[str, str]]]]
) -> None:
    def units(resource: str, text: str) -> int:
        figure = quantities.scaled(text, 1000 if resource == "cpu" else 1)
        assert figure is not None
        return figure

    nodes, there, short, room = [], [], Counter[str](), False
    for i, (has, held) in enumerate(some):
        nodes.append(make.node(name=f"n{i}", cpu=0, memory=0, allocatable=has))
        there += [
            make.pod(name=f"{i}-{j}", node=f"n{i}", requests=one) for j, one in enumerate(held)
        ]
        lacking = [
            r for r, text in asked.items()
            if units(r, text)
            and units(r, text) > units(r, has.get(r, "0")) - sum(units(r, h.get(r, "0")) for h in held)
        ]  # fmt: skip
        short.update(f"Insufficient {r}" for r in lacking)
        room = room or not lacking
    parts = ", ".join(sorted(f"{n} {reason}" for reason, n in short.items()))
    expected = "" if room else f"0/{len(some)} nodes are available: {parts}."
    assert sentence(make.pod(requests=asked), nodes, *there) == expected
