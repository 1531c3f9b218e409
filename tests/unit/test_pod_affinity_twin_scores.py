"""The twin of InterPodAffinity against worked examples of kube-scheduler 1.37.1's own tests: its scores."""

from typing import Any

import pytest

from tests.oracles import pod_affinity as twin
from tests.unit.affinity_lines import (
    REGIONS,
    S1,
    TEAM1,
    TEAMS,
    both,
    far,
    near,
    nodes,
    pod,
    term,
)

Json = dict[str, Any]


def scored(waiting: Json, some: str, *there: Json) -> str:
    here = nodes(some)
    names = [one["metadata"]["name"] for one in here]
    return " ".join(map(str, twin.scores(waiting, here, list(there), names, TEAMS).values()))


S2 = "security=S2"
IS_S1, IS_S2 = ("security", "In", "S1"), ("security", "In", "S2")
WITH_S1, WITH_S2 = near(preferred=[(5, term(*IS_S1))]), near(preferred=[(6, term(*IS_S2))])
OPERATED = near(
    preferred=[
        (8, both(term("security", "NotIn", "S1"), term(*IS_S2))),
        (2, both(term("security", "Exists"), term("wrongkey", "DoesNotExist"))),
    ]
)
HARD = near(
    term("security", "In", "S1", "value2"),
    both(term("security", "Exists"), term("wrongkey", "DoesNotExist")),
)
NOT_S1_IN_AZ = far(preferred=[(5, term(*IS_S1, at="az"))])
NOT_S2_IN_AZ = far(preferred=[(5, term(*IS_S2, at="az"))])
WITH_S1_NOT_S2 = near(preferred=[(8, term(*IS_S1))]) | NOT_S2_IN_AZ
SOME_NAMESPACES: Json = {"namespaces": ["subteam2.team2"], "namespaceSelector": TEAM1}
NOT_TEAM1: Json = {
    "namespaceSelector": {
        "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["team1"]}]
    }
}
THREE = "node1:region=China node2:region=India node3:az=az1"
TWO = "node1:region=China node2:region=India"
FIVE = (
    "node1:region=China node2:region=India node3:region=China node4:region=China node5:region=India"
)
OF_TEAM1: Json = {"namespace": "subteam1.team1"}


def at(*places: str, labels: str = S1, namespaces: str = "") -> list[Json]:
    """A pod with these labels on each node; ``namespaces`` word by word, or all in default."""
    spaces = namespaces.split() or ["default"] * len(places)
    return [
        pod(labels, on=f"node{place}", namespace=space)
        for place, space in zip(places, spaces, strict=True)
    ]


