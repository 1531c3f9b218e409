"""The twin of InterPodAffinity against worked examples of kube-scheduler 1.37.1's own tests: its filter.

Of each node expected: ``+`` fits, ``A`` breaks the pod's affinity, ``-`` its anti-affinity, ``x`` that of
a pod which is there.
"""

from typing import Any

import pytest

from tests.oracles import pod_affinity as twin
from tests.unit.affinity_lines import (
    REGIONS,
    S1,
    SCAN,
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
MARKS = {twin.FITS: "+", twin.AFFINITY: "A", twin.ANTI_AFFINITY: "-", twin.EXISTING: "x"}


def judged(waiting: Json, some: str, *there: Json) -> str:
    found = twin.refusals(waiting, nodes(some), list(there), TEAMS)
    return "".join(MARKS[one] for one in found.values())


NODE1 = "node1:region=r1,zone=z11"
SCANNING, AT_ZONE = ("service", "In", "securityscan", "value2"), {"at": "zone"}
VIRUS = term("service", "In", "antivirusscan", "value2", at="node")
OPERATORS = both(term("service", "Exists"), term("wrongkey", "DoesNotExist"))


# From TestRequiredAffinitySingleNode (filtering_test.go), by its names.
SINGLE: dict[str, tuple[Json, Json | None, str]] = {
    "A pod that has no required pod affinity scheduling rules": (pod(), None, "+"),
    "satisfies ... using In operator that matches the existing pod": (
        pod(S1, near(term(*SCANNING))), pod(SCAN, on="node1"), "+"),
    "satisfies ... using not in operator in labelSelector": (
        pod(S1, near(term("service", "NotIn", "securityscan3", "value3"))), pod(SCAN, on="node1"), "+"),
    "Does not satisfy the PodAffinity with labelSelector because of diff Namespace": (
        pod(S1, near(term(*SCANNING, namespaces=["DiffNameSpace"]))), pod(SCAN, on="node1", namespace="ns"), "A"),
    "Doesn't satisfy the PodAffinity because of unmatching labelSelector with the existing pod": (
        pod(SCAN, near(term("service", "In", "antivirusscan", "value2"))), pod(SCAN, on="node1"), "A"),
    "satisfies the PodAffinity with different label Operators in multiple": (
        pod(S1, near(OPERATORS, both(term("service", "In", "securityscan"), term("service", "NotIn", "WrongValue")))),
        pod(SCAN, on="node1"), "+"),
    "The labelSelector requirements are ANDed": (
        pod(S1, near(OPERATORS, both(term("service", "In", "securityscan2"), term("service", "NotIn", "WrongValue")))),
        pod(SCAN, on="node1"), "A"),
    "satisfies the PodAffinity and PodAntiAffinity with the existing pod": (
        pod(S1, near(term(*SCANNING)), far(VIRUS)), pod(SCAN, on="node1"), "+"),
    "satisfies the PodAffinity and PodAntiAffinity and PodAntiAffinity symmetry": (
        pod(S1, near(term(*SCANNING)), far(VIRUS)), pod(SCAN, far(VIRUS), on="node1"), "+"),
    "satisfies the PodAffinity but doesn't satisfy the PodAntiAffinity with the existing pod": (
        pod(S1, near(term(*SCANNING)), far(term(*SCANNING, at="zone"))), pod(SCAN, on="node1"), "-"),
    "satisfies the PodAffinity and PodAntiAffinity but doesn't satisfy PodAntiAffinity symmetry": (
        pod(SCAN, near(term(*SCANNING)), far(VIRUS)), pod(SCAN, far(term(*SCANNING, at="zone")), on="node1"), "x"),
    "pod matches its own Label in PodAffinity and that matches the existing pod Labels": (
        pod(SCAN, near(term("service", "NotIn", "securityscan", "value2"))), pod(SCAN, on="node2"), "A"),
    "PodAntiAffinity from existing pod is respected, doesn't satisfy": (
        pod(SCAN), pod(SCAN, far(term(*SCANNING, at="zone")), on="node1"), "x"),
    "PodAntiAffinity from existing pod is respected, satisfy": (
        pod(SCAN), pod(SCAN, far(term("service", "NotIn", "securityscan", "value2", at="zone")), on="node1"), "+"),
    "satisfies the PodAntiAffinity with existing pod but doesn't satisfy symmetry with incoming pod": (
        pod(SCAN, far(term("service", "Exists"), term("security", "Exists"))),
        pod(S1, far(term("security", "Exists", at="zone")), on="node1"), "-"),
    "PodAntiAffinity symmetry check a1": (
        pod(SCAN, far(term("service", "Exists", at="zone"), term("security", "Exists", at="zone"))),
        pod(S1, far(term("security", "Exists", at="zone")), on="node1"), "-"),
    "PodAntiAffinity symmetry check a2": (
        pod(S1, far(term("security", "Exists", at="zone"))),
        pod(SCAN, far(term("service", "Exists", at="zone"), term("security", "Exists", at="zone")), on="node1"), "x"),
    "affinity with NamespaceSelector": (
        pod(S1, near(term(*SCANNING, namespaceSelector=TEAM1))), pod(SCAN, on="node1", namespace="subteam1.team1"), "+"),
    "affinity with non-matching NamespaceSelector": (
        pod(S1, near(term(*SCANNING, namespaceSelector=TEAM1))), pod(SCAN, on="node1", namespace="subteam1.team2"), "A"),
    "anti-affinity with matching NamespaceSelector": (
        pod(S1, far(term(*SCANNING, at="zone", namespaceSelector=TEAM1)), namespace="subteam1.team1"),
        pod(SCAN, on="node1", namespace="subteam2.team1"), "-"),
    "anti-affinity with matching all NamespaceSelector": (
        pod(S1, far(term(*SCANNING, at="zone", namespaceSelector={})), namespace="subteam1.team1"),
        pod(SCAN, on="node1", namespace="subteam2.team1"), "-"),
    "anti-affinity with non-matching NamespaceSelector": (
        pod(S1, far(term(*SCANNING, at="zone", namespaceSelector=TEAM1)), namespace="subteam1.team1"),
        pod(SCAN, on="node1", namespace="subteam1.team2"), "+"),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "there", "mark"), SINGLE.values(), ids=SINGLE)
