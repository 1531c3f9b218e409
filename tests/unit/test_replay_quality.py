"""How well it places: the published policies come out as published, keel beats them, small clusters too.

Runs are deterministic; the bounds leave room for a change of the formula, not for a mistake. A slice is of cases:
a bound is about the mean over all of a case's seeds.
"""

import math
from pathlib import Path

import numpy as np
import pytest

from bench import small
from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import RunOptions, Series, Trace, TraceNode, TracePod, Workload
from scheduler.replay.measures import fill
from scheduler.replay.words import Learning
from tests import slices

pytestmark = pytest.mark.many

OPENB = Path(__file__).parents[2] / "bench" / "data" / "openb"
DEFAULT = traces.read_trace(OPENB)
SEED = 1000
# The least mean gain of keel over best fit, in points of allocated GPU. Each is what was measured, less two
# standard errors of it, and no less than the 0.3 points that one pod of eight cards makes in one of 24 small
# clusters: (nodes, model): bound for the variants below, in their order.
COLD = {
    (8, ""): (-0.3, -0.19, -0.17, -0.22),
    (20, ""): (0.35, 0.21, 0.45, -0.21),
    (8, "G2"): (-0.08, -0.08, -0.23, -0.3),
}
VARIANTS = ("default", "gpuspec33", "gpushare100", "multigpu50")
# Allocated % at load 100 and 130, mean of the artifact's 10 seeds, and the spread of one seed.
PUBLISHED = {
    "random": (86.30, 87.47, 1.0),
    "dot-product": (90.62, 90.85, 1.0),
    "gpu-clustering": (91.65, 91.88, 1.5),
    "gpu-packing": (91.78, 92.00, 1.5),
    "best-fit": (92.86, 93.08, 0.6),
    "first-fit": (94.35, 94.54, 0.5),
    "fgd": (95.23, 95.39, 0.4),
}


def options(mode: str, learn: Learning = "seen") -> RunOptions:
    return RunOptions(mode=mode, learn=learn, queue=False, seed=SEED, measure_frag=False)


def at_100_and_130(mode: str, learn: Learning, seed: int = SEED) -> tuple[float, float]:
    workload = workloads.draw_fill(DEFAULT, seed)
    series = engine.run_experiment(DEFAULT, workload, options(mode, learn))
    found = fill.make_figures(DEFAULT, workload, series)
    return float(found["allocated_percent_at_100"] or 0), float(
        found["allocated_percent_at_130"] or 0
    )


@pytest.mark.parametrize("mode", PUBLISHED)
def test_a_published_policy_fills_openb_as_was_published(mode: str) -> None:
    first, last, spread = PUBLISHED[mode]
    assert at_100_and_130(mode, "trace") == pytest.approx((first, last), abs=spread)


@pytest.mark.parametrize("learn", ["seen", "trace"])
def test_keel_leaves_less_unallocated_than_any_of_them(learn: Learning) -> None:
    """Ten seeds give means of 96.18 and 96.27 (96.21 and 96.30 with all learnt before) with a spread of 0.05 and
    0.04 points; three are held to three standard errors of three below the lower."""
    first, last = np.mean([at_100_and_130("keel", learn, SEED + i) for i in range(3)], axis=0)
    assert first > 96.11
    assert last > 96.23


def gain(trace: Trace, workload: Workload) -> float:
    """Points of allocated GPU that keel has more than best fit."""
    keel, best = (small.allocated(trace, workload, mode) for mode in ("keel", "best-fit"))
    return keel - best


@pytest.mark.parametrize(
    ("variant", "n", "model"),
    slices.pick_part([(variant, *cluster) for cluster in COLD for variant in VARIANTS]),
)
def test_a_cold_start_is_no_worse_than_best_fit(variant: str, n: int, model: str) -> None:
    """So few pods are seen that most or all are placed by the assumed demand; means of 24 clusters."""
    trace = traces.read_trace(OPENB, variant)
    gains = [gain(*small.of_openb(trace, n, seed, model)) for seed in range(24)]
    assert np.mean(gains) > COLD[n, model][VARIANTS.index(variant)]


