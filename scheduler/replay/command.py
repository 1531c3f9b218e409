"""``evenkeel replay`` without its flags: checks the request, runs it, and shows the result."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from scheduler import printing
from scheduler.errors import BadInput, make_visible
from scheduler.replay import fan_out, objects, policies, results, traces, words, workloads
from scheduler.replay.experiment import RunOptions, Trace
from scheduler.replay.fan_out import Engine, Job
from scheduler.replay.measures.averages import Record
from scheduler.replay.plots import picture
from scheduler.replay.policies import Policy

SEED_MAX = 2**32 - 1
SEEDS_MAX = 10_000
LOAD_MAX = 100.0
ARRIVALS_MAX = 10_000_000
MOVES_MAX = 1000
_RANGE = re.compile(r"(\d{1,10})(?:\.\.(\d{1,10}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel replay`` as they were typed.

    Attributes:
        load, arrivals: None takes the default of the experiment.
        strict: contradictory lines of a trace are refused.
        queues: the files of policies.
        defrag: how many running pods each plan moves at most, several to compare them; 0 moves none.
    """

    trace: Path
    experiment: words.Experiment = "fill"
    modes: Sequence[str] = ("keel",)
    seeds: str = "42"
    variants: Sequence[str] = (traces.DEFAULT,)
    load: float | None = None
    arrivals: int | None = None
    queue: bool = False
    waiting: words.Waiting = "backfill"
    learn: words.Learning = "seen"
    processes: int = 1
    dask: str = ""
    output: words.Output = "table"
    output_file: Path | None = None
    plot: Path | None = None
    strict: bool = False
    queues: Sequence[Path] = ()
    defrag: Sequence[str] = ("0",)


def execute(
    request: Request, out: Console, progress: Console, engine: Engine | None = None
) -> None:
    """Run what is requested, then print or write it.

    Args:
        request: the arguments.
        out: where the table or the JSON goes when no file is named.
        progress: where a bar is drawn if it is a terminal.
        engine: for tests; None is the engine of this room.

    Raises:
        BadInput: an argument or the trace is wrong; the error names it and says what is allowed.
        JobFailed: a run ended with an error.
    """
    jobs = plan_jobs(request)
    _check_outputs(request)
    variants = list(dict.fromkeys(job.variant for job in jobs))
    known = {
        variant: traces.read_trace(request.trace, variant, strict=request.strict)
        for variant in variants
    }
    for reading in dict.fromkeys(one for trace in known.values() for one in trace.readings):
        printing.complain(f"warning: {make_visible(reading)}", progress.file)
    if request.experiment == "recorded":
        for trace in known.values():
            workloads.check_recorded(trace)
    if request.queues:
        for trace in known.values():
            for remark in _check_teams(trace, jobs):
                printing.complain(f"warning: {make_visible(remark)}", progress.file)
    finished = fan_out.run_jobs(
        jobs,
        known,
        processes=request.processes,
        dask=request.dask,
        engine=engine,
        console=progress,
    )
    _report(request, [one.record for one in finished], out)
    if request.plot is not None:
        picture.draw_picture(finished, known, request.plot)


def plan_jobs(request: Request) -> list[Job]:
    """Plan the requested runs: by variant, then mode, then seed.

    Raises:
        BadInput: an argument is wrong; the error names it and says what is allowed.
    """
    modes = _split_values("--mode", request.modes)
    for mode in modes:
        if mode not in words.MODES:
            raise BadInput("--mode", f"{mode} is not one of {', '.join(words.MODES)}")
    is_fill = request.experiment == "fill"
    load, arrivals = _find_load(request), _find_arrivals(request)
    if is_fill and request.queue:
        raise BadInput(
            "--queue", "not for fill: no pod leaves there, so no waiting pod could be placed"
        )
    if request.waiting != "backfill" and not request.queue:
        raise BadInput("--waiting", "needs --queue: without it no pod waits")
    variants, seeds = _split_values("--variant", request.variants), parse_seeds(request.seeds)
    return [
        Job(variant, request.experiment, load, arrivals, RunOptions(
            mode, request.learn, request.queue, seed,
            measure_frag=is_fill or request.plot is not None,
            waiting=request.waiting, policy=policy, defrag=moves,
        ))
        for variant, policy, moves, mode, seed in itertools.product(
            variants, _read_policies(request), _read_moves(request), modes, seeds
        )
    ]  # fmt: skip


