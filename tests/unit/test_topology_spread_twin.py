"""The twin of PodTopologySpread against worked examples of kube-scheduler 1.37.1's own tests: its filter.

Of each node expected: ``+`` fits, ``-`` does not, ``!`` cannot ever.
"""

from typing import Any

import pytest

from tests.oracles import topology_spread as twin
from tests.unit.spread_lines import (
    BAR,
    FOUR,
    IGNORE,
    TAINTED,
    hard,
    nodes,
    pods,
    requires,
    waiting,
)

Json = dict[str, Any]
MARKS = {twin.FITS: "+", twin.TOO_MANY: "-", twin.NO_LABEL: "!"}


def judged(pod: Json, some: list[Json], there: list[Json]) -> str:
    found = twin.refusals(pod, some, there)
    return " ".join(MARKS[found[one["metadata"]["name"]]] for one in some)


# From TestSingleConstraint (filtering_test.go), by its names.
SINGLE: dict[str, tuple[Json, str, str, str]] = {
    "no existing pods": (waiting(hard("zone")), FOUR, "", "+ + + +"),
    "no existing pods, incoming pod doesn't match itself": (waiting(hard("zone", BAR)), FOUR, "", "+ + + +"),
    "existing pods do not match null selector": (waiting(hard("zone", None)), FOUR, "x+foo y+foo", "+ + + +"),
    "pods spread across zones as 3/3, all nodes fit": (
        waiting(hard("zone")), FOUR, "a+foo a+foo b+foo y+foo y+foo y+foo", "+ + + +"),
    "pods spread across zones as 1/2 due to absence of label 'zone' on node-b": (
        waiting(hard("zone")), "a=zone1 b x=zone2 y=zone2", "a+foo b+foo x+foo y+foo", "+ ! - -"),
    "pod cannot be scheduled as all nodes don't have label 'rack'": (
        waiting(hard("rack")), "a=zone1 x=zone2", "", "! !"),
    "pods spread across nodes as 2/1/0/3, only node-x fits": (
        waiting(hard("node")), FOUR, "a+foo a+foo b+foo y+foo y+foo y+foo", "- - + -"),
    "pods spread across nodes as 2/1/0/3, maxSkew is 2, node-b and node-x fit": (
        waiting(hard("node", skew=2)), FOUR, "a+foo a+foo b+foo y+foo y+foo y+foo", "- + + -"),
    "pods spread across nodes as 2/1/0/3, but pod doesn't match itself": (
        waiting(hard("node"), labels="bar"), FOUR, "a+foo a+foo b+foo y+foo y+foo y+foo", "- + + -"),
    "incoming pod has nodeAffinity, pods spread as 2/~1~/~0~/3, hence node-a fits": (
        waiting(hard("node"), affinity=requires("node", "a", "y")), FOUR,
        "a+foo a+foo b+foo y+foo y+foo y+foo", "+ + + -"),
    "incoming pod has nodeAffinity, pods spread as 0/~2~/0/1, hence node-a fits": (
        waiting(hard("zone"), affinity=requires("node", "b", operator="NotIn")), FOUR, "b+foo b+foo y+foo", "+ + - -"),
    "pods spread across nodes as 2/2/1, maxSkew is 2, and the number of domains < minDomains": (
        waiting(hard("node", skew=2, minDomains=4)), "a b c", "a+foo a+foo b+foo b+foo c+foo", "- - +"),
    "pods spread across nodes as 2/2/1, maxSkew is 2, and the number of domains > minDomains": (
        waiting(hard("node", skew=2, minDomains=2)), "a b c", "a+foo a+foo b+foo b+foo c+foo", "+ + +"),
    "pods spread across zone as 2/1, maxSkew is 2 and the number of domains < minDomains": (
        waiting(hard("zone", skew=2, minDomains=3)), FOUR, "a+foo b+foo y+foo", "- - + +"),
    "pods spread across zone as 2/1, maxSkew is 2 and the number of domains > minDomains": (
        waiting(hard("zone", skew=2, minDomains=1)), FOUR, "a+foo b+foo y+foo", "+ + + +"),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "some", "there", "marks"), SINGLE.values(), ids=SINGLE)
def test_the_twin_refuses_nodes_as_kube_scheduler_by_one_constraint(
    pod: Json, some: str, there: str, marks: str
) -> None:
    assert judged(pod, nodes(some), pods(there)) == marks


