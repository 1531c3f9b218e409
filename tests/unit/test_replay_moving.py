"""Runs in which running pods are moved: who is moved when, who gets in, and what is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from scheduler.errors import BadInput
from scheduler.replay import command, fan_out, run, traces, workloads
from scheduler.replay.experiment import Moved, RunOptions, Series, Trace, Workload
from scheduler.replay.measures import usage
from scheduler.replay.moving_run import run_moving

NODES = "name,cpu,memory,gpus,model\na,8,32Gi,1,T4\nb,8,32Gi,1,T4\n"
PODS = """name,cpu,memory,gpus,gpu_share,arrival,departure
leaves,1,1Gi,1,0.6,0,500
stays,1,1Gi,1,0.6,1,9000
small,1,1Gi,1,0.3,2,5000
whole,1,1Gi,1,1,550,650
end,1,1Gi,0,,8000,8001
"""


def play(folder: Path, pods: str, *, moves: int, queue: bool = True) -> tuple[Trace, Workload, Series]:  # fmt: skip
    (folder / "nodes.csv").write_text(NODES, encoding="utf-8")
    (folder / "pods.csv").write_text(pods, encoding="utf-8")
    trace = traces.read_trace(folder, "default")
    workload = workloads.make_recorded(trace, 42)
    options = RunOptions("best-fit", "seen", queue, 42, measure_frag=False, defrag=moves)
    play_it = run_moving if moves else run.run_experiment
    return trace, workload, play_it(trace, workload, options)


def list_stays(trace: Trace, workload: Workload, series: Series) -> list[tuple[str, float, float]]:
    found = usage.list_stays(workload, series)
    names = [trace.pods[workload.pod[i]].name for i in found.arrival.tolist()]
    return sorted(zip(names, found.start.tolist(), found.end.tolist(), strict=True))


def test_a_pod_is_moved_once_it_has_run_for_long_enough_and_lets_another_one_in(
    tmp_path: Path,
) -> None:
    trace, workload, series = play(tmp_path, PODS, moves=0)
    whole = [trace.pods[which].name for which in workload.pod].index("whole")
    assert series.placed_at[whole] == 5000
    trace, workload, series = play(tmp_path, PODS, moves=5)
    assert series.placed_at[whole] == 1200
    assert series.moved == Moved(moves=1, missed=0, cards=1, let_in=1)
    assert list_stays(trace, workload, series) == [
        ("end", 8000, 8001),
        ("leaves", 0, 500),
        ("small", 2, 1200),
        ("small", 1200, 5000),
        ("stays", 1, 9000),
        ("whole", 1200, 1300),
    ]
    found = usage.find_waits(workload, series.stays) if series.stays else np.zeros(0)
    assert found.tolist()[whole] == 650
    assert sum(found) == 650


def test_figures_count_for_each_move_and_a_run_without_moves_has_none(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "pods.csv").write_text(PODS, encoding="utf-8")
    request = command.Request(
        trace=tmp_path, experiment="recorded", modes=["best-fit"], queue=True, defrag=["0,5"]
    )
    jobs = command.plan_jobs(request)
    known = {"default": traces.read_trace(tmp_path, "default")}
    none, some = (one.record for one in fan_out.run_jobs(jobs, known, console=Console(quiet=True)))
    assert (none["defrag"], some["defrag"]) == ("", "defrag 5")
    assert "moves" not in none
    assert (some["moves"], some["moves_missed_percent"]) == (1, 0)
    assert (some["moves_freed_gpus_each"], some["moves_let_in_each"]) == (1, 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"defrag": ["many"]}, '--defrag: "many" is not a number of moves within 0..1000'),
        ({"defrag": ["1001"]}, '--defrag: "1001" is not a number of moves within 0..1000'),
        ({"defrag": ["1"]}, "--defrag: not for fill: there is no time in which pods could be moved"),
    ],
)  # fmt: skip
def test_wrong_numbers_of_moves_are_refused(change: dict[str, list[str]], said: str) -> None:
    with pytest.raises(BadInput) as error:
        command.plan_jobs(command.Request(trace=Path(), **change))  # type: ignore[arg-type]
    assert str(error.value) == said


def test_without_a_queue_moves_go_on_and_nothing_is_lost_by_them(tmp_path: Path) -> None:
    trace, workload, series = play(tmp_path, PODS, moves=5, queue=False)
    names = [trace.pods[which].name for which in workload.pod]
    assert series.moved == Moved(moves=1, missed=0, cards=1, let_in=0)
    assert [names[i] for i in np.flatnonzero(series.node < 0)] == ["whole"]