# From TestPreferredAffinity (scoring_test.go), by its names.
SCORES: dict[str, tuple[Json, str, list[Json], str]] = {
    "all nodes are same priority as Affinity is nil": (pod(S1), THREE, [], "0 0 0"),
    "Affinity: pod that matches topology key & pods in nodes will get high score": (
        pod(S1, WITH_S1), THREE, [*at("1", "3"), *at("2", labels=S2)], "100 0 0"),
    "All the nodes that have the same topology key & label value": (
        pod("", WITH_S1), REGIONS, at("1"), "100 100 0"),
    "Affinity: nodes in one region has more matching pods comparing to other region": (
        pod(S1, WITH_S2), FIVE, at("1", "1", "2", "3", "4", "5", labels=S2), "100 0 100 100 0"),
    "Affinity: different Label operators and values": (
        pod(S1, OPERATED), THREE, [*at("1", "3"), *at("2", labels=S2)], "20 100 0"),
    "Affinity symmetry: considered only the preferred": (
        pod(S2), THREE, [pod(S1, WITH_S1, on="node1"), pod(S2, WITH_S2, on="node2")], "0 100 0"),
    "Affinity symmetry with namespace selector": (
        pod(S1, **OF_TEAM1), THREE,
        [pod(S1, near(preferred=[(5, term(*IS_S1, **SOME_NAMESPACES))]), on="node1"), pod(S2, WITH_S2, on="node2")],
        "100 0 0"),
    "AntiAffinity symmetry with namespace selector": (
        pod(S1, **OF_TEAM1), THREE,
        [pod(S1, far(preferred=[(5, term(*IS_S1, **SOME_NAMESPACES))]), on="node1"), pod(S2, WITH_S2, on="node2")],
        "0 100 100"),
    "Affinity symmetry: considered RequiredDuringSchedulingIgnoredDuringExecution": (
        pod(S1), THREE, [pod(S1, HARD, on="node1"), pod(S2, HARD, on="node2")], "100 100 0"),
    "Anti Affinity: pod that does not match existing pods in node will get high score": (
        pod(S1, NOT_S1_IN_AZ), "node1:az=az1 node2:region=China", [*at("1"), *at("2", labels=S2)], "0 100"),
    "Anti Affinity: pod that does not match topology key & match the pods in nodes": (
        pod(S1, NOT_S1_IN_AZ), "node1:az=az1 node2:region=China", at("1", "2"), "0 100"),
    "Anti Affinity symmetry: the existing pods in node which has anti affinity match": (
        pod(S2), "node1:az=az1 node2:az=az2",
        [pod(S1, NOT_S2_IN_AZ, on="node1"), pod(S2, NOT_S1_IN_AZ, on="node2")], "0 100"),
    "Affinity and Anti Affinity: considered only preferred in both": (
        pod(S1, WITH_S1_NOT_S2), "node1:region=China node2:az=az1", at("1", "2"), "100 0"),
    "Affinity and Anti Affinity: the pod to schedule and existing pods have the same labels": (
        pod(S1, WITH_S1_NOT_S2), FIVE.replace("China", "China,az=az1", 1), at("1", "1", "2", "3", "3", "4", "5"),
        "100 0 100 100 0"),
    "Affinity and Anti Affinity and symmetry": (
        pod(S1, WITH_S1_NOT_S2), "node1:region=China node2:az=az1 node3:region=India node4:az=az2",
        [*at("1"), *at("2", labels=S2), pod("", WITH_S1_NOT_S2, on="node3"), pod("", NOT_S1_IN_AZ, on="node4")],
        "100 0 100 0"),
    "Avoid panic when partial nodes in a topology don't have pods with affinity": (
        pod(S1), "node1:region=China node2:region=China", [*at("1"), pod("", WITH_S1_NOT_S2, on="node2")], "0 0"),
    "AntiAffinity with pods matching NamespaceSelector": (
        pod(S1, far(preferred=[(5, term(*IS_S1, **SOME_NAMESPACES))]), **OF_TEAM1), TWO,
        at("1", "1", "1", "2", namespaces="subteam1.team1 subteam1.team1 subteam1.team2 subteam2.team1"), "0 100"),
    "AntiAffinity with pods matching both NamespaceSelector and Namespaces fields": (
        pod(S1, far(preferred=[(5, term(*IS_S1, **SOME_NAMESPACES))]), **OF_TEAM1), TWO,
        at("1", "1", "1", "2", namespaces="subteam1.team1 subteam1.team1 subteam2.team2 subteam2.team1"), "0 100"),
    "Affinity with pods correctly enforcing negative NamespaceSelector": (
        pod(S1, near(preferred=[(5, term(*IS_S1, **NOT_TEAM1))]), **OF_TEAM1), TWO,
        at("1", "1", "2", namespaces="subteam1.team1 subteam1.team1 subteam1.team2"), "0 100"),
    "AntiAffinity with pods correctly enforcing negative NamespaceSelector": (
        pod(S1, far(preferred=[(5, term(*IS_S1, **NOT_TEAM1))]), **OF_TEAM1), TWO,
        at("1", "1", "2", namespaces="subteam1.team1 subteam1.team1 subteam1.team2"), "100 0"),
    "Do not ignore preferred terms of existing pods": (
        pod(S2), TWO, [pod(S1, WITH_S1_NOT_S2, on="node1"), pod(S2, WITH_S2, on="node2")], "0 100"),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "some", "there", "points"), SCORES.values(), ids=SCORES)
def test_the_twin_scores_nodes_as_kube_scheduler(
    waiting: Json, some: str, there: list[Json], points: str
) -> None:
    assert scored(waiting, some, *there) == points


@pytest.mark.parametrize(
    ("namespace", "points"),
    [
        ("default", "100 100 0"),
        ("subteam1.team1", "100 100 0"),
        ("subteam2.team2", "100 100 0"),
        ("subteam1.team2", "0 0 0"),
    ],
)
def test_required_terms_of_pods_that_are_there_weigh_one(namespace: str, points: str) -> None:
    """TestPreferredAffinityWithHardPodAffinitySymmetricWeight."""
    hard = near(term("service", "In", "S1", namespaces=["default", "subteam2.team2"], namespaceSelector=TEAM1))  # fmt: skip
    there = [pod("", hard, on="node1"), pod("", hard, on="node2")]
    waiting = pod("service=S1", namespace=namespace)
    assert scored(waiting, THREE, *there) == points
    unweighed = twin.raw_scores(waiting, nodes(THREE), there, TEAMS, hard_weight=0)
    assert set(unweighed.values()) == {0}


def test_scores_are_cut_to_whole_points() -> None:
    """NormalizeScore: 100 times 1 of 3 as a float, and then an integer."""
    waiting = pod("", near(preferred=[(1, term("foo", "Exists"))]))
    there = [pod("foo", on=name) for name in ("node2", "node3", "node3", "node3")]
    assert scored(waiting, "node1:region=a node2:region=b node3:region=c", *there) == "0 33 100"
