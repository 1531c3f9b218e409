"""Several schedulers on the same rows, in turns; the floors; the ratios that they are about."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.floors import Floor
from bench.rows import measuring
from bench.rows.measuring import Figures
from bench.rows.row import Row, Size

COMPARED = ("evenkeel", "null", "kube-scheduler")
# The size at which kube-scheduler is to be beaten by so many times.
_LARGE = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured.

    Attributes:
        rows: which rows.
        nodes: with how many nodes.
        pods: how many incoming pods.
        turns: how often each scheduler runs; each is first in turn, the others being warmer then.
        schedulers: which.
    """

    rows: tuple[Row, ...]
    nodes: tuple[int, ...]
    pods: int
    turns: int
    schedulers: tuple[str, ...] = COMPARED

    def floors(self) -> tuple[Floor, ...]:
        """The floors of Evenkeel, of those that compare with another scheduler where that is measured too."""
        found: list[Floor] = []
        for row in self.rows if "evenkeel" in self.schedulers else ():
            for n_nodes in self.nodes:
                where, is_large = f"{row.name}.{n_nodes}", n_nodes >= _LARGE
                found.append(Floor(f"{where}.schedulers.evenkeel.unbound", at_most=0))
                if "null" in self.schedulers and row.of_null_scheduler:
                    least = row.of_null_scheduler
                    found.append(Floor(f"{where}.of_null_scheduler", at_least=least))
                if "kube-scheduler" in self.schedulers and row.times_kube_scheduler and is_large:
                    least = row.times_kube_scheduler
                    found.append(Floor(f"{where}.times_kube_scheduler", at_least=least))
                if row.most_mib and n_nodes == _LARGE:
                    figure = f"{where}.schedulers.evenkeel.rss_mib"
                    found.append(Floor(figure, at_most=row.most_mib))
        return tuple(found)


def compare(plan: Plan) -> dict[str, dict[str, Any]]:
    """By row and number of nodes: each scheduler's figures, and the ratios of ours to the others'."""
    return {
        row.name: {str(n_nodes): _compared(plan, row, Size(n_nodes, plan.pods)) for n_nodes in plan.nodes}
        for row in plan.rows
    }  # fmt: skip


def _compared(plan: Plan, row: Row, size: Size) -> dict[str, Any]:
    figures = medians(row, size, plan.schedulers, plan.turns)
    return {
        "pods": size.pods,
        "times_kube_scheduler": ratio(figures, "evenkeel", "kube-scheduler"),
        "of_null_scheduler": ratio(figures, "evenkeel", "null"),
        "schedulers": figures,
    }


def medians(row: Row, size: Size, schedulers: Sequence[str], turns: int) -> dict[str, Figures]:
    """Of each scheduler the median of its turns, figure by figure.

    A machine is a fifth slower or faster from one minute to the next, and the first of a turn runs on a cooler
    one, so each is first in turn.
    """
    found: dict[str, list[Figures]] = {scheduler: [] for scheduler in schedulers}
    for turn in range(turns):
        first = turn % len(schedulers)
        for scheduler in (*schedulers[first:], *schedulers[:first]):
            figures = measuring.measure(row, scheduler, size)
            told = {"row": row.name, "nodes": size.nodes, "scheduler": scheduler, **figures}
            print(f"bench: {json.dumps(told)}", file=sys.stderr, flush=True)
            found[scheduler].append(figures)
    return {scheduler: median(every) for scheduler, every in found.items()}


def median(every: Sequence[Figures]) -> Figures:
    """Figure by figure; of a scheduler that did not bind nearly all pods in one of its turns, that turn alone."""
    for figures in every:
        if figures["pods_per_second"] is None:
            return figures
    middle = {figure: statistics.median(one[figure] for one in every) for figure in every[0]}
    return middle | {"unbound": max(one["unbound"] for one in every)}


def ratio(figures: dict[str, Figures], ours: str, theirs: str) -> float | None:
    """Pods a second of one to those of another; None where one of them has no such figure."""
    found = [figures.get(one, {}).get("pods_per_second") for one in (ours, theirs)]
    return round(found[0] / found[1], 2) if found[0] and found[1] else None
