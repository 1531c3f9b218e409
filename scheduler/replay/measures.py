"""From the history of a run to figures: one flat record per run, and mean and spread over seeds.

Percentages are of the trace's GPU capacity unless their name says otherwise. A figure that the run
cannot give (a load it never reached, fragments not measured, a size nobody asked for) is None.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scheduler.replay import workloads
from scheduler.replay.experiment import WHOLE, Floats, Ints, Series, Trace, Workload

Value = str | int | float | bool | None
Record = dict[str, Value]
Flags = NDArray[np.bool_]

FILL_LOADS = (80, 90, 95, 100, 110, 120, 130)
FRAG_LOADS = (20, 40, 60, 80, 90, 100)
OCCUPIED_LOAD = 50
# Names of the sizes a pod may ask; 3 GPUs count among those of 4, 5 and more among those of 8.
CLASSES = ("cpu", "share", "1", "2", "4", "8")
# Streams are judged by their second half: the first fills the cluster.
WARM_UP = 0.5
# Pods that came this late may rightly still wait at the end.
LATE = 0.1
N_STEPS = 120


@dataclass(frozen=True, slots=True)
class Curve:
    """A run as lines to draw, one point per whole percent of load or per step of time.

    Attributes:
        x: load in percent (fill), or time in mean lifetimes.
        allocated: percent of capacity.
        frag: fragments in percent of capacity; nan when not measured.
    """

    x: Floats
    allocated: Floats
    frag: Floats


def fill(trace: Trace, series: Series) -> Record:
    """Figures of a fill-up, each the mean over the arrivals whose load rounds to that percent.

    On a small cluster one pod is many percent, and no arrival may round to the one that is asked for: then
    the figure is what the arrival before has left, for until the next one nothing changes. Of loads beyond
    the last arrival nothing is known; ``asked_percent_at_end`` is that last load. Fragment amount is of
    capacity, ratio of what is idle; ``frag_ratio_mean_percent`` is the mean of the ratios at loads 0..100.
    """
    loads = _percents(trace, series)
    allocated = 100.0 * series.allocated / trace.capacity
    frag = 100.0 * series.frag / trace.capacity
    idle = trace.capacity - series.allocated
    ratio = np.divide(series.frag, idle, out=np.full(len(idle), np.nan), where=idle > 0)
    ratio *= 100.0
    record: Record = {
        f"allocated_percent_at_{load}": _at(loads, allocated, load) for load in FILL_LOADS
    }
    record["allocated_percent_at_end"] = float(allocated[-1])
    record["asked_percent_at_end"] = 100.0 * float(series.asked[-1]) / trace.capacity
    for load in FRAG_LOADS:
        record[f"frag_percent_at_{load}"] = _at(loads, frag, load)
        record[f"frag_ratio_percent_at_{load}"] = _at(loads, ratio, load)
    steps, ratios = _by_load(trace, series, ratio)
    record["frag_ratio_mean_percent"] = _mean(ratios[steps <= 100])
    occupied = series.occupied.astype(np.float64)
    record[f"occupied_nodes_at_{OCCUPIED_LOAD}"] = _at(loads, occupied, OCCUPIED_LOAD)
    record["dropped_pods"] = int((series.node < 0).sum())
    return record


def stream(trace: Trace, workload: Workload, series: Series, *, is_queued: bool) -> Record:
    """Figures of a stream, over the arrivals of its second half (never those it starts with at 0).

    ``allocated_percent``, the one to report, is the mean over arrivals; arrivals of a Poisson stream
    see the mean over time, which ``allocated_percent_by_time`` takes with what each arrival left
    until the next (departures between two arrivals are not seen). Without a queue: what was lost,
    of pods and of milli-GPU asked. With a queue: waiting in mean lifetimes; whoever still waits
    counts with the wait so far, so that starving a pod does not look good; ``still_waiting_pods``
    are those of all arrivals but the last tenth.
    """
    n = len(series.asked)
    is_counted = (np.arange(n) >= int(n * WARM_UP)) & (workload.at > 0.0)
    percent = 100.0 * series.allocated / trace.capacity
    lasts = np.diff(workload.at, append=workload.at[-1])
    record: Record = {
        "allocated_percent": _mean(percent[is_counted]),
        "allocated_percent_by_time": _mean(percent[is_counted], lasts[is_counted]),
        "frag_percent": _mean(100.0 * series.frag[is_counted] / trace.capacity),
    }
    sizes = classes(trace)[workload.pod]
    groups = [("", is_counted)]
    groups += [(f"_{name}", is_counted & (sizes == i)) for i, name in enumerate(CLASSES)]
    if is_queued:
        waits, is_waiting = _waits(workload, series)
        for suffix, group in groups:
            record[f"wait_mean{suffix}"] = _mean(waits[group])
            record[f"wait_p99{suffix}"] = _percentile(waits[group], 99)
        record["wait_longest"] = float(waits.max())
        record["still_waiting_pods"] = int(is_waiting[: int(n * (1.0 - LATE))].sum())
    else:
        asked = workloads.milli_asked(trace)[workload.pod].astype(np.float64)
        is_lost = (series.node < 0).astype(np.float64)
        for suffix, group in groups:
            record[f"lost_pods_percent{suffix}"] = _mean(100.0 * is_lost[group])
        for suffix, group in groups:
            if suffix != "_cpu":
                record[f"lost_gpu_percent{suffix}"] = _mean(100.0 * is_lost[group], asked[group])
    return record


def fill_curve(trace: Trace, series: Series) -> Curve:
    """Lines over the load, at every whole percent that some arrival rounds to."""
    loads, allocated = _by_load(trace, series, 100.0 * series.allocated / trace.capacity)
    return Curve(loads, allocated, _by_load(trace, series, 100.0 * series.frag / trace.capacity)[1])


def stream_curve(trace: Trace, workload: Workload, series: Series) -> Curve:
    """Lines over time: means of the arrivals in equal steps of time. Steps without arrivals are left out."""
    at = workload.at
    step = np.minimum((at / max(at[-1], np.finfo(float).tiny) * N_STEPS).astype(int), N_STEPS - 1)
    x, allocated = _means(step, 100.0 * series.allocated / trace.capacity)
    frag = _means(step, 100.0 * series.frag / trace.capacity)[1]
    return Curve((x + 0.5) * at[-1] / N_STEPS, allocated, frag)


def classes(trace: Trace) -> Ints:
    """[pods] index into ``CLASSES`` of what each pod asks for."""
    bounds = [0, 1, 2, 4]  # a pod above the i-th bound is in a later class than i
    gpus = np.array([pod.gpus for pod in trace.pods])
    is_whole = np.array([pod.gpu_milli == WHOLE for pod in trace.pods])
    found = np.searchsorted(bounds, gpus, side="left") + 1
    return np.where(gpus == 0, 0, np.where(is_whole, found, 1)).astype(np.int64)


def summarise(
    records: Sequence[Record], by: Sequence[str], leave_out: Sequence[str]
) -> list[Record]:
    """One record per distinct ``by``, in order of first sight: each figure's mean, and its spread.

    ``<figure>_sd`` is the sample standard deviation (n - 1) over the runs, None for a single one;
    ``runs`` counts them. Fields of ``leave_out`` and those that are no numbers are left out.
    """
    groups: dict[tuple[Value, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in by), []).append(record)
    summary: list[Record] = []
    for key, group in groups.items():
        one: Record = {**dict(zip(by, key, strict=True)), "runs": len(group)}
        for name in group[0]:
            if name not in by and name not in leave_out:
                found = [r[name] for r in group]
                values = [v for v in found if isinstance(v, int | float)]
                one[name] = statistics.fmean(values) if values else None
                one[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
        summary.append(one)
    return summary


def _waits(workload: Workload, series: Series) -> tuple[Floats, Flags]:
    is_waiting = np.isnan(series.placed_at)
    last = [workload.at[-1], *series.placed_at[~is_waiting]]
    until = np.where(is_waiting, max(last), series.placed_at)
    return until - workload.at, is_waiting


def _by_load(trace: Trace, series: Series, values: Floats) -> tuple[Floats, Floats]:
    return _means(_percents(trace, series), values)


def _percents(trace: Trace, series: Series) -> NDArray[np.int_]:
    """[A] the load that each arrival makes, in whole percent."""
    return np.rint(100.0 * series.asked / trace.capacity).astype(int)


def _means(step: NDArray[np.int_], values: Floats) -> tuple[Floats, Floats]:
    """The steps, and the mean of ``values`` in each, leaving out nan; nan when all are."""
    is_known = ~np.isnan(values)
    n = np.bincount(step, weights=is_known)
    total = np.bincount(step, weights=np.where(is_known, values, 0.0))
    means = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    steps = np.unique(step)
    return steps.astype(np.float64), means[steps]


def _at(loads: NDArray[np.int_], values: Floats, load: int) -> float | None:
    """[A] values at a load; None below the first arrival and beyond the last."""
    if not loads[0] <= load <= loads[-1]:
        return None
    is_there = loads == load
    last = int(np.searchsorted(loads, load, side="right")) - 1
    return _mean(values[is_there] if is_there.any() else values[last : last + 1])


def _mean(values: Floats, weights: Floats | None = None) -> float | None:
    """The mean, leaving out nan; None when nothing is left."""
    weights = np.ones(len(values)) if weights is None else weights
    is_known = ~np.isnan(values)
    total = float(weights[is_known].sum())
    return float((values * weights)[is_known].sum()) / total if total > 0 else None


def _percentile(values: Floats, percent: int) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None
