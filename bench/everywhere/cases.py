"""The clusters of the table, what comes to them, and the figures by which modes are compared there."""

from __future__ import annotations

import csv
import functools
import lzma
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench import lambda_g_metrics, lambda_g_product, lambda_g_workload
from bench.everywhere import claimed, losses, mixes
from bench.everywhere.losses import Measure
from bench.everywhere.mixes import Mix, Seed
from scheduler.api.placement import Mode
from scheduler.replay import run as engine
from scheduler.replay import traces, workloads
from scheduler.replay.experiment import RunOptions, Series, Trace, TraceNode, Workload

_OPENB = Path(__file__).parents[1] / "data" / "openb"
_ALL_NODES = "openb_node_list_all_node.csv.xz"
_FILLS = ("default", "gpuspec33", "gpushare100", "cpu250", "multigpu50")
_CHURNS = ("default", "multigpu50", "gpuspec33", "gpushare60")
_LOAD, _QUEUE_LOAD = 1.0, 0.95
# The mix that comes in bursts, by the day and so on.
_TYPICAL = "1..16, 2/4/8"
# Of small clusters so many are drawn for each seed.
_SMALL, _DRAWS, _QUICK_DRAWS = (5, 12), 10, 2
# Of a quick run: every fifth node, and so many pods that come and go.
_STEP, _QUICK_ARRIVALS = 5, 3000
# Where there are no GPUs, those that only look at GPUs have nothing to say.
_FOR_GPUS = {Mode.GPU_PACKING, Mode.GPU_CLUSTERING}
MODES = tuple(str(mode) for mode in lambda_g_product.modes())
_CPU_MODES = tuple(mode for mode in MODES if mode not in _FOR_GPUS)

Made = tuple[Trace, Workload]


class Figure(NamedTuple):
    """A row of the table: its name, what it counts, and whether more of it is better."""

    name: str
    unit: str
    is_higher_better: bool = False


class Case(NamedTuple):
    """A run that gives one figure or several.

    Attributes:
        group: of its rows, for means over alike ones.
        figures: what it gives.
        modes: those that make sense.
        run: the figures of a mode on a seed.
        is_scenarios: whether it is short, and has seeds of its own.
    """

    group: str
    figures: tuple[Figure, ...]
    modes: tuple[str, ...]
    run: Callable[[str, int], tuple[float, ...]]
    is_scenarios: bool = False


@functools.cache
def cases(*, quick: bool) -> tuple[Case, ...]:
    """All rows, or with ``quick`` a few, of small clusters."""
    if quick:
        return (*_quick(), _scenarios())
    return (*_cpu(), *_small(_DRAWS), _scenarios(), *_openb(), *_streams(), *_claimed())


def _quick() -> Iterator[Case]:
    mix = mixes.mixes()[_TYPICAL]
    mix = mix._replace(nodes=mix.nodes[::_STEP])
    yield from _of_mix("CPU", _TYPICAL, mix)
    network = mixes.networks()["network binds"]
    yield from _of_mix("network", "network binds", network._replace(nodes=network.nodes[::_STEP]))
    yield from _small(_QUICK_DRAWS)
    yield _streamed_mix("queue", "churn", mix, _QUICK_ARRIVALS)
    yield _openb_fill("default")
    name, supply = next(iter(claimed.make_supplies().items()))
    yield _claimed_case(f"{name}: fill", functools.partial(claimed.measure_fill, supply))


def _cpu() -> Iterator[Case]:
    for name, mix in mixes.mixes().items():
        yield from _of_mix("CPU", name, mix)
    for name, mix in mixes.two_resources().items():
        yield from _of_mix("ratios", name, mix, has_tail=False)
    for name, mix in mixes.networks().items():
        yield from _of_mix("network", name, mix, has_tail=False)


