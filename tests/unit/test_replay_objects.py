"""What the engine sees of a trace: labels, extended resources, and how many of an app a node may have."""

from collections import Counter

import numpy as np
import pytest

from scheduler.api import names
from scheduler.replay import objects
from scheduler.replay import run as engine
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod, Workload
from scheduler.replay.words import MODES

IOPS = "example.com/iops"


def went(trace: Trace, mode: str = "keel") -> list[int]:
    """Where the pods go that come one after the other and stay."""
    n = len(trace.pods)
    workload = Workload(
        np.arange(len(trace.nodes)), np.arange(n), np.arange(float(n)), np.full(n, np.inf)
    )
    options = RunOptions(mode, "seen", queue=False, seed=1, measure_frag=False)
    found: list[int] = engine.run_experiment(trace, workload, options).node.tolist()
    return found


def of_app(n: int, most: int, app: str = "web") -> tuple[TracePod, ...]:
    return tuple(
        TracePod(f"{app}-{i}", 100, 64, 0, 0, (), app=app, max_per_node=most) for i in range(n)
    )


# Lots are drawn in wrapping integers, of which Python warns where kernels are not compiled.
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "random"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_node_has_more_of_an_app_than_it_may_and_all_are_used(mode: str, most: int) -> None:
    nodes = tuple(TraceNode(f"n{i}", 64_000, 65_536, 0, "") for i in range(4))
    pods = (*of_app(4 * most + 2, most), *of_app(9, 0, "free"), *of_app(3, most, "other"))
    found = went(Trace("t", nodes, pods), mode)
    web = found[: 4 * most + 2]
    assert Counter(web) == {-1: 2, **dict.fromkeys(range(4), most)}
    assert -1 not in found[4 * most + 2 :]


def test_one_node_is_full_too_when_there_are_no_others() -> None:
    nodes = (TraceNode("n", 64_000, 65_536, 0, ""),)
    assert went(Trace("t", nodes, of_app(4, 3))) == [0, 0, 0, -1]


def test_one_of_an_app_is_anti_affinity_and_more_are_a_spread_that_counts_the_emptiest_as_empty() -> (
    None
):
    (one,), (two,) = of_app(1, 1), of_app(1, 2)
    spec, _ = objects.make_spec(one, "evenkeel", 7)
    assert spec.affinity is not None
    assert spec.affinity.pod_anti_affinity is not None
    terms = spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    assert terms is not None
    (term,) = terms
    assert term.topology_key == names.HOSTNAME
    assert term.label_selector is not None
    assert term.label_selector.match_labels == {"app": "web"} == objects.make_labels(one)
    assert spec.topology_spread_constraints is None
    spec, _ = objects.make_spec(two, "evenkeel", 7)
    assert spec.affinity is None
    assert spec.topology_spread_constraints is not None
    (spread,) = spec.topology_spread_constraints
    assert (spread.max_skew, spread.min_domains) == (2, 8)
    assert (spread.topology_key, spread.when_unsatisfiable) == (names.HOSTNAME, "DoNotSchedule")


def test_nodes_have_hostnames_only_where_somebody_looks_at_them() -> None:
    node = TraceNode("a name that is no label's value", 1000, 1024, 0, "")
    assert not objects.needs_hostnames(Trace("t", (node,), of_app(1, 0)))
    assert objects.needs_hostnames(Trace("t", (node,), of_app(1, 1)))
    assert not objects.make_node(node, 3).metadata.labels
    labels = objects.make_node(node, 3, has_hostname=True).metadata.labels
    assert labels == {names.HOSTNAME: "00003"}


def test_extended_resources_are_given_away_until_they_are_gone() -> None:
    nodes = (
        TraceNode("a", 8000, 8192, 0, "", ((IOPS, 10),)),
        TraceNode("b", 8000, 8192, 0, "", ((IOPS, 25),)),
        TraceNode("c", 8000, 8192, 0, ""),
    )
    pods = tuple(TracePod(f"p{i}", 1, 1, 0, 0, (), extended=((IOPS, 10),)) for i in range(5))
    assert went(Trace("t", nodes, pods), "first-fit") == [0, 1, 1, -1, -1]


def test_pods_of_one_kind_differ_in_name_and_times_only() -> None:
    pod = TracePod("p", 1, 2, 1, 500, ("A",), 3, ((IOPS, 4),), "web", 5, 6.0, 7.0)
    other = TracePod("q", 1, 2, 1, 500, ("A",), 3, ((IOPS, 4),), "web", 5)
    assert pod.kind == other.kind
    assert pod.kind != TracePod("q", 1, 2, 1, 500, ("A",), 3, ((IOPS, 4),), "web", 4).kind
