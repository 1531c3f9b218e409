"""Runs many jobs in this process, in several, or on a Dask cluster, with the same answers in the same order.

Traces are read by the caller and sent to every process once, so that workers elsewhere need no files. A job
that fails returns a value that names it: not every error can be sent between processes, and the reader must know
which run failed.
"""

from __future__ import annotations

import functools
import operator
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from scheduler import progress
from scheduler.errors import BadInput, EvenkeelError
from scheduler.replay import demand, workloads
from scheduler.replay import processes as pool
from scheduler.replay.experiment import (
    Ints,
    RunOptions,
    Series,
    Tell,
    Trace,
    Workload,
    ignore_progress,
)
from scheduler.replay.measures import fill, moves, recorded, streams, teams, usage
from scheduler.replay.measures.averages import Record
from scheduler.replay.measures.curve import Curve
from scheduler.replay.measures.teams import TeamCurves

Engine = Callable[[Trace, Workload, RunOptions, Tell], Series]
Traces = Mapping[str, Trace]


class JobFailed(EvenkeelError):  # noqa: N818 - reads as what happened
    """A run ended with an error; the message names the run and has the traceback."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run: which pods, how they arrive, how they are placed, and the seed.

    Attributes:
        load: the load; None for a recorded workload.
        arrivals: the number of arrivals in streams that are drawn.
    """

    variant: str
    experiment: str
    load: float | None
    arrivals: int
    options: RunOptions

    def __str__(self) -> str:
        return f"{self.experiment} of {self.variant}, {self.label}, seed {self.options.seed}"

    @property
    def label(self) -> str:
        """The mode, the policy if there is one, and moves: what differs between runs of one experiment."""
        policy = "" if self.options.policy is None else self.options.policy.name
        return ", ".join(filter(None, (policy, say_moves(self.options), self.options.mode)))


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a run.

    Attributes:
        record: flat fields: first what was run (trace, variant, experiment, mode, ...), then the figures.
        curve: the lines of the run.
        used: [R, N] what is in use on each node at the end, by the resources of a ``demand.Demand``.
        gpu_used: milli in use on each GPU of each node at the end.
        teams: the lines of the teams; None if there are no queues.
    """

    job: Job
    record: Record
    curve: Curve
    used: Ints
    gpu_used: tuple[tuple[int, ...], ...]
    teams: TeamCurves | None = None


@dataclass(frozen=True, slots=True)
class _Failed:
    job: Job
    problem: str
    is_bad_input: bool


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What a worker process knows before its first job; ``parts`` is the progress of each job, which all processes see."""

    traces: Traces
    engine: Engine | None
    parts: Any


_Known = tuple[Traces, Engine | None]
Answers = Generator[tuple[int, Finished | _Failed], None, None]


def run_jobs(
    jobs: Sequence[Job],
    traces: Traces,
    *,
    processes: int = 1,
    dask: str = "",
    engine: Engine | None = None,
    console: Console | None = None,
) -> list[Finished]:
    """Run all jobs and return their results, in the order of ``jobs``.

    Args:
        jobs: the runs; the ``variant`` of each is a key of ``traces``.
        traces: traces by variant.
        processes: how many processes work at once on this machine; 1: only this process.
        dask: address of a Dask scheduler, whose workers have Evenkeel installed; empty: this machine.
        engine: a function that runs a workload; None is the engine of this room.
        console: where a bar is drawn if it is a terminal; None is standard error.

    Raises:
        BadInput: a job's options are refused, or Dask is requested and not installed or not there.
        JobFailed: a run ended with an error; the rest is given up.
    """
    finished: dict[int, Finished] = {}
    with progress.show_bar("runs", len(jobs), console) as progressed:
        if dask:
            answers = _run_on_dask(jobs, traces, engine, dask, progressed)
        elif processes > 1 and len(jobs) > 1:
            n_processes = min(processes, len(jobs))
            answers = _run_in_processes(jobs, traces, engine, n_processes, progressed)
        else:
            answers = _run_here(jobs, traces, engine, progressed)
        with closing(answers):
            for i, answer in answers:
                if isinstance(answer, _Failed):
                    if answer.is_bad_input:
                        raise BadInput(str(answer.job), answer.problem)
                    raise JobFailed(f"{answer.job}: {answer.problem}")
                finished[i] = answer
    return [finished[i] for i in range(len(jobs))]


