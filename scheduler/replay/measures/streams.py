"""Figures of pods that come and go: which were lost, how long they waited, and how full the cluster was meanwhile."""

from __future__ import annotations

import numpy as np

from scheduler.replay import demand, workloads
from scheduler.replay.experiment import Floats, Series, Trace, Workload
from scheduler.replay.measures import averages, by_resource, classes, usage
from scheduler.replay.measures.averages import Flags, Record
from scheduler.replay.measures.classes import CLASSES
from scheduler.replay.measures.curve import Curve

# Streams are measured in their second half: the first half fills the cluster.
WARM_UP = 0.5
# Pods of the last tenth of the arrivals may rightly still wait at the end.
LATE = 0.1
N_STEPS = 120


def make_figures(trace: Trace, workload: Workload, series: Series, *, is_queued: bool) -> Record:
    """Make the figures of a stream, over the arrivals of its second half (never those with which it starts at 0).

    ``allocated_percent``, the figure to report for GPUs, is the mean over arrivals. Arrivals of a Poisson
    stream see the mean over time. ``allocated_percent_by_time`` is that mean, if the value after each arrival holds
    until the next (departures between two arrivals are not seen). Without a queue: what was lost,
    of pods and of requested milli-GPU. With a queue: waiting in mean lifetimes; a pod that still waits
    counts with its wait so far, so that starving a pod does not look good; ``still_waiting_pods``
    are those of all arrivals but the last tenth. The figures of every resource are over the exact time
    from the first arrival that counts to the last.
    """
    n = len(series.asked)
    is_counted = (np.arange(n) >= int(n * WARM_UP)) & (workload.at > 0.0)
    percent = 100.0 * series.allocated / workloads.read_load(trace)[1]
    if not trace.has_gpus:
        percent = np.full(n, np.nan)
    lasts = np.diff(workload.at, append=workload.at[-1])
    record: Record = {
        "allocated_percent": averages.find_mean(percent[is_counted]),
        "allocated_percent_by_time": averages.find_mean(percent[is_counted], lasts[is_counted]),
        "frag_percent": averages.find_mean(list_frag_percents(trace, series)[is_counted]),
    }
    if is_queued:
        record |= measure_waits(trace, workload, series, is_counted)
        record["still_waiting_pods"] = count_still_waiting(series, int(n * (1.0 - LATE)))
    else:
        record |= measure_losses(trace, workload, series, is_counted)
    end = float(workload.at[-1])
    start = float(workload.at[is_counted].min(initial=end))
    return record | by_resource.measure_over_time(
        demand.read_demand(trace), workload, series, start, end
    )


def make_curve(trace: Trace, workload: Workload, series: Series) -> Curve:
    """Make lines over time: means of the arrivals in equal steps of time. Steps without arrivals are left out."""
    at = workload.at
    step = np.minimum((at / max(at[-1], np.finfo(float).tiny) * N_STEPS).astype(int), N_STEPS - 1)
    x, allocated = averages.average_by_step(
        step, 100.0 * series.allocated / workloads.read_load(trace)[1]
    )
    frag = averages.average_by_step(step, list_frag_percents(trace, series))[1]
    occupied = averages.average_by_step(step, 100.0 * series.occupied / len(trace.nodes))[1]
    return Curve((x + 0.5) * at[-1] / N_STEPS, allocated, frag, occupied)


def list_frag_percents(trace: Trace, series: Series) -> Floats:
    """List [A] the fragments in percent of all GPUs; nan when not measured."""
    return 100.0 * series.frag / max(1, trace.capacity)


def measure_losses(trace: Trace, workload: Workload, series: Series, is_counted: Flags) -> Record:
    """Measure what was lost of the arrivals that count: pods, and what they request; by size if there are GPUs."""
    asked = workloads.list_milli(trace)[workload.pod].astype(np.float64)
    is_lost = (series.node < 0).astype(np.float64)
    groups = _group_pods(trace, workload, is_counted)
    record: Record = {
        f"lost_pods_percent{suffix}": averages.find_mean(100.0 * is_lost[group])
        for suffix, group in groups.items()
    }
    for suffix, group in groups.items():
        if suffix != "_cpu":
            record[f"lost_gpu_percent{suffix}"] = averages.find_mean(
                100.0 * is_lost[group], asked[group]
            )
    return record | by_resource.measure_lost(
        demand.read_demand(trace), workload, series, is_counted
    )


def measure_waits(
    trace: Trace, workload: Workload, series: Series, is_counted: Flags, unit: str = ""
) -> Record:
    """Measure how long the pods that count waited; a pod that still waits counts with its wait so far.

    ``unit`` is the part at the end of the figures' names that names their unit.
    """
    waited = _list_waits(workload, series)
    record: Record = {}
    for suffix, group in _group_pods(trace, workload, is_counted).items():
        record[f"wait_mean{suffix}{unit}"] = averages.find_mean(waited[group])
        record[f"wait_p95{suffix}{unit}"] = averages.find_percentile(waited[group], 95)
        record[f"wait_p99{suffix}{unit}"] = averages.find_percentile(waited[group], 99)
    record[f"wait_longest{unit}"] = float(waited.max())
    return record


def count_still_waiting(series: Series, n: int) -> int:
    """Count how many of the first ``n`` arrivals were never placed."""
    return int(np.isnan(series.placed_at[:n]).sum())


def _group_pods(trace: Trace, workload: Workload, is_counted: Flags) -> dict[str, Flags]:
    """Group the pods that count, all together, by requested GPUs, and by whether they are in groups, under the endings of their figures' names."""
    sizes = classes.classify_pods(trace)[workload.pod]
    groups = {"": is_counted}
    for i, name in enumerate(CLASSES):
        groups[f"_{name}"] = is_counted & (sizes == i) & trace.has_gpus
    if trace.has_groups:
        is_member = np.array([bool(pod.group) for pod in trace.pods])[workload.pod]
        groups |= {"_in_groups": is_counted & is_member, "_alone": is_counted & ~is_member}
    return groups


def _list_waits(workload: Workload, series: Series) -> Floats:
    if series.stays is not None:
        return usage.find_waits(workload, series.stays)
    is_waiting = np.isnan(series.placed_at)
    last = [workload.at[-1], *series.placed_at[~is_waiting]]
    until = np.where(is_waiting, max(last), series.placed_at)
    return until - workload.at
