"""The same pods placed again: what stays and why, which nodes are empty, and what the comparison comes to."""

from typing import Any

import pytest

from scheduler.api import names, wire
from scheduler.api.placement import Mode
from scheduler.audit.again import advice, orders
from scheduler.audit.again.advice import Tried
from scheduler.audit.findings import About, Question, audit
from scheduler.audit.prices import book
from scheduler.config import Config
from tests import make
from tests.unit.test_audit_findings import owned

Json = dict[str, Any]
PVC = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def replayed(nodes: list[wire.Node], pods: list[wire.Pod], **changes: Any) -> Json:
    question: Json = {
        "config": Config(), "modes": (None, Mode.BEST_FIT, Mode.LEAST_ALLOCATED), "prices": book.packaged(),
        "worst": 0, "orders": 3, "about": About(made="", source="", version=""),
    }  # fmt: skip
    found: Json = audit(nodes, pods, Question(**question | changes))["replay"]
    return found


def test_pods_with_claims_stay_and_their_nodes_are_not_empty() -> None:
    """With a PersistentVolumeClaim on every pod, all nodes were told to be empty, before and after."""
    nodes = [make.node(name=f"n{i:03}") for i in range(200)]
    pods = [
        make.pod(name=f"p{i}", node=f"n{i % 200:03}", cpu=1, memory="1Gi", spec=PVC)
        for i in range(400)
    ]
    found = replayed(nodes, pods)
    assert (found["moved"], found["stayed"], found["emptyNodes"]) == (0, 400, 0)
    assert found["stays"] == [{"reason": "with a PersistentVolumeClaim", "pods": 400}]
    assert [one["emptyNodes"] for one in found["modes"]] == [0, 0, 0]
    assert found["orders"] == 1
    assert found["advice"]["mode"] == ""
    assert "cannot be told apart" in found["advice"]["text"]


def test_what_stays_is_charged_and_keeps_its_node_from_being_empty() -> None:
    nodes = [make.node(name=name, cpu=4) for name in "abc"]
    pods = [
        make.pod(name="stays", node="a", cpu=3, memory="1Gi", spec=PVC),
        *(make.pod(name=f"p{i}", node=name, cpu=1, memory="1Gi") for i, name in enumerate("bcbc")),
    ]
    found = replayed(nodes, pods, modes=(Mode.MOST_ALLOCATED,))
    assert found["emptyNodes"] == 0
    (one,) = found["modes"]
    # One pod fits beside the one that stays, the other three on one node.
    assert one["emptyNodes"] == 1
    assert one["unplaced"] == []


def test_each_pod_that_stays_is_counted_with_its_reason() -> None:
    nodes = [
        make.node(name="a"), make.node(name="old", unschedulable=True), make.node(name="odd"),
    ]  # fmt: skip
    mirror = make.pod(name="mirror", node="a", annotations={names.MIRROR: "x"})
    leaving = make.pod(name="leaving", node="a")
    leaving.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    pods = [
        owned("DaemonSet", make.pod(name="agent-a", node="a")),
        owned("DaemonSet", make.pod(name="agent-old", node="old")),
        owned("Node", make.pod(name="static", node="a")),
        mirror, leaving,
        make.pod(name="claims", node="a", spec={"resourceClaims": [{"name": "x"}]}),
        make.pod(name="on-old", node="old", cpu=1),
        make.pod(name="nowhere", node="gone", cpu=1),
        make.pod(name="odd", node="a", annotations={names.MODE: "no such mode"}),
        owned("ReplicaSet", make.pod(name="web", node="a", cpu=1)),
        make.pod(name="bare", node="a", cpu=1),
        make.pod(name="waits", cpu=1),
    ]  # fmt: skip
    found = replayed(nodes, pods)
    assert {one["reason"]: one["pods"] for one in found["stays"]} == {
        "of a DaemonSet": 2,
        "run by the kubelet from a file": 2,
        "being deleted": 1,
        "with a ResourceClaim": 1,
        "on a node that would not take such a pod back, by its cordon, taints or labels": 1,
        "on a node that is not there": 1,
        "with a mistake in how to place them": 1,
    }
    assert found["stayed"] == 9
    assert (found["moved"], found["withoutController"]) == (2, 1)
    assert [one["pods"] for one in found["stays"]] == [2, 2, 1, 1, 1, 1, 1]


def test_every_mode_is_tried_in_the_same_orders_and_they_are_the_same_every_time() -> None:
    nodes = [make.node(name=f"n{i}", cpu=4) for i in range(6)]
    pods = [make.pod(name=f"p{i}", node=f"n{i % 6}", cpu=1 + i % 3, memory="1Gi") for i in range(9)]
    found = replayed(nodes, pods)
    assert found["orders"] == 3
    for one in found["modes"]:
        assert {len(values) for values in one["inOrders"].values()} == {3}
        assert one["inOrders"]["emptyNodes"][0] == one["emptyNodes"]
        assert one["inOrders"]["money"][0] == one["money"]
    assert replayed(nodes, pods) == found