def run_job(job: Job, trace: Trace, engine: Engine, tell: Tell = ignore_progress) -> Finished:
    """Run one job and measure it; ``tell`` gets the progress."""
    asked = demand.read_demand(trace)
    workload = _make_workload(job, trace)
    series = engine(trace, workload, job.options, tell)
    figures, curve = _measure(job, trace, workload, series)
    policy, of_teams = job.options.policy, None
    if series.moved is not None:
        figures |= moves.make_figures(series.moved)
    if policy is not None:
        of_teams = teams.make_curves(trace, workload, series, policy)
        figures |= teams.make_figures(trace, workload, series, of_teams)
    record: Record = {
        "trace": trace.name,
        "variant": job.variant,
        "experiment": job.experiment,
        "mode": job.options.mode,
        "seed": job.options.seed,
        "load": job.load,
        "load_of": asked.load_name,
        "binding": ", ".join(asked.names[row] for row in asked.binding_rows),
        "queue": job.options.queue,
        "waiting": job.options.waiting if job.options.queue and policy is None else "",
        "queues": "" if policy is None else policy.name,
        "defrag": say_moves(job.options),
        "learn": job.options.learn,
        "arrivals": len(workload.pod),
        **figures,
        "seconds": series.seconds,
    }
    used = usage.measure_end(asked, workload, series)
    return Finished(job, record, curve, used, series.gpu_used, of_teams)


def say_moves(options: RunOptions) -> str:
    """Say how many pods each plan moves at most; empty if none is moved."""
    return f"defrag {options.defrag}" if options.defrag else ""


def _make_workload(job: Job, trace: Trace) -> Workload:
    seed = job.options.seed
    if job.experiment == "recorded" or job.load is None:
        return workloads.make_recorded(trace, seed)
    if job.experiment == "fill":
        return workloads.draw_fill(trace, seed, job.load)
    return workloads.STREAMS[job.experiment](trace, seed, job.load, job.arrivals)


def _measure(job: Job, trace: Trace, workload: Workload, series: Series) -> tuple[Record, Curve]:
    if job.experiment == "fill":
        return fill.make_figures(trace, workload, series), fill.make_curve(trace, series)
    kind = recorded if job.experiment == "recorded" else streams
    figures = kind.make_figures(trace, workload, series, is_queued=job.options.queue)
    return figures, kind.make_curve(trace, workload, series)


def _try_job(
    job: Job, traces: Traces, engine: Engine | None, tell: Tell = ignore_progress
) -> Finished | _Failed:
    try:
        return run_job(job, traces[job.variant], engine or _import_engine(job), tell)
    except BadInput as error:
        return _Failed(job, str(error), is_bad_input=True)
    except Exception:  # noqa: BLE001 - reported by the caller
        return _Failed(job, traceback.format_exc(), is_bad_input=False)


def _import_engine(job: Job) -> Engine:
    from scheduler.replay import moving_run, run, team_run  # noqa: PLC0415 - numba costs half a second

    if job.options.defrag:
        return moving_run.run_moving
    return run.run_experiment if job.options.policy is None else team_run.run_teams


def _run_here(
    jobs: Sequence[Job], traces: Traces, engine: Engine | None, progressed: Tell
) -> Answers:
    for i, job in enumerate(jobs):

        def tell(part: float, before: int = i) -> None:
            progressed(before + part)

        answer = _try_job(job, traces, engine, tell)
        tell(1.0)
        yield i, answer


def _run_in_processes(
    jobs: Sequence[Job],
    traces: Traces,
    engine: Engine | None,
    n_processes: int,
    progressed: Tell,
) -> Answers:
    parts = pool.SPAWN.Array("d", len(jobs), lock=False)
    answers = pool.run_each(
        _try_remembered,
        enumerate(jobs),
        n_processes,
        prepare=functools.partial(_remember, pool.Parcel((traces, engine)), parts),
        look=lambda: progressed(sum(parts)),
    )
    with closing(answers):
        for i, future in answers:
            try:
                answer = future.result()
            except BrokenExecutor as error:
                raise JobFailed(f"{jobs[i]}: the process of this run ended: {error}") from error
            yield i, answer


_remembered = _Remembered({}, None, [])


def _remember(known: pool.Parcel[_Known], parts: Any) -> None:
    global _remembered  # noqa: PLW0603 - the one thing a worker process knows before its first job
    _remembered = _Remembered(*known.open(), parts)


def _try_remembered(numbered: tuple[int, Job]) -> Finished | _Failed:
    i, job = numbered
    known = _remembered
    tell = functools.partial(operator.setitem, known.parts, i)
    answer = _try_job(job, known.traces, known.engine, tell)
    tell(1.0)
    return answer


def _run_on_dask(
    jobs: Sequence[Job], traces: Traces, engine: Engine | None, address: str, progressed: Tell
) -> Answers:
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise BadInput(
            "--dask", "needs the extra dask: pip install evenkeel-scheduler[dask]"
        ) from error
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as error:
        raise BadInput("--dask", f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        try:
            # The dict is in a list: a bare dict would become one future per key, under the key's name on the cluster.
            (sent,) = client.scatter([dict(traces)], broadcast=True, hash=False)
        except TimeoutError as error:
            raise BadInput("--dask", f"the scheduler at {address} has no workers") from error
        which = {
            client.submit(_try_job, job, sent, engine, pure=False): i for i, job in enumerate(jobs)
        }
        for n, future in enumerate(distributed.as_completed(which), 1):
            try:
                answer = future.result()
            except Exception as error:  # a cluster may fail a job with any error
                raise JobFailed(f"{jobs[which[future]]}: Dask: {error!r}") from error
            progressed(n)
            yield which[future], answer