@pytest.mark.parametrize(
    ("cpu_asked", "least"),
    slices.pick_part([((0.8, 1.2, 2.0), -0.3), ((2.0, 3.0, 4.0), -0.01)]),
)
def test_a_cold_start_is_no_worse_than_best_fit_where_cpu_is_scarce(
    cpu_asked: tuple[float, ...], least: float
) -> None:
    """GPUs are left over whatever one does, so nodes should be filled with CPU. Means of 24."""
    gains = [gain(*small.equal_nodes(cpu_asked, seed)) for seed in range(24)]
    assert np.mean(gains) > least


@slices.needs_whole
@pytest.mark.parametrize(
    ("cpu_asked", "memory_asked", "least"),
    [
        ((0.8, 1.2, 2.0), (0.0,), 0.06),
        # Most pods ask next to no CPU and a few ask much: the CPU left could serve a hundred times the GPUs.
        ((0.02, 0.02, 0.02, 5.0), (0.0,), -0.6),
        ((0.5,), (0.6, 1.3, 2.0), -0.41),
    ],
)
def test_what_runs_out_other_than_gpus_is_packed_too(
    cpu_asked: tuple[float, ...], memory_asked: tuple[float, ...], least: float
) -> None:
    """Means of 15; they were 0.30, -0.29 and -0.05 with standard errors of 0.12, 0.20 and 0.18."""
    gains = [
        gain(*small.equal_nodes(cpu_asked, seed, 24, 2500, memory_asked)) for seed in range(15)
    ]
    assert np.mean(gains) > least


@slices.needs_whole
def test_on_nodes_that_are_all_alike_room_for_big_pods_comes_back() -> None:
    """Nodes of 8 GPUs, half of the demand in pods of several: almost empty nodes are to become empty.

    The mean of 12 was -0.01 with a standard error of 0.23.
    """
    trace = traces.read_trace(OPENB, "multigpu50")
    gains = []
    for seed in range(12):
        few, _ = small.of_openb(trace, 12, seed, "G2")
        gains.append(gain(few, workloads.draw_churn(few, seed, 1.0, 4000)))
    assert np.mean(gains) > -0.48


def occupied(series: Series) -> int:
    return int(series.occupied[-1])


def test_without_any_gpu_it_spreads_while_there_is_room_and_then_loses_least() -> None:
    ahead = [_without_gpus(seed) for seed in range(8)]
    # Where everybody's last pods are few, luck makes a seed: in the mean it is well ahead, and never far behind.
    assert sum(ahead) / len(ahead) > 0.01
    assert min(ahead) > -0.01


def _without_gpus(seed: int) -> float:
    """How much more than the best other mode it holds at the end, in parts."""
    rng = np.random.default_rng(seed)
    nodes = tuple(TraceNode(f"n{i}", 32_000, 131_072, 0, "") for i in range(40))
    pods = tuple(
        TracePod(f"p{i}", int(rng.integers(1, 17)) * 500, int(rng.integers(1, 17)) * 2048, 0, 0, ())
        for i in range(60)
    )
    trace, at_once = Trace("no GPU", nodes, pods), rng.permutation(40)

    def run(mode: str, arrivals: int) -> Series:
        drawn = np.random.default_rng(seed).integers(60, size=arrivals)
        times = np.arange(float(arrivals))
        return engine.run_experiment(
            trace, Workload(at_once, drawn, times, np.full(arrivals, math.inf)), options(mode)
        )

    # Less than half full, then asked for more than there is.
    half = {mode: occupied(run(mode, 120)) for mode in ("keel", "best-fit", "least-allocated")}
    assert half["least-allocated"] == 40
    assert half["keel"] > 1.4 * half["best-fit"]
    full = {
        mode: int(run(mode, 360).allocated[-1])
        for mode in ("keel", "best-fit", "most-allocated", "least-allocated")
    }
    return full.pop("keel") / max(full.values()) - 1