def _of_mix(group: str, name: str, mix: Mix, *, has_tail: bool = True) -> Iterator[Case]:
    yield _lost(group, f"{name}: churn", lambda seed: mixes.churn(name, mix, _LOAD, seed))
    if has_tail:
        yield _lost(
            group,
            f"{name}: churn, heavy tail",
            lambda seed: mixes.churn(name, mix, _LOAD, seed, heavy_tail=True),
        )
    yield _lost(group, f"{name}: fill", lambda seed: mixes.fill(name, mix, seed))


def _small(draws: int) -> Iterator[Case]:
    mix = mixes.mixes()[_TYPICAL]
    for n in _SMALL:
        name = f"{n} nodes, {_TYPICAL}"
        few = mix._replace(nodes=mix.nodes[:n])
        yield _lost_of_several(
            f"{name}: churn", functools.partial(mixes.churn, _TYPICAL, few, _LOAD), draws
        )
        yield _lost_of_several(f"{name}: fill", functools.partial(mixes.fill, _TYPICAL, few), draws)


def _lost_of_several(name: str, make: Callable[[Seed], Made], draws: int) -> Case:
    """The mean of several clusters for each seed, for small ones differ much."""

    def run(mode: str, seed: int) -> tuple[float, ...]:
        parts = []
        for i in range(draws):
            trace, workload = make((seed, i))
            parts.append(losses.lost_percent(trace, workload, _play(trace, workload, mode, seed)))
        return (statistics.fmean(parts),)

    return Case("small", (Figure(name, "lost %"),), _CPU_MODES, run)


def _scenarios() -> Case:
    figures = (
        Figure("five scenarios: GPU compute", "GPU %", is_higher_better=True),
        Figure("five scenarios: placed", "pods", is_higher_better=True),
        Figure("five scenarios: balance", "points", is_higher_better=True),
    )
    return Case("scenarios", figures, MODES, _run_scenarios, is_scenarios=True)


def _run_scenarios(mode: str, seed: int) -> tuple[float, ...]:
    found = []
    for scenario in lambda_g_workload.SCENARIOS:
        workload = lambda_g_workload.draw(scenario, seed)
        placement = lambda_g_product.place(workload, Mode(mode))
        found.append(lambda_g_metrics.measure(workload, placement))
    total = lambda_g_metrics.total(found)
    return total.gpu_compute_pct, total.placed, total.balance


def _openb() -> Iterator[Case]:
    for variant in _FILLS:
        yield _openb_fill(variant)
    both = Figure("openb and its CPU nodes: fill", "lost %")
    yield Case("openb, all nodes", (both,), MODES, _player(
        lambda seed: _filled(_all_nodes(), seed, mixes.FILL_LOAD), losses.lost_of_both_percent
    ))  # fmt: skip
    both = both._replace(name="openb and its CPU nodes: churn")
    yield Case("openb, all nodes", (both,), MODES, _player(
        lambda seed: _streamed(_all_nodes(), "churn", seed, _LOAD), losses.lost_of_both_percent
    ))  # fmt: skip
    for variant in _CHURNS:
        yield _openb_stream(variant, "churn")


def _streams() -> Iterator[Case]:
    mix = mixes.mixes()[_TYPICAL]
    for kind in ("bursts", "daily", "heavy-tail"):
        yield _streamed_mix(kind, kind, mix, workloads.ARRIVALS)
        yield _openb_stream("default", kind)
    yield _streamed_mix("queue", "churn", mix, workloads.ARRIVALS)
    waits = Figure("openb default: queue", "wait")
    yield Case("waits", (waits,), MODES, _player(
        lambda seed: _streamed(_read(traces.DEFAULT), "churn", seed, _QUEUE_LOAD),
        losses.wait_mean, queue=True,
    ))  # fmt: skip


def _claimed() -> Iterator[Case]:
    """Pods whose devices are those of ResourceSlices; the other modes choose devices as ``keel`` does, and are left out."""
    for name, supply in claimed.make_supplies().items():
        for kind, measure in (("fill", claimed.measure_fill), ("churn", claimed.measure_churn)):
            yield _claimed_case(f"{name}: {kind}", functools.partial(measure, supply))


