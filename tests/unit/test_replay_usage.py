"""What was in use when: told after the run as the run itself counted it, and by hand."""

from pathlib import Path

import numpy as np
import pytest

from scheduler.replay import demand, traces, workloads
from scheduler.replay import run as engine
from scheduler.replay.experiment import RunOptions, Trace
from scheduler.replay.measures import usage
from scheduler.replay.measures.usage import Line

OPENB = Path(__file__).parents[2] / "bench/data/openb"


@pytest.mark.parametrize("name", sorted(workloads.STREAMS))
@pytest.mark.parametrize("queue", [False, True])
def test_it_is_what_the_run_saw_after_every_arrival_and_at_its_end(name: str, queue: bool) -> None:
    whole = traces.read_trace(OPENB)
    trace = Trace("small", whole.nodes[::100], whole.pods)
    asked = demand.read_demand(trace)
    workload = workloads.STREAMS[name](trace, 2, 1.1, 400)
    options = RunOptions("first-fit", "seen", queue, 1, measure_frag=False)
    series = engine.run_experiment(trace, workload, options)
    is_placed = series.node >= 0
    assert (series.placed_at[is_placed] >= workload.at[is_placed]).all()
    # Of those who come at one moment only the last has seen them all.
    last = np.flatnonzero(np.diff(workload.at, append=np.inf) > 0)
    gpus = usage.measure_resource(workload, series, asked.amounts[2][workload.pod])
    nodes = usage.measure_nodes(workload, series)
    for line, seen in ((gpus, series.allocated), (nodes, series.occupied)):
        after = np.searchsorted(line.at, workload.at[last] + 1e-9, side="right") - 1
        assert np.asarray(line.value)[after].tolist() == seen[last].tolist()
    used = usage.measure_end(asked, workload, series)
    assert used[0].tolist() == series.cpu_used.tolist()
    assert used[1].tolist() == series.memory_used.tolist()
    assert used[2].tolist() == [sum(cards) for cards in series.gpu_used]


def test_means_are_exact_between_edges_that_fall_anywhere() -> None:
    line = Line(np.array([1.0, 2.0, 4.0, np.inf]), np.array([10, 30, 20, 0]))
    assert line.list_means(np.array([0.0, 1.0, 1.5, 3.0, 6.0])).tolist() == pytest.approx(
        [0.0, 10.0, (5 + 30) / 1.5, (30 + 40) / 3]
    )
    assert line.find_mean(1.5, 3.0) == pytest.approx((5 + 30) / 1.5)


def test_of_a_moment_it_is_what_is_there_right_after_it() -> None:
    line = Line(np.array([1.0, 1.0, 4.0]), np.array([10, 30, 20]))
    assert [line.find_mean(at, at) for at in (0.5, 1.0, 3.9, 4.0, 9.0)] == [0, 30, 30, 20, 20]


def test_nothing_placed_is_nothing_in_use() -> None:
    line = Line(np.zeros(0), np.zeros(0, np.int64))
    assert line.find_mean(0.0, 2.0) == line.find_mean(1.0, 1.0) == 0.0