@pytest.mark.parametrize(
    ("asked", "pods", "expected"),
    [(None, 100, 5), (None, 16_000, 2), (None, 10_000_000, 2), (9, 10_000_000, 9), (9, 0, 1)],
)
def test_large_clusters_are_tried_in_fewer_orders_unless_asked(
    asked: int | None, pods: int, expected: int
) -> None:
    assert orders.how_many(asked, pods, 5000 if pods > 100 else 10, 5) == expected


def tried(name: str, empty: list[int], money: list[float], unplaced: int = 0) -> Tried:
    n = len(empty)
    return Tried(name, empty, [unplaced] * n, [cost / 1000 for cost in money], money)


DEFAULT = tried("default", [14, 15, 14], [1000.0, 1100.0, 1050.0])


def test_a_mode_better_in_every_order_is_advised_with_what_the_default_protects() -> None:
    found = advice.give(
        [DEFAULT, tried("keel", [16, 17, 17], [900.0, 1100.0, 1000.0])], "default", 1e4
    )
    assert (found.mode, found.figure) == ("keel", "emptyNodes")
    assert "empties 16 to 17 nodes" in found.text
    assert "default empties 14 to 15 nodes" in found.text
    assert "3 of 3 orders" in found.text
    assert "What the default protects" in found.text


@pytest.mark.parametrize(
    "other",
    [
        # Within the spread.
        tried("keel", [15, 16, 16], [1000.0, 1100.0, 1050.0]),
        # Less stranded in every order, but by next to nothing of what is free.
        tried("keel", [14, 15, 14], [970.0, 970.0, 970.0]),
    ],
)
def test_a_difference_within_the_spread_is_none_that_matters(other: Tried) -> None:
    found = advice.give([DEFAULT, other], "default", 1e5)
    assert (found.mode, found.figure) == ("default", "")
    assert found.text.startswith("No difference that matters; stay with the default")


def test_next_to_no_more_empty_nodes_are_no_difference() -> None:
    base = tried("default", [1000, 1001], [5.0, 5.0])
    found = advice.give([base, tried("keel", [1003, 1004], [5.0, 5.0])], "default", 1e5)
    assert found.mode == "default"


def test_better_by_one_figure_and_worse_by_the_other_is_told_and_not_advised() -> None:
    packs = tried("most-allocated", [30, 31, 30], [9000.0, 9100.0, 9050.0])
    found = advice.give([DEFAULT, packs], "default", 1e4)
    assert found.mode == "default"
    assert found.text.startswith("Stay with the default")
    assert "most-allocated empties 30 to 31 nodes and strands 9.0 to 9.1 GPUs" in found.text


def test_a_mode_that_leaves_pods_without_a_place_is_never_advised() -> None:
    lossy = tried("best-fit", [40, 40, 40], [1.0, 1.0, 1.0], unplaced=2)
    assert advice.give([DEFAULT, lossy], "default", 1e4).mode == "default"
    full = tried("default", [0, 0, 0], [1.0, 1.0, 1.0], unplaced=3)
    keeps = tried("keel", [1, 1, 1], [1.0, 1.0, 1.0])
    found = advice.give([full, keeps, lossy], "default", 1e4)
    assert (found.mode, found.figure) == ("keel", "unplaced")
    assert "default leaves 3 pods without a place" in found.text
    found = advice.give([full, lossy], "default", 1e4)
    assert found.mode == "default"
    assert "no mode keeps every pod placed" in found.text


def test_without_the_default_there_is_nothing_to_compare_with() -> None:
    found = advice.give([tried("keel", [1], [1.0])], "default", 1.0)
    assert (found.mode, found.figure) == ("", "")
    assert "was not tried" in found.text


def test_what_assumed_pods_say_speaks_against_no_mode() -> None:
    """On four nodes with a handful of pods, least-allocated was advised by the demand of pods nobody had seen."""
    spreads = tried("least-allocated", [14, 15, 14], [10.0, 10.0, 10.0])
    seen = advice.give([DEFAULT, spreads], "default", 1e4)
    assert (seen.mode, seen.figure) == ("least-allocated", "stranded")
    assert "speaks for modes that spread" in seen.text
    unseen = advice.give([DEFAULT, spreads], "default", 1e4, is_seen=False)
    assert unseen.mode == "default"
    assert unseen.text.endswith("Too few pods were seen to compare modes by what they strand.")
    nodes = [make.node(name="n0", cpu=64, memory="64Gi")]
    pods = [
        make.pod(name=f"p{i}", node="n0", cpu=1, memory="2Gi" if i % 2 else "64Mi")
        for i in range(60)
    ]
    text = replayed(nodes, pods[:20])["advice"]["text"]
    assert "Too few pods were seen" in text
    assert "Too few pods were seen" not in replayed(nodes, pods)["advice"]["text"]
