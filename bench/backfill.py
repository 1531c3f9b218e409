"""How long groups and single pods wait, and how full the cards are, by who may pass the first group in line.

``backfill`` is what the operator does: the first group that does not fit is promised room, and others may use it only if
they end in time. ``best-effort``: anybody who fits passes, as in Kueue's BestEffortFIFO. ``fifo``: nobody passes
anybody, which is also what a promise without backfill comes to. Everything else is the same in all runs: the same
engine, cluster and pods in virtual time.

``openb``: the last tasks of openb in their order, with their real cards and run times (at most two days). A task of several
cards becomes a group of as many pods of a whole node each. openb's own cluster was hardly full, so the tasks come
faster here: as fast as 32 nodes are nearly full in the mean. ``synthetic``: single pods of 1 to 8 cards,
and groups of 2 to 32 pods of a whole node each. A pod says that it runs for up to twice as long as it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.floors import Floor
from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import WHOLE, RunOptions, Trace, TraceNode, TracePod
from scheduler.replay.measures import recorded
from scheduler.replay.words import Waiting

_OPENB = Path(__file__).parent / "data" / "openb"
_RULES: tuple[Waiting, ...] = ("fifo", "best-effort", "backfill")
_CARDS = 8
_NODE = TraceNode("node", 128_000, 1 << 20, _CARDS, "A100")
_N_NODES = 64
_N_TASKS, _N_OPENB_NODES, _LONGEST = 4000, 32, 2 * 86_400.0
_HOUR = 3600.0

# What is gained over letting everybody pass: of the wait of large groups, at no loss of use.
FLOORS = (
    Floor("synthetic.p95_groups_ratio", at_most=1.0),
    Floor("synthetic.cards_in_use_ratio", at_least=0.98),
)


def run(quick: bool) -> dict[str, Any]:
    seeds = range(1 if quick else 5)
    n_jobs = 300 if quick else 2000
    found: dict[str, Any] = {
        "synthetic": _compare([draw_trace(seed, n_jobs, 0.95) for seed in seeds])
    }
    if not quick:
        found["openb"] = _compare([make_openb(seed, 0.95) for seed in seeds])
    return found


def draw_trace(seed: int, n_jobs: int, load: float) -> Trace:
    """Draw jobs, a quarter of them groups, that request so much of a cluster of 64 nodes in the mean."""
    rng = np.random.default_rng(seed)
    pods: list[TracePod] = []
    is_group = rng.random(n_jobs) < 0.25
    sizes = np.where(
        is_group,
        rng.choice([2, 4, 8, 16, 32], n_jobs, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
        rng.choice([1, 2, 4, 8], n_jobs, p=[0.5, 0.2, 0.15, 0.15]),
    )
    lasts = np.clip(rng.lognormal(0.0, 1.0, n_jobs), 0.05, 12.0) * _HOUR
    factor = rng.uniform(1.0, 2.0, n_jobs)
    cards = np.where(is_group, sizes * _CARDS, sizes)
    mean = float((cards * lasts).mean()) / (load * _N_NODES * _CARDS)
    at = np.cumsum(rng.exponential(mean, n_jobs))
    for i in range(n_jobs):
        one = TracePod(
            f"p{i}",
            cpu_milli=1000,
            memory_mib=1024,
            gpus=_CARDS if is_group[i] else int(sizes[i]),
            gpu_milli=WHOLE,
            models=(),
            arrival=float(at[i]),
            departure=float(at[i] + lasts[i]),
            run_time=float(lasts[i] * factor[i]),
        )
        pods += _make_group(one, int(sizes[i])) if is_group[i] else [one]
    nodes = tuple(replace(_NODE, name=f"node-{i}") for i in range(_N_NODES))
    return Trace("synthetic", nodes, tuple(pods), is_recorded=True)


def make_openb(seed: int, load: float) -> Trace:
    """Make a trace of openb's tasks with cards, in their order, that request so much of 32 nodes in the mean."""
    rng = np.random.default_rng(seed)
    known = [one for one in traces.read_trace(_OPENB).pods if one.gpus and one.departure < np.inf]
    tasks = sorted(known, key=lambda one: one.arrival)[-_N_TASKS:]
    lasts = np.array([min(one.departure - one.arrival, _LONGEST) for one in tasks])
    cards = [_CARDS * one.gpus if one.gpus > 1 else one.gpu_milli / WHOLE for one in tasks]
    mean = float((np.array(cards) * lasts).mean()) / (load * _N_OPENB_NODES * _CARDS)
    at = np.cumsum(rng.exponential(mean, len(tasks)))
    pods: list[TracePod] = []
    for i, one in enumerate(tasks):
        says = replace(
            one,
            models=(),
            cpu_milli=1000,
            memory_mib=1024,
            arrival=float(at[i]),
            departure=float(at[i] + lasts[i]),
            run_time=float(lasts[i] * rng.uniform(1.0, 2.0)),
        )
        if one.gpus == 1:
            pods.append(says)
        else:
            pods += _make_group(replace(says, gpus=_CARDS), one.gpus)
    nodes = tuple(replace(_NODE, name=f"node-{i}") for i in range(_N_OPENB_NODES))
    return Trace("openb", nodes, tuple(pods), is_recorded=True)


def _make_group(one: TracePod, n: int) -> list[TracePod]:
    return [replace(one, name=f"{one.name}-{i}", group=one.name) for i in range(n)]


def _compare(known: Sequence[Trace]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "nodes": len(known[0].nodes),
        "pods": len(known[0].pods),
        "groups": len({pod.group for pod in known[0].pods if pod.group}),
    }
    for rule in _RULES:
        figures = [_measure(trace, rule) for trace in known]
        found[rule] = {
            name: round(float(np.mean([one[name] for one in figures])), 3) for name in figures[0]
        }
    passing, promised = found["best-effort"], found["backfill"]
    for name, figure in (
        ("mean_groups", "mean_groups_hours"),
        ("p95_groups", "p95_groups_hours"),
        ("cards_in_use", "cards_in_use_percent"),
    ):
        found[f"{name}_ratio"] = round(promised[figure] / max(passing[figure], 1e-9), 3)
    return found


def _measure(trace: Trace, rule: Waiting) -> dict[str, float]:
    """Measure hours of waiting, and the percentage of cards that are in use from the first arrival to the last."""
    workload = workloads.make_recorded(trace, 0)
    options = RunOptions("keel", "seen", True, 0, measure_frag=False, waiting=rule)
    series = engine.run_experiment(trace, workload, options)
    record = recorded.make_figures(trace, workload, series, is_queued=True)
    found = {
        f"{name}_{what}_hours": float(record[f"wait_{name}_{who}_seconds"] or 0) / _HOUR
        for who, what in (("in_groups", "groups"), ("alone", "single"))
        for name in ("mean", "p95")
    }
    return found | {
        "cards_in_use_percent": float(record["allocated_gpu_percent"] or 0),
        "still_waiting": float(record["still_waiting_pods"] or 0),
        "run_seconds": series.seconds,
    }
