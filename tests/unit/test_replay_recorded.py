"""What was recorded is played as it happened: worked out by hand, and against a twin that counts seconds."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import BadInput
from scheduler.replay import fan_out, traces, workloads
from scheduler.replay import run as engine
from scheduler.replay.experiment import RunOptions, Trace, TraceNode, TracePod, Workload
from scheduler.replay.fan_out import Finished, Job
from scheduler.replay.measures import recorded as measures
from tests import slices
from tests.oracles import recorded

OPENB = Path(__file__).parents[2] / "bench/data/openb"
# Two nodes of 4 cores and 8 GiB. In file order:
#   a  0..100   3 cores                        b  0..50   2 cores
#   c  10..60   2 cores: to b's node           d  10..20  2 cores: no room
#   e  50..80   2 cores: b leaves that second  f  60..90  8 GiB: c leaves, but e is on that node
#   g  100..    4 cores: a leaves that second
NODES = "name,cpu,memory\nn1,4,8Gi\nn2,4,8Gi\n"
PODS = """\
name,cpu,memory,arrival,departure
g,4,0,100,
a,3,1Gi,,100
b,2,1Gi,0,50
c,2,1Gi,10,60
d,2,1Gi,10,20
e,2,1Gi,50,80
f,0,8Gi,60,90
"""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "pods.csv").write_text(PODS, encoding="utf-8")
    return traces.read_trace(tmp_path)


def options(*, queue: bool = False) -> RunOptions:
    return RunOptions("first-fit", "seen", queue=queue, seed=5, measure_frag=True)


def played(trace: Trace, *, queue: bool = False) -> Finished:
    (one,) = fan_out.run_jobs([Job("x", "recorded", None, 0, options(queue=queue))], {"x": trace})
    return one


def in_order(trace: Trace, workload: Workload) -> Workload:
    """First fit begins with the first node of the file."""
    order = np.arange(len(trace.nodes))
    return Workload(order, workload.pod, workload.at, workload.lifetime, workload.unit_seconds)


def test_arrivals_stand_in_the_order_of_time_and_then_of_the_file(trace: Trace) -> None:
    workload = workloads.make_recorded(trace, 1)
    assert [trace.pods[i].name for i in workload.pod] == ["a", "b", "c", "d", "e", "f", "g"]
    assert workload.at.tolist() == [0, 0, 10, 10, 50, 60, 100]
    assert workload.lifetime.tolist() == [100, 50, 50, 10, 30, 30, math.inf]
    assert workload.unit_seconds == 1.0


def test_a_seed_changes_the_order_of_nodes_and_nothing_else() -> None:
    whole = traces.read_trace(OPENB)
    one, other = workloads.make_recorded(whole, 1), workloads.make_recorded(whole, 2)
    assert (one.order != other.order).any()
    for field in ("pod", "at", "lifetime"):
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes()


def test_who_does_not_fit_is_lost_and_who_leaves_makes_room_in_the_same_second(
    trace: Trace,
) -> None:
    series = engine.run_experiment(
        trace, in_order(trace, workloads.make_recorded(trace, 1)), options()
    )
    #                               a  b  c   d  e   f  g
    assert series.node.tolist() == [0, 1, 1, -1, 1, -1, 0]
    found = played(trace).record
    assert found["arrivals"] == 7
    assert found["recorded_seconds"] == 100
    assert found["load"] is None
    # Core seconds up to 100: a 300, b 100, c 100, e 60, of 800.
    assert found["allocated_cpu_percent"] == pytest.approx(100 * 560 / 800)
    # GiB seconds: 100 + 50 + 50 + 30 of 1,600.
    assert found["allocated_memory_percent"] == pytest.approx(100 * 230 / 1600)
    # One node all the time, the other until e leaves at 80.
    assert found["nodes_occupied_percent"] == pytest.approx(90.0)
    assert found["lost_pods_percent"] == pytest.approx(100 * 2 / 7)
    # d's 2 of 15 cores; d's and f's 9 of 13 GiB.
    assert found["lost_cpu_percent"] == pytest.approx(100 * 2 / 15)
    assert found["lost_memory_percent"] == pytest.approx(100 * 9 / 13)
    # 15 of 8 cores and 13 of 16 GiB are asked for: only CPU binds.
    assert found["binding"] == "cpu"
    assert found["lost_percent"] == found["lost_cpu_percent"]
    assert found["frag_percent"] is None


def test_with_a_queue_it_waits_in_seconds_and_runs_its_whole_time_from_then_on(
    trace: Trace,
) -> None:
    workload = in_order(trace, workloads.make_recorded(trace, 1))
    series = engine.run_experiment(trace, workload, options(queue=True))
    # At 50 b leaves: d, who has waited since 10, goes before e, who comes then. At 60 both c and d leave:
    # e, who waited, and not f. At 90 e leaves, and f has the node.
    assert series.node.tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert series.placed_at.tolist() == [0, 0, 10, 50, 60, 90, 100]
    found = measures.make_figures(trace, workload, series, is_queued=True)
    assert found["wait_mean_seconds"] == pytest.approx((40 + 10 + 30) / 7)
    assert found["wait_longest_seconds"] == 40
    assert found["still_waiting_pods"] == 0
    assert "lost_percent" not in found
    # a 300, b 100, c 100, d 20, e 60.
    assert found["allocated_cpu_percent"] == pytest.approx(100 * 580 / 800)
    assert found["nodes_occupied_percent"] == pytest.approx(100.0)


def test_lines_are_exact_means_over_steps_of_time(trace: Trace) -> None:
    workload = in_order(trace, workloads.make_recorded(trace, 1))
    curve = measures.make_curve(trace, workload, engine.run_experiment(trace, workload, options()))
    assert curve.x[[0, -1]] == pytest.approx([100 / 480, 100 - 100 / 480])
    assert curve.allocated.mean() == pytest.approx(100 * 560 / 800)
    assert curve.allocated[0] == pytest.approx(100 * 5 / 8)
    assert curve.occupied.mean() == pytest.approx(90.0)
    # 80 s are between two steps.
    assert set(curve.occupied.round(9)) == {100.0, 50.0}


def test_who_comes_all_at_once_is_measured_at_that_moment() -> None:
    pods = tuple(TracePod(f"p{i}", 2000, 1024, 0, 0, (), departure=9.0) for i in range(3))
    trace = Trace("at once", (TraceNode("n", 4000, 8192, 0, ""),), pods, is_recorded=True)
    one = played(trace)
    assert one.record["allocated_cpu_percent"] == 100.0
    assert one.record["nodes_occupied_percent"] == 100.0
    assert one.record["recorded_seconds"] == 0.0
    assert one.curve.allocated.tolist() == [100.0]
    assert one.used.tolist() == [[4000], [2048]]


def test_openb_is_played_by_its_times_where_it_has_them() -> None:
    whole = traces.read_trace(OPENB)
    assert whole.is_recorded
    assert (whole.pods[1].arrival, whole.pods[1].departure) == (427_061, 12_902_960)
    # One task is gone in the second it came.
    assert min(pod.departure - pod.arrival for pod in whole.pods) == 1.0
    with pytest.raises(
        BadInput, match=r"recorded: the pods of openb have no arrival times\. pods\.csv needs"
    ):
        workloads.make_recorded(traces.read_trace(OPENB, "multigpu20"), 1)


NAMES = ("cpu", "memory", "example.com/iops")


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[dict[str, int]], list[recorded.Pod]]:
    amount = st.integers(0, 6)
    nodes = draw(
        st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, amount)), min_size=1, max_size=4)
    )
    limits = {"": 0, "x": draw(st.integers(0, 3)), "y": 1}
    pods = []
    for _ in range(draw(st.integers(1, 14))):
        came, app = draw(st.integers(0, 20)), draw(st.sampled_from(sorted(limits)))
        stays = draw(st.none() | st.integers(1, 12))
        asks = draw(st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(0, 4))))
        gone = None if stays is None else came + stays
        pods.append(recorded.Pod(asks, came, gone, app, limits[app]))
    return nodes, pods


def trace_of(nodes: list[dict[str, int]], pods: list[recorded.Pod]) -> Trace:
    def extended(amounts: dict[str, int]) -> tuple[tuple[str, int], ...]:
        return tuple((name, amounts[name]) for name in NAMES[2:] if amounts[name])

    return Trace(
        "drawn",
        tuple(
            TraceNode(f"n{i}", node["cpu"], node["memory"], 0, "", extended(node))
            for i, node in enumerate(nodes)
        ),
        tuple(
            TracePod(
                f"p{i}", pod.asks["cpu"], pod.asks["memory"], 0, 0, (), 0, extended(pod.asks),
                pod.app, pod.most, pod.arrival, math.inf if pod.departure is None else pod.departure,
            )
            for i, pod in enumerate(pods)
        ),
        is_recorded=True,
    )  # fmt: skip


@settings(max_examples=slices.count_examples(150), deadline=None)
@given(stories(), st.booleans())
def test_a_recorded_trace_goes_second_by_second_as_its_twin(story: Any, queue: bool) -> None:
    nodes, pods = story
    trace = trace_of(nodes, pods)
    workload = in_order(trace, workloads.make_recorded(trace, 1))
    series = engine.run_experiment(trace, workload, options(queue=queue))
    twin = recorded.play(nodes, pods, queue=queue)
    assert workload.pod.tolist() == twin.order
    assert series.node.tolist() == [twin.node.get(i, -1) for i in twin.order]
    assert np.nan_to_num(series.placed_at, nan=-1).tolist() == [
        twin.placed_at.get(i, -1) for i in twin.order
    ]
    found = measures.make_figures(trace, workload, series, is_queued=queue)
    first, last = int(workload.at[0]), int(workload.at[-1])
    moments = [recorded.in_use(pods, twin, now) for now in range(first, last)]
    # Of a moment, what it is then.
    moments = moments or [recorded.in_use(pods, twin, first)]
    asked = {name for name in NAMES[2:] if any(pod.asks[name] for pod in pods)} | {*NAMES[:2]}
    for name in asked:
        there = sum(node[name] for node in nodes)
        used = sum(used[name] for used, _ in moments) / len(moments)
        expected = pytest.approx(100 * used / there) if there else None
        assert found[f"allocated_{name}_percent"] == expected, name
        if not queue:
            total = sum(pod.asks[name] for pod in pods)
            lost = sum(pod.asks[name] for i, pod in enumerate(pods) if i not in twin.node)
            expected = pytest.approx(100 * lost / total) if total else None
            assert found[f"lost_{name}_percent"] == expected, name
    occupied = sum(n for _, n in moments) / len(moments) / len(nodes)
    assert found["nodes_occupied_percent"] == pytest.approx(100 * occupied)
