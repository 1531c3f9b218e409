"""Figures of a fill-up by the load: what has arrived, in percent of the capacity."""

from __future__ import annotations

import numpy as np

from scheduler.replay import demand, workloads
from scheduler.replay.experiment import Floats, Series, Trace, Workload
from scheduler.replay.measures import averages, by_resource
from scheduler.replay.measures.averages import Record, Steps
from scheduler.replay.measures.curve import Curve

LOADS = (80, 90, 95, 100, 110, 120, 130)
FRAG_LOADS = (20, 40, 60, 80, 90, 100)
OCCUPIED_LOAD = 50


def make_figures(trace: Trace, workload: Workload, series: Series) -> Record:
    """Make the figures of a fill-up: each is the mean over the arrivals whose load rounds to that percent.

    On a small cluster one pod is many percent, and perhaps no arrival rounds to a given percent. Then the figure is
    that of the arrival before, because nothing changes until the next one. Nothing is known of loads beyond
    the last arrival; ``asked_percent_at_end`` is the load of the last arrival. The fragment amount is relative to the
    capacity, the ratio to what is idle; ``frag_ratio_mean_percent`` is the mean of the ratios at loads 0..100.
    Stranded amounts are known if they were measured; losses are over all arrivals.
    """
    loads, capacity = _list_percents(trace, series), workloads.read_load(trace)[1]
    allocated = 100.0 * series.allocated / capacity
    of_gpus = allocated if trace.has_gpus else np.full(len(allocated), np.nan)
    frag = 100.0 * series.frag / capacity
    idle = capacity - series.allocated
    ratio = np.divide(series.frag, idle, out=np.full(len(idle), np.nan), where=idle > 0)
    ratio *= 100.0
    record: Record = {
        f"allocated_percent_at_{load}": averages.find_at_step(loads, of_gpus, load)
        for load in LOADS
    }
    record["allocated_percent_at_end"] = averages.find_mean(of_gpus[-1:])
    record["asked_percent_at_end"] = 100.0 * float(series.asked[-1]) / capacity
    for load in FRAG_LOADS:
        record[f"frag_percent_at_{load}"] = averages.find_at_step(loads, frag, load)
        record[f"frag_ratio_percent_at_{load}"] = averages.find_at_step(loads, ratio, load)
    steps, ratios = averages.average_by_step(loads, ratio)
    record["frag_ratio_mean_percent"] = averages.find_mean(ratios[steps <= 100])
    occupied = series.occupied.astype(np.float64)
    record[f"occupied_nodes_at_{OCCUPIED_LOAD}"] = averages.find_at_step(
        loads, occupied, OCCUPIED_LOAD
    )
    record["nodes_occupied_percent"] = averages.find_mean(100.0 * occupied / len(trace.nodes))
    record["dropped_pods"] = int((series.node < 0).sum())
    return record | _measure_resources(trace, workload, series, loads)


def make_curve(trace: Trace, series: Series) -> Curve:
    """Make lines over the load, at every whole percent that some arrival rounds to."""
    loads, capacity = _list_percents(trace, series), workloads.read_load(trace)[1]
    steps, allocated = averages.average_by_step(loads, 100.0 * series.allocated / capacity)
    frag = averages.average_by_step(loads, 100.0 * series.frag / capacity)[1]
    occupied = averages.average_by_step(loads, 100.0 * series.occupied / len(trace.nodes))[1]
    return Curve(steps, allocated, frag, occupied)


def _measure_resources(trace: Trace, workload: Workload, series: Series, loads: Steps) -> Record:
    asked = demand.read_demand(trace)
    is_placed, record = series.node >= 0, Record()
    for row, name in enumerate(asked.names):
        held = np.cumsum(asked.amounts[row][workload.pod] * is_placed)
        allocated: Floats = 100.0 * held / max(1, int(asked.total[row]))
        for load in LOADS:
            record[f"allocated_{name}_percent_at_{load}"] = averages.find_at_step(
                loads, allocated, load
            )
        record[f"allocated_{name}_percent_at_end"] = float(allocated[-1])
    for row, name in enumerate(asked.names):
        for load in FRAG_LOADS:
            found = None
            if series.samples is not None:
                stranded = by_resource.measure_stranded(asked, series, row)
                found = averages.find_at_step(loads[series.samples.after], stranded, load)
            record[f"stranded_{name}_percent_at_{load}"] = found
    everyone = np.ones(len(is_placed), np.bool_)
    return record | by_resource.measure_lost(asked, workload, series, everyone)


def _list_percents(trace: Trace, series: Series) -> Steps:
    """List [A] the load after each arrival, in whole percent."""
    return np.rint(100.0 * series.asked / workloads.read_load(trace)[1]).astype(int)