# From TestMultipleConstraints (filtering_test.go), by its names.
MULTIPLE: dict[str, tuple[Json, str, str, str]] = {
    "two Constraints on zone and node, spreads = [3/3, 2/1/0/3]": (
        waiting(hard("zone"), hard("node")), FOUR, "a+foo a+foo b+foo y+foo y+foo y+foo", "- - + -"),
    "two Constraints on zone and node, spreads = [3/4, 2/1/0/4]": (
        waiting(hard("zone"), hard("node")), FOUR, "a+foo a+foo b+foo y+foo y+foo y+foo y+foo", "- - - -"),
    "Constraints hold different labelSelectors, spreads = [1/0, 1/0/0/1]": (
        waiting(hard("zone"), hard("node", BAR), labels="foo bar"), FOUR, "a+foo y+bar", "- - + -"),
    "Constraints hold different labelSelectors, spreads = [1/0, 0/0/1/1]": (
        waiting(hard("zone"), hard("node", BAR), labels="foo bar"), FOUR, "a+foo x+bar y+bar", "- - - -"),
    "Constraints hold different labelSelectors, spreads = [2/3, 1/0/0/1]": (
        waiting(hard("zone"), hard("node", BAR), labels="foo bar"), FOUR,
        "a+foo a+foo+bar y+foo y+foo+bar y+foo", "- + - -"),
    "Constraints hold different labelSelectors but pod doesn't match itself on 'zone' constraint": (
        waiting(hard("zone"), hard("node", BAR), labels="bar"), FOUR, "a+foo x+bar y+bar", "+ + - -"),
}  # fmt: skip


@pytest.mark.parametrize(("pod", "some", "there", "marks"), MULTIPLE.values(), ids=MULTIPLE)
def test_the_twin_refuses_nodes_as_kube_scheduler_by_two_constraints(
    pod: Json, some: str, there: str, marks: str
) -> None:
    assert judged(pod, nodes(some), pods(there)) == marks


def test_a_node_that_lacks_the_key_of_the_second_constraint_is_not_counted_for_the_first() -> None:
    """TestMultipleConstraints: absence of label 'node' on node-x, spreads = [1/1, 1/0/0/1]."""
    some = nodes(FOUR)
    del some[2]["metadata"]["labels"]["node"]
    pod = waiting(hard("zone"), hard("node"))
    assert judged(pod, some, pods("a+foo y+foo")) == "- + ! -"


WITH_FOO: dict[str, Json] = {name: {"foo": ""} for name in "abx"}


def test_node_inclusion_policies_say_whose_pods_are_counted() -> None:
    """TestSingleConstraint and TestMultipleConstraints: NodeAffinityPolicy and NodeTaintsPolicy."""
    here = nodes(FOUR, **WITH_FOO)
    picky: Json = {"nodeSelector": {"foo": ""}}
    there = pods("a+foo b+foo y+foo")
    assert judged(waiting(hard("node"), **picky), here, there) == "- - + +"
    assert judged(waiting(hard("node", **IGNORE), **picky), here, there) == "- - + -"
    assert judged(waiting(hard("node"), affinity=requires("foo", "")), here, there) == "- - + +"
    here[3]["spec"]["taints"] = TAINTED
    assert judged(waiting(hard("node", nodeTaintsPolicy="Honor")), here, there) == "- - + +"
    assert judged(waiting(hard("node")), here, there) == "- - + -"
    both = hard("zone"), hard("node", **IGNORE)
    assert judged(waiting(*both, **picky), here, there) == "- - + -"
    both = hard("zone", nodeTaintsPolicy="Honor"), hard("node")
    assert judged(waiting(*both), here, there) == "- - + -"
    without_b = nodes(FOUR, **{name: {"foo": ""} for name in "axy"})
    without_b[3]["spec"]["taints"] = TAINTED
    assert judged(waiting(hard("zone"), hard("node"), **picky), without_b, there) == "- + + -"
    both = hard("zone", nodeTaintsPolicy="Honor"), hard("node", **IGNORE)
    assert judged(waiting(*both, **picky), without_b, there) == "- - + -"


def test_pods_of_other_namespaces_and_those_being_deleted_do_not_count() -> None:
    """TestSingleConstraint: existing pods in a different namespace do not count; terminating Pods."""
    there = pods("a+foo a+foo x+foo y+foo")
    for one in there[:2]:
        one["metadata"]["namespace"] = "other"
    assert judged(waiting(hard("zone")), nodes(FOUR), there) == "+ + - -"
    two = pods("a+foo b+foo")
    two[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert judged(waiting(hard("node")), nodes("a b"), two) == "+ -"


def test_a_selector_that_asks_nothing_counts_no_pod_but_the_one_that_waits() -> None:
    """countPodsMatchSelector; were they counted, a would be 2 + 1 above b."""
    assert judged(waiting(hard("node", {})), nodes("a b"), pods("a a")) == "+ +"


def test_of_two_broken_constraints_the_first_says_why() -> None:
    rack: Json = {"rack": "r"}
    some, there = nodes("a=zone1 b=zone2 c=zone1", b=rack, c=rack), pods("c+foo c+foo")
    assert judged(waiting(hard("zone"), hard("rack")), some, there) == "- + -"
    assert judged(waiting(hard("rack"), hard("zone")), some, there) == "! + -"