def test_the_twin_refuses_a_node_as_kube_scheduler(
    waiting: Json, there: Json | None, mark: str
) -> None:
    assert judged(waiting, NODE1, *([there] if there else [])) == mark


ZONES = "a:region=r1,zone=z1 b:region=r1,zone=z2"
ZONE: Json = {"at": "zone"}
COLLECTION = near(term("foo", "In", "bar", **ZONE), term("service", "In", "securityscan", **ZONE))
INVALID = term("foo", "Exists", at="invalid-node-label")
BAR_IN_ZONE, FOO_IN_REGION = term("bar", "Exists", at="zone"), term("foo", "Exists")

# From TestRequiredAffinityMultipleNodes (filtering_test.go), by its names.
MULTIPLE: dict[str, tuple[Json, str, list[Json], str]] = {
    "A pod can be scheduled onto all the nodes that have the same topology key & label value": (
        pod("", near(term("foo", "In", "bar"))), REGIONS, [pod("foo=bar", on="node1")], "++A"),
    "The first pod of the collection should not be blocked from being scheduled onto any node": (
        pod(f"foo=bar,{SCAN}", COLLECTION), "a:zone=az1 b:zone=az2", [pod("foo=bar", on="a")], "++"),
    "The first pod of the collection can only be scheduled on nodes labelled with the keys": (
        pod(f"foo=bar,{SCAN}", COLLECTION), "a:zoneLabel=az1 b:zoneLabel=az2", [pod("foo=bar", on="a")], "AA"),
    "NodeA and nodeB have same topologyKey and label value": (
        pod("", far(term("foo", "In", "abc"))), ZONES, [pod("foo=abc", on="a")], "--"),
    "anti-affinity matches a pod when any term of the anti-affinity rule matches a pod": (
        pod("", far(term("foo", "In", "abc"), term("service", "In", "securityscan", **ZONE))), ZONES,
        [pod(f"foo=abc,{SCAN}", on="a")], "--"),
    "The pod can not be scheduled onto nodeA and nodeB but can be scheduled onto nodeC": (
        pod("", far(term("foo", "In", "abc"))), REGIONS, [pod("foo=abc", on="node1")], "--+"),
    "NodeC has an existing pod that match the inter pod affinity rule but in different namespace": (
        pod("foo=123", far(term("foo", "In", "bar")), namespace="NS1"), REGIONS,
        [pod("foo=bar", on="node1", namespace="NS1"),
         pod("", far(term("foo", "In", "123")), on="node3", namespace="NS2")], "--+"),
    "existing pod's anti-affinity: a term with invalid topologyKey": (
        pod("foo"), ZONES, [pod("", far(INVALID), on="a")], "++"),
    "incoming pod's anti-affinity: even if labelSelector matches, we still check if topologyKey matches": (
        pod("", far(INVALID)), ZONES, [pod("foo", on="a")], "++"),
    "existing pod's anti-affinity: incoming pod violates each existingPod's terms on all nodes": (
        pod("foo,bar"), ZONES,
        [pod("", far(term("foo", "Exists", **ZONE)), on="a"), pod("", far(term("bar", "Exists")), on="a")], "xx"),
    "incoming pod's anti-affinity: it at least violates one anti-affinity rule of existingPod": (
        pod("", far(term("foo", "Exists", **ZONE), term("bar", "Exists"))), ZONES,
        [pod("foo", on="a"), pod("bar", on="b")], "--"),
    "existing pod's anti-affinity: when one term has invalid topologyKey": (
        pod("foo,bar"), ZONES, [pod("", far(INVALID, BAR_IN_ZONE), on="a")], "x+"),
    "incoming pod's anti-affinity: when one term has invalid topologyKey": (
        pod("", far(INVALID, BAR_IN_ZONE)), ZONES, [pod("foo,bar", on="a")], "-+"),
    "existing pod's anti-affinity: when all terms have valid topologyKey": (
        pod("foo,bar"), ZONES, [pod("", far(FOO_IN_REGION, BAR_IN_ZONE), on="a")], "xx"),
    "incoming pod's anti-affinity: when all terms have valid topologyKey": (
        pod("", far(FOO_IN_REGION, BAR_IN_ZONE)), ZONES, [pod("foo,bar", on="a")], "--"),
    "existingPod on nodeA and nodeB has at least one anti-affinity term matches incoming pod": (
        pod("foo,bar"), f"{ZONES} c:region=r1,zone=z3",
        [pod("", far(term("foo", "Exists", **ZONE), term("labelA", "Exists", **ZONE)), on="a"),
         pod("", far(term("bar", "Exists", **ZONE), term("labelB", "Exists", **ZONE)), on="b")], "xx+"),
    "incoming pod's affinity: firstly check if all affinityTerms match, and then all topologyKeys": (
        pod("", near(FOO_IN_REGION, BAR_IN_ZONE)), "a:region=r1,zone=z1 b:region=r1,zone=z1",
        [pod("foo,bar", on="a")], "++"),
    "incoming pod's affinity: the match logic should be satisfied on the same pod": (
        pod("", near(FOO_IN_REGION, BAR_IN_ZONE)), ZONES, [pod("foo", on="a"), pod("bar", on="b")], "AA"),
}  # fmt: skip