def _claimed_case(name: str, measure: Callable[[str, int], float]) -> Case:
    figure = Figure(name, "devices %", is_higher_better=True)
    modes = tuple(str(mode) for mode in claimed.MODES)
    return Case("claims", (figure,), modes, lambda mode, seed: (measure(mode, seed),))


def _openb_fill(variant: str) -> Case:
    figure = Figure(f"openb {variant}: fill", "GPU %", is_higher_better=True)
    return Case("openb", (figure,), MODES, _player(
        lambda seed: _filled(_read(variant), seed, workloads.FILL_LOAD), losses.allocated_percent
    ))  # fmt: skip


def _openb_stream(variant: str, kind: str) -> Case:
    figure = Figure(f"openb {variant}: {kind}", "GPU %", is_higher_better=True)
    return Case("openb", (figure,), MODES, _player(
        lambda seed: _streamed(_read(variant), kind, seed, _LOAD), losses.allocated_percent
    ))  # fmt: skip


def _streamed_mix(name: str, kind: str, mix: Mix, arrivals: int) -> Case:
    """Of a mix whose sizes return, drawn from the pods of its churn; with a queue, how long they wait."""
    queue = name == "queue"

    def make(seed: int) -> Made:
        trace = mixes.churn(_TYPICAL, mix, _LOAD, seed)[0]
        return _streamed(trace, kind, seed, _QUEUE_LOAD if queue else _LOAD, arrivals)

    measure = losses.wait_mean if queue else losses.lost_percent
    figure = Figure(f"{_TYPICAL}: {name}", "wait" if queue else "lost %")
    group = "waits" if queue else "CPU"
    return Case(group, (figure,), _CPU_MODES, _player(make, measure, queue=queue))


def _lost(group: str, name: str, make: Callable[[int], Made]) -> Case:
    return Case(group, (Figure(name, "lost %"),), _CPU_MODES, _player(make, losses.lost_percent))


def _player(
    make: Callable[[int], Made], measure: Measure, *, queue: bool = False
) -> Callable[[str, int], tuple[float, ...]]:
    """What plays a workload; the modes of one seed come one after another, and share what was made."""
    made = functools.lru_cache(maxsize=1)(make)

    def play(mode: str, seed: int) -> tuple[float, ...]:
        trace, workload = made(seed)
        return (measure(trace, workload, _play(trace, workload, mode, seed, queue=queue)),)

    return play


def _play(trace: Trace, workload: Workload, mode: str, seed: int, *, queue: bool = False) -> Series:
    """Every mode knows what it has seen, and nothing more."""
    return engine.run_experiment(
        trace, workload, RunOptions(mode, "seen", queue, seed, measure_frag=False)
    )


def _filled(trace: Trace, seed: int, load: float) -> Made:
    return trace, workloads.draw_fill(trace, seed, load)


def _streamed(
    trace: Trace, kind: str, seed: int, load: float, arrivals: int = workloads.ARRIVALS
) -> Made:
    return trace, workloads.STREAMS[kind](trace, seed, load, arrivals)


@functools.lru_cache(maxsize=1)
def _read(variant: str) -> Trace:
    return traces.read_trace(_OPENB, variant)


@functools.lru_cache(maxsize=1)
def _all_nodes() -> Trace:
    """Openb with its nodes that have no GPUs."""
    with lzma.open(_OPENB / _ALL_NODES, "rt") as lines:
        nodes = tuple(
            TraceNode(
                row["sn"],
                int(row["cpu_milli"]),
                int(row["memory_mib"]),
                int(row["gpu"]),
                row["model"],
            )
            for row in csv.DictReader(lines)
        )
    return replace(_read(traces.DEFAULT), name="openb-all", nodes=nodes)
