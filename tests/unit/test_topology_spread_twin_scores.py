"""The twin of PodTopologySpread against worked examples of kube-scheduler 1.37.1's own tests: its scores."""

from typing import Any

import pytest

from tests.model import peer_objects as objects
from tests.oracles import topology_spread as twin
from tests.unit.spread_lines import (
    BAR,
    FOO,
    FOUR,
    IGNORE,
    TAINTED,
    hard,
    nodes,
    pods,
    soft,
    waiting,
)

Json = dict[str, Any]


def scored(pod: Json, some: str, there: str, owners: list[Json] | None = None) -> str:
    names = [word.partition("=")[0] for word in some.split() if not word.startswith("~")]
    found = twin.scores(pod, nodes(some), pods(there), names, owners)
    return " ".join(str(found[name]) for name in names)


HOST = twin.HOSTNAME
# From TestPodTopologySpreadScore (scoring_test.go), by its names.
SCORES: dict[str, tuple[Json, str, str, str]] = {
    "one constraint on node, no existing pods": (waiting(soft(HOST)), "a b", "", "100 100"),
    "one constraint on node, only one node is candidate": (waiting(soft(HOST)), "a ~b", "a+foo a+foo b+foo", "100"),
    "one constraint on node, all nodes have the same number of matching pods": (
        waiting(soft(HOST)), "a b", "a+foo b+foo", "100 100"),
    "one constraint on node, all 4 nodes are candidates": (
        waiting(soft(HOST)), "a b c d", "a+foo a+foo b+foo d+foo d+foo d+foo", "20 60 100 0"),
    "one constraint on node, null selector": (
        waiting(soft(HOST, None)), "a b c d", "a+foo a+foo b+foo d+foo d+foo d+foo", "100 100 100 100"),
    "one constraint on node, all 4 nodes are candidates, maxSkew=2": (
        waiting(soft(HOST, skew=2)), "a b c d", "a+foo a+foo b+foo d+foo d+foo d+foo", "33 66 100 16"),
    "one constraint on node, all 4 nodes are candidates, maxSkew=3": (
        waiting(soft(HOST, skew=3)), "a b c d",
        "a+foo a+foo a+foo a+foo b+foo b+foo b+foo c+foo c+foo d+foo", "44 66 77 100"),
    "one constraint on node, 3 out of 4 nodes are candidates": (
        waiting(soft(HOST)), "a b x ~y",
        "a+foo a+foo a+foo a+foo b+foo b+foo x+foo y+foo y+foo y+foo", "33 83 100"),
    "one constraint on zone, 3 out of 4 nodes are candidates": (
        waiting(soft("zone")), "a=zone1 b=zone1 x=zone2 ~y=zone2",
        "a+foo a+foo a+foo a+foo b+foo b+foo x+foo y+foo y+foo y+foo", "75 75 100"),
    "two Constraints on zone and node, 2 out of 4 nodes are candidates": (
        waiting(soft("zone"), soft(HOST)), "a=zone1 x=zone2 ~b=zone1 ~y=zone2",
        "a+foo a+foo b+foo x+foo x+foo y+foo y+foo y+foo y+foo", "100 63"),
    "two Constraints on zone, 2 out of 4 nodes are candidates": (
        waiting(soft("zone"), soft("zone", BAR), labels="foo bar"), "a=zone1 x=zone2 ~b=zone1 ~y=zone2",
        "a+foo+bar a+foo b+foo+bar y+foo y+foo+bar y+foo", "85 100"),
    "two Constraints on zone and node, with different labelSelectors": (
        waiting(soft("zone"), soft(HOST, BAR), labels="foo bar"), FOUR, "a+foo b+foo+bar y+foo y+bar", "60 20 100 60"),
    "two Constraints on zone and node, with different labelSelectors, some nodes have 0 pods": (
        waiting(soft("zone"), soft(HOST, BAR), labels="foo bar"), FOUR, "b+bar x+foo y+foo+bar", "100 60 40 0"),
    "two Constraints on zone and node, with different labelSelectors, 3 out of 4 nodes are candidates": (
        waiting(soft("zone"), soft(HOST, BAR), labels="foo bar"), "a=zone1 b=zone1 x=zone2 ~y=zone2",
        "a+foo b+foo+bar y+foo y+bar", "50 25 100"),
    "minDomains has no effect when ScheduleAnyway": (
        waiting(soft("node", skew=2, minDomains=10)), "a b c", "a+foo a+foo b+foo b+foo c+foo", "75 75 100"),
    "matchLabelKeys ANDed with LabelSelector when LabelSelector is empty": (
        waiting(soft("zone", {}, matchLabelKeys=["foo"]), soft(HOST, {}, matchLabelKeys=["bar"]), labels="foo bar"),
        FOUR, "a+foo b+foo+bar x+foo x+bar", "60 20 60 100"),
    "matchLabelKeys ANDed with LabelSelector when LabelSelector isn't empty": (
        waiting(soft("zone"), soft(HOST, BAR, matchLabelKeys=["baz"]), labels="foo bar baz"),
        FOUR, "a+foo b+foo+bar+baz x+foo x+bar x+bar+baz", "60 20 60 100"),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "some", "there", "points"), SCORES.values(), ids=SCORES)
def test_the_twin_scores_nodes_as_kube_scheduler(
    pod: Json, some: str, there: str, points: str
) -> None:
    assert scored(pod, some, there) == points