def _read_policies(request: Request) -> list[Policy | None]:
    """Read the files of policies; without any, pods need no quota."""
    if not request.queues:
        return [None]
    if request.experiment != "recorded":
        raise BadInput("--queues", "only for recorded: other experiments draw pods one by one")
    if not request.queue:
        raise BadInput("--queues", "needs --queue: without it no pod waits")
    if request.waiting != "backfill":
        raise BadInput("--waiting", "not with --queues: the queues say who comes first")
    found: dict[str, Policy | None] = {}
    for path in request.queues:
        policy = policies.read_policy(path)
        if policy.name in found:
            raise BadInput("--queues", f"two files are named {policy.name}: results would be mixed")
        found[policy.name] = policy
    return list(found.values())


def _read_moves(request: Request) -> list[int]:
    """Read how many pods each plan may move."""
    found = []
    for text in _split_values("--defrag", request.defrag):
        if not (text.isascii() and text.isdigit() and int(text) <= MOVES_MAX):
            raise BadInput("--defrag", f'"{text}" is not a number of moves within 0..{MOVES_MAX}')
        found.append(int(text))
    if any(found) and request.experiment == "fill":
        raise BadInput("--defrag", "not for fill: there is no time in which pods could be moved")
    if any(found) and request.queues:
        raise BadInput("--defrag", "not with --queues: pods of teams are not moved")
    return found


def _check_teams(trace: Trace, jobs: Sequence[Job]) -> Iterator[str]:
    """Refuse a trace whose pods name queues that a policy does not have; yield what of a policy has no effect."""
    if not trace.teams:
        raise BadInput(
            "--queues", f"no pod of {trace.name} has a queue: pods.csv needs the column queue"
        )
    requested = {name for pod in trace.pods if pod.queue for name in objects.list_resources(pod)}
    found = {job.options.policy.name: job.options.policy for job in jobs if job.options.policy}
    for policy in found.values():
        for pod in trace.pods:
            if pod.queue and pod.queue not in policy.teams:
                there = printing.list_some(sorted(policy.teams))
                raise BadInput(
                    f"pod {pod.name}",
                    f'queue: "{pod.queue}" is not in policy {policy.name}, which has {there}',
                )
        covered = {name for one in policy.queues.values() for group in one.groups for name in group.resources}  # fmt: skip
        for name in sorted(covered - requested):
            yield f"policy {policy.name}: no pod with a queue requests {name}, so its quotas have no effect"


def _find_load(request: Request) -> float | None:
    load = request.load
    if request.experiment == "recorded":
        if load is not None:
            raise BadInput(
                "--load",
                "not for recorded: the trace sets the load; to raise it, remove nodes from nodes.csv",
            )
        return None
    if load is None:
        load = workloads.FILL_LOAD if request.experiment == "fill" else workloads.STREAM_LOAD
    if not 0 < load <= LOAD_MAX:
        raise BadInput("--load", f"{load:g} is not above 0 and at most {LOAD_MAX:g}")
    return load


def _find_arrivals(request: Request) -> int:
    if request.arrivals is None:
        return workloads.ARRIVALS
    if request.experiment == "recorded":
        raise BadInput("--arrivals", "not for recorded: the trace sets how many pods arrive")
    if not 1 <= request.arrivals <= ARRIVALS_MAX:
        raise BadInput("--arrivals", f"{request.arrivals} is not within 1..{ARRIVALS_MAX}")
    return request.arrivals


def parse_seeds(text: str) -> list[int]:
    """Parse ``42..51`` or ``1,2,3`` or both; each seed comes once.

    Raises:
        BadInput: the text is neither.
    """
    seeds: dict[int, None] = {}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= SEED_MAX or last - first >= SEEDS_MAX:
            raise BadInput(
                "--seeds",
                f'"{text}": write 42..51 or 1,2,3, each 0..{SEED_MAX}, at most {SEEDS_MAX} of them',
            )
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return list(seeds)


def _split_values(option: str, values: Sequence[str]) -> list[str]:
    """Split the values of an option that is repeated or has commas; each value comes once."""
    names = [name.strip() for value in values for name in value.split(",")]
    if not all(names):
        raise BadInput(option, "has an empty value")
    return list(dict.fromkeys(names))


def _check_outputs(request: Request) -> None:
    """Check the outputs before hours of work, not after."""
    if request.output == "parquet":
        if request.output_file is None:
            raise BadInput("--output-file", "is needed with --output parquet")
        results.check_parquet()
    if request.plot is not None:
        picture.check_picture(request.plot)
    printing.check_writable("--output-file", request.output_file)
    printing.check_writable("--plot", request.plot)


def _report(request: Request, records: list[Record], out: Console) -> None:
    path = request.output_file
    if request.output == "parquet" and path is not None:
        results.write_parquet(records, path)
        return
    if request.output == "json":
        text = results.write_json(records) + "\n"
    elif path is None:
        results.print_results(records, out)
        return
    else:
        text = printing.print_to_text(lambda file: results.print_results(records, file))
    if path is None:
        out.file.write(text)
    else:
        printing.write_file("--output-file", path, text)
