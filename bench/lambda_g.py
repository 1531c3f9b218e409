"""``make bench-lambda-g``: the Lambda-G author's five scenarios, his strategies and every mode of the product.

JSON on standard output; progress and a table on standard error. Strategies called ``upstream-…`` are his own
in plain Python and give his published figures at seed 42. Those called ``…-percents`` place pods whose GPU
compute is rounded up to whole percents, as the product reads it: compare the modes with these. The modes go
through the product itself, see ``lambda_g_product``. Every figure is of the requests as drawn.

What it shows: on small clusters that are far too full (some 40 % of pods stay pending under every strategy), how
level nodes end up, what is left over beside a full dimension, and how many pods and how much GPU compute
found a place.

What it does not show:

- ``balance`` is no measure of use. An empty cluster has 70, more than some strategies that work: so
  upstream-most, which refuses every pod as an empty node scores 0 with it, "wins" over upstream-least. It
  rises when pods are refused, and falls when pods without GPU are kept off GPU nodes, as the product
  does: GPU nodes then have CPU to spare, which is what the next GPU pod needs. Read pending, placed
  and GPU compute first.
- Seed 42 is where the published weights were fitted, and is no sample: the means over other seeds count, with
  the standard error of the paired difference.
- Nothing ever leaves, no pod is retried, and every GPU node has one card, so nothing is said of churn, queues
  or the choice among cards. Requests are uniform draws, not anybody's trace.
- Waste prices are the author's. It grows with the node that happens to be just over 70 % full.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from bench import lambda_g_product, lambda_g_reference
from bench.lambda_g_metrics import Figures, measure, total
from bench.lambda_g_workload import SCENARIOS, draw

PUBLISHED_SEED = 42
_SEEDS, _JOBS, _EVERY = 300, 2, 25
_PERCENTS = "-percents"
ROUNDED = ("upstream-balanced", "upstream-v3", "upstream-v3-any-score")
# What every strategy is compared with, seed by seed; the table shows the first two.
BASELINES = (
    "upstream-balanced-percents",
    "upstream-v3-percents",
    "balanced-allocation",
    "lambda-g-v3",
)

# Strategy, scenario, figures.
Results = dict[str, dict[str, Figures]]


def run_seed(seed: int) -> Results:
    """Every strategy and mode on the five scenarios of one seed."""
    results: Results = {}
    for scenario in SCENARIOS:
        workload = draw(scenario, seed)
        rounded = workload._replace(pods=tuple(map(lambda_g_product.as_asked, workload.pods)))
        placements = {
            name: lambda_g_reference.place(workload, score, above_zero=above_zero)
            for name, (score, above_zero) in lambda_g_reference.STRATEGIES.items()
        }
        for name in ROUNDED:
            score, above_zero = lambda_g_reference.STRATEGIES[name]
            placements[name + _PERCENTS] = lambda_g_reference.place(
                rounded, score, above_zero=above_zero
            )
        for mode in lambda_g_product.modes():
            placements[mode] = lambda_g_product.place(workload, mode)
        for name, placement in placements.items():
            results.setdefault(str(name), {})[scenario] = measure(workload, placement)
    return results


def summary(seeds: Sequence[Results]) -> dict[str, Any]:
    """Means over seeds per scenario and in total, and the mean ± standard error of paired differences."""
    totals = {name: [total(list(one[name].values())) for one in seeds] for name in seeds[0]}
    return {
        name: {
            "scenarios": {s: _mean([one[name][s] for one in seeds]) for s in SCENARIOS},
            "total": _mean(figures),
            "minus": {
                base: _difference(figures, totals[base]) for base in BASELINES if base != name
            },
        }
        for name, figures in totals.items()
    }


def _mean(figures: Sequence[Figures]) -> dict[str, float]:
    columns = zip(Figures._fields, zip(*figures, strict=True), strict=True)
    return {name: round(statistics.fmean(column), 3) for name, column in columns}


def _difference(ours: Sequence[Figures], base: Sequence[Figures]) -> dict[str, list[float]]:
    """Mean and standard error, figure by figure."""
    found = {}
    for i, name in enumerate(Figures._fields):
        gaps = [a[i] - b[i] for a, b in zip(ours, base, strict=True)]
        error = statistics.stdev(gaps) / math.sqrt(len(gaps))
        found[name] = [round(statistics.fmean(gaps), 3), round(error, 3)]
    return found


def at_one_seed(results: Results) -> dict[str, Any]:
    """One seed's figures per scenario and in total."""
    return {
        name: {
            "scenarios": {scenario: one._asdict() for scenario, one in scenarios.items()},
            "total": _mean([total(list(scenarios.values()))]),
        }
        for name, scenarios in results.items()
    }


def other_seeds(n: int) -> list[int]:
    """The first ``n`` seeds from 1 on, without that of the published figures."""
    return [seed for seed in range(1, n + 2) if seed != PUBLISHED_SEED][:n]


def table(title: str, rows: Mapping[str, Any]) -> str:
    """A line per strategy: balance by scenario, the totals, and differences where there are any."""
    heads = (*SCENARIOS, "balance", "strand", "waste $", "sched%", "pending", "placed", "gpu%")
    lines = ["", title, f"{'':32}" + "".join(f"{head:>8}" for head in heads)]
    for name, row in rows.items():
        cells = [f"{one['balance']:8.1f}" for one in row["scenarios"].values()]
        cells += [
            f"{row['total'][figure]:8.{digits}f}"
            for figure, digits in zip(Figures._fields, (2, 1, 0, 1, 1, 1, 1), strict=True)
        ]
        lines.append(f"{name:32}" + "".join(cells))
    for base in BASELINES[:2]:
        compared = {
            name: row["minus"][base] for name, row in rows.items() if base in row.get("minus", ())
        }
        if compared:
            shown = ("balance", "stranded", "waste", "placed", "gpu_compute_pct")
            lines += ["", f"minus {base}, ± standard error"]
            lines.append(f"{'':32}" + "".join(f"{head:>20}" for head in shown))
        for name, gaps in compared.items():
            cells = [f"{gaps[figure][0]:+11.2f} ±{gaps[figure][1]:7.2f}" for figure in shown]
            lines.append(f"{name:32}" + "".join(cells))
    return "\n".join(lines)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is too few: at least {least}")
        return int(text)

    return number


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.lambda_g")
    parser.add_argument("--seeds", type=_at_least(2), default=_SEEDS, help="other than 42")
    parser.add_argument("--jobs", type=_at_least(1), default=_JOBS, help="processes")
    given = parser.parse_args()
    seeds = other_seeds(given.seeds)
    published = at_one_seed(run_seed(PUBLISHED_SEED))
    print(table(f"seed {PUBLISHED_SEED}", published), file=sys.stderr, flush=True)
    found: list[Results] = []
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for one in pool.map(run_seed, seeds):
            found.append(one)
            if len(found) % _EVERY == 0:
                print(f"bench: {len(found)} of {len(seeds)} seeds", file=sys.stderr, flush=True)
    others = summary(found)
    title = f"{len(seeds)} other seeds, {seeds[0]}..{seeds[-1]}: means"
    print(table(title, others), file=sys.stderr, flush=True)
    result = {
        "published_seed": {"seed": PUBLISHED_SEED, "strategies": published},
        "other_seeds": {
            "first": seeds[0],
            "last": seeds[-1],
            "n": len(seeds),
            "strategies": others,
        },
        "left_out": dict(lambda_g_product.LEFT_OUT),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
