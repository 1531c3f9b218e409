"""The engine of the simulator: what it counts, who waits, who is lost; placement itself has its twins."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from scheduler.replay import objects, traces, workloads
from scheduler.replay import run as engine
from scheduler.replay.experiment import (
    RunOptions,
    Series,
    Trace,
    TraceNode,
    TracePod,
    Workload,
)
from scheduler.replay.words import MODES

OPENB = Path(__file__).parents[2] / "bench" / "data" / "openb"
HALF = TracePod("half", 1000, 1024, 1, 500, ())
WHOLE = TracePod("whole", 2000, 2048, 1, 1000, ())
PAIR = TracePod("pair", 4000, 0, 2, 1000, ("T4",))
CPU = TracePod("cpu", 3000, 512, 0, 0, ())
PODS = (HALF, WHOLE, PAIR, CPU)
ONE_NODE = (TraceNode("n", 32_000, 65_536, 2, "T4"),)


def options(mode: str = "keel", *, queue: bool = False, frag: bool = False) -> RunOptions:
    return RunOptions(mode=mode, learn="seen", queue=queue, seed=7, measure_frag=frag)


def play(
    story: Sequence[tuple[TracePod, float, float]],
    nodes: tuple[TraceNode, ...] = ONE_NODE,
    how: RunOptions | None = None,
) -> Series:
    """A run of pods with their arrivals and lifetimes."""
    trace = Trace("story", nodes, PODS)
    workload = Workload(
        order=np.arange(len(nodes)),
        pod=np.array([PODS.index(pod) for pod, _, _ in story]),
        at=np.array([at for _, at, _ in story]),
        lifetime=np.array([lifetime for _, _, lifetime in story]),
    )
    return engine.run_experiment(trace, workload, how or options())


def test_what_is_asked_allocated_and_left_at_the_end() -> None:
    series = play([(HALF, 0, math.inf), (HALF, 1, math.inf), (WHOLE, 2, math.inf), (CPU, 3, 9)])
    assert series.asked.tolist() == [500, 1000, 2000, 2000]
    assert series.allocated.tolist() == [500, 1000, 2000, 2000]
    assert series.gpu_used == ((1000, 1000),)
    assert series.cpu_used.tolist() == [7000]
    assert series.memory_used.tolist() == [4608]
    assert series.occupied.tolist() == [1, 1, 1, 1]
    assert series.placed_at.tolist() == [0, 1, 2, 3]
    assert series.node.tolist() == [0, 0, 0, 0]
    assert np.isnan(series.frag).all()


def test_without_a_queue_what_does_not_fit_is_lost_for_good() -> None:
    series = play([(PAIR, 0, 2.0), (HALF, 1, 1.0), (HALF, 3, 1.0)])
    assert series.node.tolist() == [0, -1, 0]
    assert math.isnan(series.placed_at[1])
    assert series.allocated.tolist() == [2000, 2000, 500]


def test_with_a_queue_it_waits_for_the_first_to_leave() -> None:
    series = play([(PAIR, 0, 2.0), (WHOLE, 1, 5.0), (HALF, 3, 1.0)], how=options(queue=True))
    assert series.node.tolist() == [0, 0, 0]
    # The backoff after a failed try is of seconds, where a lifetime is an hour.
    assert series.placed_at[1] == pytest.approx(2.0, abs=0.003)
    assert series.allocated.tolist() == [2000, 2000, 1500]


def test_who_waits_runs_its_whole_life_from_when_it_is_placed() -> None:
    story = [(PAIR, 0, 2.0), (PAIR, 1, 3.0), (PAIR, 1.5, 1.0), (CPU, 20, 1.0)]
    series = play(story, how=options(queue=True))
    assert series.placed_at == pytest.approx([0, 2.0, 5.0, 20], abs=0.003)


def test_no_waiting_pod_stops_the_clock() -> None:
    """Times that are no whole seconds once stood still between two units of time."""
    rng = np.random.default_rng(3)
    story = [(PODS[i % 3], at, 0.3) for i, at in enumerate(np.cumsum(rng.exponential(0.2, 200)))]
    series = play(story, how=options(queue=True))
    assert (series.node[:-20] >= 0).all()
    waited = series.placed_at - [at for _, at, _ in story]
    assert (waited[series.node >= 0] >= 0).all()
    assert waited[series.node >= 0].max() > 0.1


def test_models_are_honoured_and_mib_are_of_the_card() -> None:
    nodes = (TraceNode("a", 8000, 8192, 2, "P100"), TraceNode("b", 8000, 8192, 2, "T4"))
    assert play([(PAIR, 0, 1)], nodes).node.tolist() == [1]
    # A T4 has 15,360 MiB, a P100 16,384.
    big = TracePod("big", 100, 0, 1, 100, (), gpu_mib=16_000)
    trace = Trace("mib", nodes, (big,))
    workload = Workload(np.array([1, 0]), np.zeros(2, int), np.arange(2.0), np.full(2, math.inf))
    assert engine.run_experiment(trace, workload, options()).node.tolist() == [0, 0]


def test_a_model_is_not_another_whose_name_holds_its_own() -> None:
    nodes = (TraceNode("a", 8000, 8192, 2, "A100"), TraceNode("b", 8000, 8192, 2, "A10"))
    picky = TracePod("picky", 1000, 0, 2, 1000, ("A10",))
    trace = Trace("models", nodes, (picky,))
    workload = Workload(np.arange(2), np.zeros(2, int), np.arange(2.0), np.full(2, math.inf))
    assert engine.run_experiment(trace, workload, options()).node.tolist() == [1, -1]


def test_a_share_that_is_no_whole_percent_is_rounded_up() -> None:
    spec, _ = objects.make_spec(TracePod("p", 1, 1, 1, 333, ()), "evenkeel")
    resources = spec.containers[0].resources
    assert resources is not None
    assert resources.limits is not None
    assert resources.limits["nvidia.com/gpucores"] == 34


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_fills_a_small_openb_and_never_over(mode: str) -> None:
    whole = traces.read_trace(OPENB, "gpuspec33")
    trace = Trace("small", whole.nodes[::40], whole.pods)
    workload = workloads.draw_churn(trace, 1, 1.2, 1500)
    first = engine.run_experiment(trace, workload, options(mode, frag=True))
    again = engine.run_experiment(trace, workload, options(mode, frag=True))
    for name in ("allocated", "frag", "node", "occupied"):
        assert np.array_equal(getattr(first, name), getattr(again, name)), name
    assert 0.6 * trace.capacity < first.allocated[-1] <= trace.capacity
    assert (first.frag >= 0).all()
    assert (first.frag <= trace.capacity - first.allocated).all()
    for node, used, cpu in zip(trace.nodes, first.gpu_used, first.cpu_used, strict=True):
        assert len(used) == node.gpus
        assert all(0 <= milli <= 1000 for milli in used)
        assert cpu <= node.cpu_milli
    assert sum(map(sum, first.gpu_used)) == first.allocated[-1]


def test_lots_are_drawn_by_the_seed() -> None:
    whole = traces.read_trace(OPENB)
    trace = Trace("small", whole.nodes[::40], whole.pods)
    workload = workloads.draw_churn(trace, 1, 1.0, 300)
    runs = [
        engine.run_experiment(trace, workload, RunOptions("random", "seen", False, seed, False))
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0].node, runs[1].node)
    assert not np.array_equal(runs[0].node, runs[2].node)


def test_the_measure_of_fragments_is_the_published_one_on_an_empty_cluster() -> None:
    """Only pods without GPU and those that no node can hold fragment it: about 14 % of the trace."""
    trace = traces.read_trace(OPENB)
    arrivals = Workload(
        np.arange(len(trace.nodes)), np.array([0]), np.zeros(1), np.full(1, math.inf)
    )
    series = engine.run_experiment(trace, arrivals, options(frag=True))
    assert 100 * series.frag[0] / trace.capacity == pytest.approx(14.0, abs=0.7)
