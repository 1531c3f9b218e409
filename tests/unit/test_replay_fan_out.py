"""Many runs come to the same wherever they run, and a failure says which run it was."""

import dataclasses
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import distributed
import numpy as np
import pytest
from rich.console import Console

from scheduler import progress
from scheduler.errors import BadInput
from scheduler.replay import fan_out
from scheduler.replay.experiment import RunOptions
from scheduler.replay.fan_out import Finished, Job
from tests.screen import Screen
from tests.unit import replay_engine

TRACES = {"default": replay_engine.small_trace()}


def job(experiment: str = "churn", seed: int = 1, mode: str = "first-fit") -> Job:
    options = RunOptions(mode, "seen", queue=False, seed=seed, measure_frag=experiment == "fill")
    return Job("default", experiment, 1.1, 200, options)


JOBS = [
    job(experiment, seed, mode)
    for experiment in ("fill", "churn")
    for mode in ("first-fit", "random")
    for seed in (1, 2)
]


def told(finished: list[Finished]) -> list[object]:
    """All there is of runs, arrays as bytes."""
    return [
        [
            one.job, one.record, one.gpu_used, one.used.tobytes(),
            *(getattr(one.curve, field.name).tobytes() for field in dataclasses.fields(one.curve)),
        ]
        for one in finished
    ]  # fmt: skip


@pytest.fixture(scope="module")
def here() -> list[Finished]:
    return fan_out.run_jobs(JOBS, TRACES, engine=replay_engine.first_fit)


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",  # within a process nothing would be packed for the journey
        dashboard_address=None,
    ) as local:
        yield local


def test_answers_stand_in_the_order_of_the_jobs_and_say_what_they_are(here: list[Finished]) -> None:
    assert [one.job for one in here] == JOBS
    assert [(one.record["experiment"], one.record["mode"], one.record["seed"]) for one in here] == [
        (one.experiment, one.options.mode, one.options.seed) for one in JOBS
    ]
    assert here[0].record["trace"] == "small"
    assert here[4].record["arrivals"] == 200
    assert len({one.record["allocated_percent"] for one in here[4:]}) > 1


def test_several_processes_come_to_the_same(here: list[Finished]) -> None:
    there = fan_out.run_jobs(JOBS, TRACES, processes=2, engine=replay_engine.first_fit)
    assert told(there) == told(here)


def test_a_dask_cluster_comes_to_the_same(
    here: list[Finished], cluster: distributed.LocalCluster
) -> None:
    address = cluster.scheduler_address
    there = fan_out.run_jobs(JOBS, TRACES, dask=address, engine=replay_engine.first_fit)
    assert told(there) == told(here)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failed_run_is_named_with_its_traceback(processes: int) -> None:
    jobs = [job(seed=seed) for seed in (1, 2, 3)]
    with pytest.raises(fan_out.JobFailed) as caught:
        fan_out.run_jobs(jobs, TRACES, processes=processes, engine=replay_engine.fails)
    assert str(caught.value).startswith("churn of default, first-fit, seed 2: Traceback")
    assert "seed two is unlucky" in str(caught.value)


def test_a_failed_run_on_dask_is_named_too(cluster: distributed.LocalCluster) -> None:
    jobs = [job(seed=seed) for seed in (1, 2, 3)]
    with pytest.raises(fan_out.JobFailed, match="churn of default, first-fit, seed 2: Traceback"):
        fan_out.run_jobs(jobs, TRACES, dask=cluster.scheduler_address, engine=replay_engine.fails)


def test_what_the_engine_refuses_is_bad_input_and_names_the_run() -> None:
    with pytest.raises(BadInput) as caught:
        fan_out.run_jobs([job(), job(seed=2)], TRACES, processes=2, engine=replay_engine.refuses)
    assert "first-fit, seed" in str(caught.value)
    assert "first-fit is not built in" in str(caught.value)


def test_a_process_that_dies_is_told_with_a_run_it_took_along() -> None:
    jobs = [job(seed=2), job(seed=2, mode="random")]
    with pytest.raises(
        fan_out.JobFailed, match=r"churn of default, .*, seed 2: the process of this run ended"
    ):
        fan_out.run_jobs(jobs, TRACES, processes=2, engine=replay_engine.ends)


def test_without_dask_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadInput, match=r"--dask: needs the extra dask: pip install .*\[dask\]"):
        fan_out.run_jobs([job()], TRACES, dask="tcp://127.0.0.1:1", engine=replay_engine.first_fit)


def test_an_address_without_a_scheduler_is_told() -> None:
    with pytest.raises(BadInput, match="--dask: no Dask scheduler answers at nowhere:"):
        fan_out.run_jobs([job()], TRACES, dask="nowhere://x", engine=replay_engine.first_fit)


def test_progress_is_drawn_where_it_is_asked_for() -> None:
    drawn = Screen()
    console = Console(file=drawn, force_terminal=True, width=60, _environ={"TERM": "xterm"})
    jobs = [job(seed=seed) for seed in (1, 2)]
    fan_out.run_jobs(jobs, TRACES, engine=replay_engine.first_fit, console=console)
    assert "2 of 2" in drawn.getvalue()


def test_no_bar_is_drawn_in_a_pipe_even_where_colours_are_wanted() -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=60, _environ={"TERM": "xterm"})
    fan_out.run_jobs([job()], TRACES, engine=replay_engine.first_fit, console=console)
    assert not drawn.getvalue()


@pytest.mark.parametrize("processes", [1, 2])
def test_how_far_runs_have_come_is_told_while_they_run(
    monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    told: list[float] = []

    @contextmanager
    def bar(*_: object) -> Iterator[progress.Progressed]:
        yield told.append

    monkeypatch.setattr(progress, "show_bar", bar)
    jobs = [job(seed=seed) for seed in (1, 2, 3)]
    fan_out.run_jobs(jobs, TRACES, processes=processes, engine=replay_engine.slow)
    assert told == sorted(told)
    assert told[-1] == 3.0
    # Two halves of two that run side by side are a whole, but the third has nobody beside it.
    assert [part for part in told if part % 1]


def test_without_an_engine_the_rooms_own_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "_import_engine", lambda _: replay_engine.first_fit)
    (own,) = fan_out.run_jobs([job()], TRACES)
    (given,) = fan_out.run_jobs([job()], TRACES, engine=replay_engine.first_fit)
    assert np.array_equal(own.used, given.used)
    assert own.record == given.record
