"""How a finished run is told in one figure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.replay import demand
from scheduler.replay.experiment import Series, Trace, Workload
from scheduler.replay.measures import by_resource, fill, streams
from scheduler.replay.measures.averages import Flags, Record

Measure = Callable[[Trace, Workload, Series], float]


def lost_percent(trace: Trace, workload: Workload, series: Series) -> float:
    """Of what was asked by the arrivals that count, how much was asked by pods that were lost.

    What a pod asks is the mean, over the resources that bind, of its part of what the cluster has.
    """
    asked = demand.read_demand(trace)
    rows = asked.binding_rows
    part = (asked.amounts[rows] / asked.total[rows, None]).mean(axis=0)[workload.pod]
    is_counted = counted(workload)
    lost = part[is_counted & (series.node < 0)].sum()
    return 100.0 * float(lost / part[is_counted].sum())


def counted(workload: Workload) -> Flags:
    """[A] which arrivals count: all where nobody leaves, else the second half, for the first fills the cluster."""
    n = workload.pod.size
    first = n // 2 if np.isfinite(workload.lifetime).any() else 0
    return np.arange(n) >= first


def lost_of_both_percent(trace: Trace, workload: Workload, series: Series) -> float:
    """Lost of the GPUs and lost of the cores that were asked for, in the mean."""
    found = by_resource.measure_lost(demand.read_demand(trace), workload, series, counted(workload))
    return (_number(found, "lost_gpu_percent") + _number(found, "lost_cpu_percent")) / 2


def allocated_percent(trace: Trace, workload: Workload, series: Series) -> float:
    """Allocated of the GPUs: where nobody leaves when as much has been asked for as there is, else in the mean."""
    if np.isfinite(workload.lifetime).any():
        found = streams.make_figures(trace, workload, series, is_queued=False)
        return _number(found, "allocated_percent")
    return _number(fill.make_figures(trace, workload, series), "allocated_percent_at_100")


def wait_mean(trace: Trace, workload: Workload, series: Series) -> float:
    """How long a pod waited, in thousandths of a mean lifetime."""
    found = streams.make_figures(trace, workload, series, is_queued=True)
    return 1000 * _number(found, "wait_mean")


def _number(record: Record, name: str) -> float:
    found = record[name]
    if not isinstance(found, (int, float)):
        raise TypeError(f"{name} is not known")
    return float(found)
