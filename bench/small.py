"""Small clusters, where the first pods decide: ``keel`` against best fit, from the first pod on.

Nothing is known of the demand beforehand. Clusters are drawn from openb (mixed nodes, or its G2: 8 GPUs
each, all alike) or made of equal nodes whose pods ask so many times the node's CPU or memory per GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.floors import Floor
from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import RunOptions, Series, Trace, TraceNode, TracePod, Workload

_OPENB = Path(__file__).parent / "data" / "openb"
# No weight was chosen on these seeds.
_FIRST_SEED, _SEEDS, _QUICK_SEEDS = 5000, 40, 2
_FILL_LOAD = 1.3
_POD_KINDS, _PODS_A_NODE = 150, 40
_MIB = 1 << 20
_MODES = ("keel", "best-fit")

# Never clearly below best fit: by no more than twice the standard error.
FLOORS = (Floor("*.gain_and_two_errors", at_least=0),)

Case = Callable[[int], tuple[Trace, Workload]]


def of_openb(trace: Trace, n: int, seed: int, model: str = "") -> tuple[Trace, Workload]:
    """Some nodes of a trace (of one model of cards, if given), and pods for 1.3 times their cards."""
    rng = np.random.default_rng(seed)
    indices = [i for i, node in enumerate(trace.nodes) if model in {"", node.model}]
    picked = sorted(rng.choice(indices, n, replace=False).tolist())
    few = replace(trace, nodes=tuple(trace.nodes[i] for i in picked))
    pod = rng.integers(len(trace.pods), size=_PODS_A_NODE * n)
    milli = workloads.list_milli(trace)[pod]
    pod = pod[: int(np.searchsorted(np.cumsum(milli), _FILL_LOAD * few.capacity))]
    stay = np.full(pod.size, np.inf)
    return few, Workload(rng.permutation(n), pod, np.arange(pod.size, dtype=float), stay)


def equal_nodes(
    cpu_asked: tuple[float, ...],
    seed: int,
    n: int = 0,
    arrivals: int = 0,
    memory_asked: tuple[float, ...] = (0.0,),
) -> tuple[Trace, Workload]:
    """N equal nodes (0: 3 to 12) of 2, 4 or 8 GPUs; with ``arrivals`` pods come and go, else they stay."""
    rng = np.random.default_rng(seed)
    n, gpus = n or int(rng.integers(3, 13)), int(rng.choice([2, 4, 8]))
    cpu = int(rng.choice([32, 64, 128])) * 1000
    pods = []
    for i in range(_POD_KINDS):
        wanted, share = int(rng.choice([1, 2, gpus])), 1000
        if rng.random() < 0.3:
            wanted, share = 1, int(rng.choice([250, 500]))
        part = wanted * share / 1000 / gpus
        cores = min(cpu, int(cpu * part * rng.choice(cpu_asked)))
        mib = min(_MIB, int(_MIB * part * rng.choice(memory_asked)))
        pods.append(TracePod(f"p{i}", cores, mib, wanted, share, ()))
    nodes = tuple(TraceNode(f"n{i}", cpu, _MIB, gpus, "A100") for i in range(n))
    trace = Trace("equal", nodes, tuple(pods))
    if arrivals:
        return trace, workloads.draw_churn(trace, seed, 1.0, arrivals)
    return trace, workloads.draw_fill(trace, seed, _FILL_LOAD)


def allocated(trace: Trace, workload: Workload, mode: str) -> float:
    """Allocated GPU %: at the end where pods stay, else the mean over the second half of the time."""
    options = RunOptions(mode=mode, learn="seen", queue=False, seed=0, measure_frag=False)
    series: Series = engine.run_experiment(trace, workload, options)
    percent = 100 * series.allocated / trace.capacity
    if not np.isfinite(workload.lifetime).any():
        return float(percent[-1])
    half = percent.size // 2
    return float(np.average(percent[half:-1], weights=np.diff(workload.at[half:])))


def _of_openb(variant: str, n: int, model: str = "", arrivals: int = 0) -> Case:
    trace = traces.read_trace(_OPENB, variant)

    def case(seed: int) -> tuple[Trace, Workload]:
        few, workload = of_openb(trace, n, seed, model)
        return few, workloads.draw_churn(few, seed, 1.0, arrivals) if arrivals else workload

    return case


def _equal(
    cpu_asked: tuple[float, ...],
    n: int = 0,
    arrivals: int = 0,
    memory_asked: tuple[float, ...] = (0.0,),
) -> Case:
    return lambda seed: equal_nodes(cpu_asked, seed, n, arrivals, memory_asked)


def _cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for variant in ("default", "gpuspec33", "gpushare100", "cpu250", "multigpu50"):
        found[f"fill, 5 mixed nodes, {variant}"] = _of_openb(variant, 5)
        found[f"fill, 12 like nodes, {variant}"] = _of_openb(variant, 12, "G2")
        found[f"churn, 5 mixed nodes, {variant}"] = _of_openb(variant, 5, "", 500)
        found[f"churn, 12 like nodes, {variant}"] = _of_openb(variant, 12, "G2", 1500)
    for name, asked in {
        "0.3..0.9": (0.3, 0.5, 0.9),
        "0.8..2": (0.8, 1.2, 2.0),
        "2..4": (2.0, 3.0, 4.0),
    }.items():
        found[f"fill, 3 to 12 equal nodes, {name} times the CPU"] = _equal(asked)
        found[f"churn, 3 to 12 equal nodes, {name} times the CPU"] = _equal(asked, 0, 300)
        found[f"fill, 30 equal nodes, {name} times the CPU"] = _equal(asked, 30)
    found["churn, 10 equal nodes, 0.02 or 5 times the CPU"] = _equal(
        (0.02, 0.02, 0.02, 5.0), 10, 1500
    )
    for times in (1.1, 1.3):
        asked = (0.5 * times, times, 1.5 * times)
        found[f"churn, 24 equal nodes, {times} times the memory"] = _equal((0.5,), 24, 2500, asked)
    return found


def run(quick: bool) -> dict[str, Any]:
    """Allocated GPU % of both, and the mean gain with its standard error."""
    seeds = range(_FIRST_SEED, _FIRST_SEED + (_QUICK_SEEDS if quick else _SEEDS))
    found = {}
    for name, case in _cases().items():
        print(f"bench: small: {name}", file=sys.stderr)
        percent = np.array([[allocated(*case(seed), mode) for mode in _MODES] for seed in seeds])
        gain = percent[:, 0] - percent[:, 1]
        error = float(gain.std(ddof=1) / np.sqrt(gain.size))
        found[name] = {
            "keel": round(float(percent[:, 0].mean()), 2),
            "best_fit": round(float(percent[:, 1].mean()), 2),
            "gain": round(float(gain.mean()), 2),
            "standard_error": round(error, 2),
            "gain_and_two_errors": round(float(gain.mean()) + 2 * error, 2),
        }
    return found
