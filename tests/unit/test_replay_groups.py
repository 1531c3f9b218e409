"""Groups in a recorded trace: placed all at once, and passed by others as ``--waiting`` says."""

from pathlib import Path

import numpy as np
import pytest

from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import RunOptions, Series
from scheduler.replay.line import Line
from scheduler.replay.measures import recorded
from scheduler.replay.words import Waiting

# Two nodes of 4 cores. "a" and "b" run until 100 and 200; a group that needs both nodes comes at 10. A long and a short
# pod come after it: the short one ends before the group could start, the long one would delay it.
NODES = "name,cpu,memory\nn0,4,8Gi\nn1,4,8Gi\n"
PODS = """name,cpu,memory,arrival,departure,group,run_time
a,4,1Gi,0,100,,100
b,4,1Gi,0,200,,200
g0,4,1Gi,10,310,gang,300
g1,4,1Gi,10,310,gang,300
long,4,1Gi,20,520,,500
short,4,1Gi,30,80,,50
end,1,1Gi,900,901,,1
"""


def play(folder: Path, waiting: Waiting, *, queue: bool = True) -> tuple[dict[str, float], Series]:
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(PODS)
    trace = traces.read_trace(folder)
    workload = workloads.make_recorded(trace, 0)
    options = RunOptions("keel", "seen", queue, 0, measure_frag=False, waiting=waiting)
    series = engine.run_experiment(trace, workload, options)
    names = [trace.pods[which].name for which in workload.pod.tolist()]
    return dict(zip(names, series.placed_at.round().tolist(), strict=True)), series


def test_backfill_lets_those_pass_that_do_not_delay_the_group(tmp_path: Path) -> None:
    placed, _ = play(tmp_path, "backfill")
    assert placed == {"a": 0, "b": 0, "g0": 200, "g1": 200, "short": 100, "long": 500, "end": 900}


def test_best_effort_lets_everybody_pass_and_the_group_waits_longest(tmp_path: Path) -> None:
    placed, _ = play(tmp_path, "best-effort")
    assert placed["long"] == 100
    assert placed["short"] == 200
    assert placed["g0"] == placed["g1"] == 600


def test_in_a_line_nobody_passes(tmp_path: Path) -> None:
    placed, _ = play(tmp_path, "fifo")
    assert placed["g0"] == placed["g1"] == 200
    assert placed["long"] == placed["short"] == 500


def test_without_a_queue_a_group_that_does_not_fit_is_lost_whole(tmp_path: Path) -> None:
    placed, _ = play(tmp_path, "backfill", queue=False)
    assert np.isnan([placed["g0"], placed["g1"], placed["long"]]).all()


def test_the_waits_of_groups_are_told_apart(tmp_path: Path) -> None:
    _, series = play(tmp_path, "backfill")
    trace = traces.read_trace(tmp_path)
    workload = workloads.make_recorded(trace, 0)
    record = recorded.make_figures(trace, workload, series, is_queued=True)
    assert record["wait_mean_in_groups_seconds"] == pytest.approx(190, abs=1)
    # Of five pods by themselves two waited: for 480 and for 70 seconds.
    assert record["wait_mean_alone_seconds"] == pytest.approx(110, abs=1)


def test_a_group_stands_in_line_where_its_first_pod_came() -> None:
    line = Line(["", "g", "", "g"])
    assert not line.take_first()
    line.add(0)
    line.add(1)
    line.add(2)
    assert line.take_first() == [0]
    assert not line.take_first()
    line.add(3)
    assert line.take_first() == [1, 3]
    assert line.take_first() == [2]
    assert not line.take_first()


def test_gpus_stay_in_use_in_a_trace_with_groups(tmp_path: Path) -> None:
    """A pod that is shown as running keeps its cards: two of two GPUs fit on a node of four, the others wait."""
    (tmp_path / "nodes.csv").write_text("name,cpu,memory,gpus,model\nn0,64,256Gi,4,T4\n")
    pods = [f"p{i},1,1Gi,2,{i},100,{'gang' if i > 1 else ''}\n" for i in range(4)]
    header = "name,cpu,memory,gpus,arrival,departure,group\n"
    (tmp_path / "pods.csv").write_text(header + "".join(pods) + "end,1,1Gi,0,900,901,\n")
    trace = traces.read_trace(tmp_path)
    workload = workloads.make_recorded(trace, 0)
    options = RunOptions("keel", "seen", True, 0, measure_frag=False)
    series = engine.run_experiment(trace, workload, options)
    assert series.placed_at.round().tolist() == [0, 1, 100, 100, 900]
    assert series.allocated.max() <= 4000
