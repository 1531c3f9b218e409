"""Plays every case with every mode on every seed, in processes, and tells the table."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, NamedTuple

from bench.everywhere import standings
from bench.everywhere.cases import MODES, Case, cases
from bench.floors import Floor

# From here on are the seeds that weights are chosen on: never those of a report.
TRAINING = 1000
_SEEDS, _QUICK_SEEDS = (1, 2, 3), (1,)
_SCENARIO_SEEDS, _QUICK_SCENARIO_SEEDS = tuple(range(100)), (0, 1)
_PROCESSES, _EVERY = 2, 25


class Request(NamedTuple):
    """What to play.

    Attributes:
        quick: few rows of small clusters, on one seed.
        modes: empty: all.
        seeds, scenario_seeds: of all rows but the five scenarios, and of these; empty: the reported ones.
        only: a regular expression that is found in the names of the rows that are wanted.
    """

    quick: bool = False
    modes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    scenario_seeds: tuple[int, ...] = ()
    only: str = ""

    def seeds_of(self, case: Case) -> tuple[int, ...]:
        """The seeds of a case."""
        if case.is_scenarios:
            usual = _QUICK_SCENARIO_SEEDS if self.quick else _SCENARIO_SEEDS
            return self.scenario_seeds or usual
        return self.seeds or (_QUICK_SEEDS if self.quick else _SEEDS)

    def modes_of(self, case: Case) -> tuple[str, ...]:
        """The modes of a case."""
        return tuple(mode for mode in case.modes if mode in (self.modes or MODES))

    def cases(self) -> dict[int, Case]:
        """Those of the wanted rows, by their place among all."""
        return {
            i: case
            for i, case in enumerate(cases(quick=self.quick))
            if self.modes_of(case)
            and any(re.search(self.only, figure.name) for figure in case.figures)
        }


class Job(NamedTuple):
    """One run: the place of its case, a mode, a seed."""

    case: int
    mode: str
    seed: int


Answers = dict[Job, tuple[float, ...]]


def floors(quick: bool) -> Sequence[Floor]:
    """What the default mode must reach: there is no group of clusters where another is better in the mean.

    A run on one seed tells too little of single rows to count those that are level.
    """
    in_the_mean = Floor("summary.groups.*.behind", at_most=0.5)
    return (in_the_mean,) if quick else (in_the_mean, Floor("summary.share_first_or_level", 0.9))


def run(request: Request) -> dict[str, Any]:
    """The table: its rows, and what they come to."""
    wanted = request.cases()
    jobs = [
        Job(i, mode, seed)
        for i, case in wanted.items()
        for seed in request.seeds_of(case)
        for mode in request.modes_of(case)
    ]
    rows = told(request, _played(jobs, quick=request.quick))
    whole = standings.summary(rows)
    print(*standings.table(rows), *standings.told(whole), sep="\n", file=sys.stderr, flush=True)
    return {
        "seeds": list(request.seeds or (_QUICK_SEEDS if request.quick else _SEEDS)),
        "rows": rows,
        "summary": whole,
    }


def told(request: Request, answers: Answers) -> dict[str, dict[str, Any]]:
    """The rows, from what the runs gave."""
    rows = {}
    for i, case in request.cases().items():
        seeds, modes = request.seeds_of(case), request.modes_of(case)
        for k, figure in enumerate(case.figures):
            found = {mode: [answers[Job(i, mode, seed)][k] for seed in seeds] for mode in modes}
            rows[figure.name] = standings.row(figure, case.group, found)
    return rows


def _played(jobs: Sequence[Job], *, quick: bool) -> Answers:
    answers: Answers = {}
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        batches = [pool.submit(_play, batch, quick=quick) for batch in _by_seed(jobs)]
        for n, batch in enumerate(as_completed(batches), 1):
            answers |= batch.result()
            if n % _EVERY == 0 or n == len(batches):
                print(f"bench: {len(answers)} of {len(jobs)} runs", file=sys.stderr, flush=True)
    return answers


def _by_seed(jobs: Iterable[Job]) -> list[list[Job]]:
    """All modes of one case and seed in one process, so that the pods are drawn once."""
    batches: dict[tuple[int, int], list[Job]] = {}
    for job in jobs:
        batches.setdefault((job.case, job.seed), []).append(job)
    return list(batches.values())


def _play(batch: Sequence[Job], *, quick: bool) -> Answers:
    known = cases(quick=quick)
    return {job: known[job.case].run(job.mode, job.seed) for job in batch}