def test_a_candidate_without_the_key_is_passed_over() -> None:
    """TestPodTopologySpreadScore: one node doesn't match topology key."""
    some = nodes("a b x ~y")
    del some[1]["metadata"]["labels"][HOST]
    there = pods("a+foo a+foo a+foo a+foo b+foo b+foo x+foo y+foo y+foo y+foo")
    found = twin.scores(waiting(soft(HOST)), some, there, ["a", "b", "x"])
    assert found == {"a": 16, "b": 0, "x": 100}
    raw = twin.raw_scores(waiting(soft(HOST)), some, there, ["a", "b", "x"])
    # 4 and 1 pods, times ln(2 + 2), rounded; b is not scored at all.
    assert raw == {"a": 6, "b": None, "x": 1}


def test_the_twin_scores_by_node_inclusion_policies() -> None:
    """TestPodTopologySpreadScore: NodeAffinityPolicy and NodeTaintsPolicy."""
    here, there, names = (
        nodes("a b c", a={"foo": ""}, b={"foo": ""}),
        pods("a+foo a+foo b+foo c+foo"),
        list("abc"),
    )
    picky: Json = {"nodeSelector": {"foo": ""}}
    found = twin.scores(waiting(soft("node"), **picky), here, there, names)
    assert list(found.values()) == [0, 33, 100]
    found = twin.scores(waiting(soft("node", **IGNORE), **picky), here, there, names)
    assert list(found.values()) == [66, 100, 100]
    here[2]["spec"]["taints"] = TAINTED
    found = twin.scores(waiting(soft("node", nodeTaintsPolicy="Honor")), here, there, names)
    assert list(found.values()) == [0, 33, 100]


SERVICE: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
    "spec": {"selector": {"foo": ""}},
}
SPREAD_4321 = "a+foo a+foo a+foo a+foo b+foo b+foo b+foo c+foo c+foo d+foo"


def test_a_pod_of_a_service_is_spread_by_the_defaults_of_the_system() -> None:
    """TestPodTopologySpreadScore: system defaulting, nodes don't have zone, pods match service."""
    plain = objects.pod({"foo": ""})
    assert scored(plain, "a b c d", SPREAD_4321, [SERVICE]) == "44 66 77 100"
    assert twin.raw_scores(plain, nodes("a"), [], ["a"], []) is None
    other = SERVICE | {"metadata": {"name": "s", "namespace": "other"}}
    assert scored(plain, "a b c d", SPREAD_4321, [other]) == "0 0 0 0"
    assert twin.refusals(plain, nodes("a"), pods("a+foo a+foo"), [SERVICE]) == {"a": twin.FITS}


def test_a_pod_with_a_hard_constraint_only_is_not_scored_though_it_has_a_service() -> None:
    """TestPreScoreSkip: the pod has constraints of its own, so there are no implicit ones."""
    assert twin.raw_scores(waiting(hard("zone")), nodes("a"), [], ["a"], [SERVICE]) is None


@pytest.mark.parametrize(
    ("version", "kind", "selector"),
    [
        ("v1", "ReplicationController", {"foo": ""}),
        ("apps/v1", "ReplicaSet", {"matchLabels": {"foo": ""}}),
        ("apps/v1", "StatefulSet", FOO),
        ("batch/v1", "Job", {"matchLabels": {"foo": ""}}),
    ],
)
def test_a_pod_is_spread_among_those_of_its_controller(
    version: str, kind: str, selector: Json
) -> None:
    """helper.DefaultSelector knows ReplicationController, ReplicaSet and StatefulSet."""
    owner = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "o", "namespace": "default"},
        "spec": {"selector": selector},
    }
    reference = {"apiVersion": version, "kind": kind, "name": "o", "controller": True}
    owned, stranger = objects.pod({}, owner=reference), objects.pod({})
    expected = "0 0 0 0" if kind == "Job" else "44 66 77 100"
    assert scored(owned, "a b c d", SPREAD_4321, [owner]) == expected
    assert scored(stranger, "a b c d", SPREAD_4321, [owner]) == "0 0 0 0"
    held = reference | {"controller": False}
    assert scored(objects.pod({}, owner=held), "a b c d", SPREAD_4321, [owner]) == "0 0 0 0"


def test_nodes_without_a_zone_are_one_more_domain_of_the_implicit_constraint() -> None:
    """initPreScoreState takes a missing label for an empty one: it makes ln(3 + 2) of the two zones' ln(2 + 2)."""
    some = [objects.node(name, {HOST: name} | ({twin.ZONE: zone} if zone else {}))
            for name, zone in (("a", "z1"), ("b", "z2"), ("c", ""))]  # fmt: skip
    raw = twin.raw_scores(
        objects.pod({"foo": ""}), some, pods("a+foo c+foo"), list("abc"), [SERVICE]
    )
    # One pod on a: ln(3 + 2) for the host and as much for the zone, each with maxSkew - 1 on top;
    # nothing on b but that; c is charged for its host and for no zone.
    assert raw == {"a": round(2 * 1.6094 + 2 + 4), "b": 6, "c": round(1.6094 + 2)}
    two = twin.raw_scores(
        objects.pod({"foo": ""}), some, pods("a+foo c+foo"), ["a", "b"], [SERVICE]
    )
    assert two == {"a": round(2 * 1.3863 + 2 + 4), "b": 6}
