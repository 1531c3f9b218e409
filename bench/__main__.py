"""``make bench``: everything, as one JSON document on standard output, with progress on standard error.

``ARGS="kernels handles replay trials small distinct claims learning mig links shares engine groups backfill queues queue-scenarios jobs webhook admissions domains end-to-end starts hostile recording dumps scrapes storm storm-served everywhere"``
picks parts. ``--rows``, ``--nodes``, ``--pods``, ``--turns`` and ``--schedulers`` pick what ``engine`` and
``end-to-end`` measure; ``--modes``, ``--seeds``, ``--scenarios`` and ``--only`` what ``everywhere`` plays.
``--quick`` runs the smallest sizes of every part. Every figure that has a floor is told as met or missed; with
``--strict`` a missed one fails the run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bench import (
    admissions,
    backfill,
    claims,
    distinct,
    domains,
    dumps,
    floors,
    groups,
    handles,
    jobs,
    kernels,
    learning,
    links,
    mig,
    queue_scenarios,
    queues,
    recording,
    replay,
    scrapes,
    shares,
    small,
    starts,
    trials,
    webhook,
)
from bench.everywhere import running as everywhere
from bench.everywhere.cases import MODES
from bench.floors import Floor
from bench.hostile import running as hostile
from bench.rows import alone, comparing, measuring, printed, table
from bench.rows.comparing import Plan
from bench.storms import alone as storm
from bench.storms import served
from scheduler.errors import BadInput
from scheduler.replay.command import parse_seeds

_SIZES, _QUICK_SIZES = (1_000, 5_000), (200,)
_PODS, _QUICK_PODS = 5_000, 500
_TURNS, _QUICK_TURNS = 3, 1
# No floor compares with kube-scheduler on a cluster as small as a quick one.
_QUICK_SCHEDULERS = ("evenkeel", "null")


class _Given(NamedTuple):
    """What the command line says: whether to be quick, the plan of the rows, and of the table of all modes."""

    quick: bool
    plan: Plan
    nodes_alone: tuple[int, ...]
    everywhere: everywhere.Request


def _end_to_end(given: _Given) -> dict[str, Any]:
    result = comparing.compare(given.plan)
    print(*printed.lines(result), sep="\n", file=sys.stderr)
    return result


def _alone(given: _Given) -> dict[str, Any]:
    return alone.run(given.plan.rows, given.nodes_alone)


_Run = Callable[[_Given], Any]
_Floors = Callable[[_Given], Sequence[Floor]]
_PARTS: dict[str, tuple[_Run, _Floors]] = {
    "kernels": (lambda _: kernels.run(), lambda _: kernels.FLOORS),
    "handles": (lambda _: handles.run(), lambda _: handles.FLOORS),
    "replay": (lambda given: replay.run(given.quick), lambda _: replay.FLOORS),
    "trials": (lambda given: trials.run(given.quick), lambda _: trials.FLOORS),
    "small": (lambda given: small.run(given.quick), lambda _: small.FLOORS),
    "distinct": (lambda given: distinct.run(given.quick), lambda _: distinct.FLOORS),
    "claims": (lambda given: claims.run(given.quick), lambda _: claims.FLOORS),
    "learning": (lambda given: learning.run(given.quick), lambda _: learning.FLOORS),
    "mig": (lambda given: mig.run(given.quick), lambda _: mig.FLOORS),
    "links": (lambda given: links.run(given.quick), lambda _: links.FLOORS),
    "shares": (lambda given: shares.run(given.quick), lambda _: ()),
    "engine": (_alone, lambda given: alone.floors(given.plan.rows, given.nodes_alone)),
    "groups": (lambda given: groups.run(given.quick), lambda _: groups.FLOORS),
    "backfill": (lambda given: backfill.run(given.quick), lambda _: backfill.FLOORS),
    "queues": (lambda given: queues.run(given.quick), lambda _: queues.FLOORS),
    "queue-scenarios": (
        lambda given: queue_scenarios.run(given.quick),
        lambda _: queue_scenarios.FLOORS,
    ),
    "jobs": (lambda given: jobs.run(given.quick), lambda _: jobs.FLOORS),
    "webhook": (lambda given: webhook.run(given.quick), lambda _: webhook.FLOORS),
    "admissions": (lambda given: admissions.run(given.quick), lambda _: admissions.FLOORS),
    "domains": (lambda given: domains.run(given.quick), lambda _: domains.FLOORS),
    "end-to-end": (_end_to_end, lambda given: given.plan.floors()),
    "starts": (lambda given: starts.run(given.quick), lambda _: starts.FLOORS),
    "hostile": (lambda given: hostile.run(given.quick), lambda _: hostile.FLOORS),
    "recording": (lambda given: recording.run(given.quick), lambda _: recording.FLOORS),
    "dumps": (lambda given: dumps.run(given.quick), lambda _: dumps.FLOORS),
    "scrapes": (lambda given: scrapes.run(given.quick), lambda _: scrapes.FLOORS),
    "storm": (lambda given: storm.run(given.quick), lambda _: storm.FLOORS),
    "storm-served": (lambda given: served.run(given.quick), lambda _: served.FLOORS),
    "everywhere": (
        lambda given: everywhere.run(given.everywhere),
        lambda given: everywhere.floors(given.quick),
    ),
}


def main() -> None:
    parser = _parser()
    given = parser.parse_args()
    for part in given.parts:
        if part not in _PARTS:
            parser.error(f"{part} is not one of {', '.join(_PARTS)}")
    asked = _asked(given)
    result: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()}
    }
    told: list[dict[str, Any]] = []
    for part in given.parts or _PARTS:
        print(f"bench: {part}", file=sys.stderr, flush=True)
        run, wanted = _PARTS[part]
        began_at = time.monotonic()
        result[part] = run(asked)
        took = time.monotonic() - began_at
        print(f"bench: {part} took {took:.0f} s", file=sys.stderr, flush=True)
        told += floors.judged(part, result[part], wanted(asked))
    print(json.dumps(result | {"floors": told}, indent=2))
    for one in told:
        word = "met   " if one["met"] else "MISSED"
        print(f"bench: {word} {one['floor']:>8} {one['figure']}: {one['found']}", file=sys.stderr)
    if given.strict and not all(one["met"] for one in told):
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(_PARTS))
    parser.add_argument("--quick", action="store_true", help="the smallest sizes")
    parser.add_argument("--strict", action="store_true", help="end with 1 when a floor is missed")
    parser.add_argument("--rows", type=_chosen(table.BY_NAME), help=", ".join(table.BY_NAME))
    parser.add_argument("--nodes", type=_numbers, help="numbers of nodes, with commas")
    parser.add_argument("--pods", type=int, help="incoming pods")
    parser.add_argument("--turns", type=int, help="how often each scheduler runs")
    parser.add_argument(
        "--schedulers",
        type=_chosen(measuring.SCHEDULERS),
        default=(),
        help=", ".join(measuring.SCHEDULERS),
    )
    parser.add_argument("--modes", type=_chosen(MODES), default=(), help=", ".join(MODES))
    parser.add_argument("--seeds", type=_seeds, default=(), help="such as 1..3, below 1000")
    parser.add_argument("--scenarios", type=_seeds, default=(), help="seeds of the five scenarios")
    parser.add_argument("--only", default="", help="rows whose names match this expression")
    return parser


def _asked(given: argparse.Namespace) -> _Given:
    quick: bool = given.quick
    names: Sequence[str] = given.rows or tuple(table.BY_NAME)
    plan = Plan(
        rows=tuple(table.BY_NAME[name] for name in names),
        nodes=given.nodes or (_QUICK_SIZES if quick else _SIZES),
        pods=given.pods or (_QUICK_PODS if quick else _PODS),
        turns=given.turns or (_QUICK_TURNS if quick else _TURNS),
        schedulers=given.schedulers or (_QUICK_SCHEDULERS if quick else comparing.COMPARED),
    )
    usual = alone.QUICK_SIZES if quick else alone.SIZES
    table_of_modes = everywhere.Request(
        quick, given.modes, given.seeds, given.scenarios, given.only
    )
    return _Given(quick, plan, given.nodes or usual, table_of_modes)


def _chosen(known: Sequence[str] | dict[str, Any]) -> Callable[[str], tuple[str, ...]]:
    """Some of these, with commas."""

    def read(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        for one in found:
            if one not in known:
                raise argparse.ArgumentTypeError(f"{one} is not one of {', '.join(known)}")
        return found

    return read


def _seeds(text: str) -> tuple[int, ...]:
    """Seeds as replay reads them; those that weights are chosen on are no sample."""
    try:
        found = tuple(parse_seeds(text))
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if max(found) >= everywhere.TRAINING:
        raise argparse.ArgumentTypeError(f"{everywhere.TRAINING} and up are for training")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


main()