@pytest.mark.parametrize(("waiting", "some", "there", "marks"), MULTIPLE.values(), ids=MULTIPLE)
def test_the_twin_refuses_nodes_as_kube_scheduler(
    waiting: Json, some: str, there: list[Json], marks: str
) -> None:
    assert judged(waiting, some, *there) == marks


def test_the_first_of_a_group_must_match_all_its_own_terms() -> None:
    only_foo = pod("foo=bar", COLLECTION)
    assert judged(only_foo, "a:zone=az1") == "A"
    assert judged(pod(f"foo=bar,{SCAN}", COLLECTION), "a:zone=az1") == "+"


def test_a_matching_pod_where_the_key_is_missing_leaves_the_next_the_first_of_its_group() -> None:
    """updateWithAffinityTerms records no pair there, and the exception asks whether there is any pair."""
    waiting = pod("foo", near(term("foo", "Exists", **ZONE)))
    assert judged(waiting, "a:region=r1 b:zone=z1", pod("foo", on="a")) == "A+"
    assert judged(waiting, "a:zone=z2 b:zone=z1", pod("foo", on="a")) == "+A"


def test_a_pod_that_is_being_deleted_still_counts() -> None:
    waiting = pod("", far(term("foo", "Exists", **ZONE)))
    assert judged(waiting, "a:zone=z1", pod("foo", on="a", deleted=True)) == "-"


def test_label_keys_of_a_term_are_values_of_the_pod_that_says_it() -> None:
    """registry/core/pod: applyMatchLabelKeysAndMismatchLabelKeys."""
    same = term("app", "Exists", at="zone", matchLabelKeys=["hash", "none"])
    other = term("app", "Exists", at="zone", mismatchLabelKeys=["tenant"])
    waiting = pod("app,hash=1,tenant=t", far(same))
    assert judged(waiting, "a:zone=z1 b:zone=z2", pod("app,hash=1", on="a"), pod("app,hash=2", on="b")) == "-+"  # fmt: skip
    waiting = pod("app,hash=1,tenant=t", far(other))
    assert judged(waiting, "a:zone=z1 b:zone=z2", pod("app,tenant=t", on="a"), pod("app,tenant=u", on="b")) == "+-"  # fmt: skip
    there = pod("app,tenant=t", far(other), on="a")
    assert judged(pod("app,tenant=t"), "a:zone=z1", there) == "+"
    assert judged(pod("app,tenant=u"), "a:zone=z1", there) == "x"
