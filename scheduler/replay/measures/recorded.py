"""Figures of a recorded trace, over its whole time from the first arrival to the last."""

from __future__ import annotations

import numpy as np

from scheduler.replay import demand, workloads
from scheduler.replay.experiment import Floats, Series, Trace, Workload
from scheduler.replay.measures import averages, by_resource, streams, usage
from scheduler.replay.measures.averages import Record
from scheduler.replay.measures.curve import Curve

N_STEPS = 240


def make_figures(trace: Trace, workload: Workload, series: Series, *, is_queued: bool) -> Record:
    """Make the figures of a recorded trace: of all arrivals, and exact over the time from the first to the last.

    Nothing is cut for a warm-up: pods that were there from the start are arrivals of time 0. Waiting is in
    seconds, and ``still_waiting_pods`` are all pods that were never placed. Fragments are known only after arrivals:
    each value counts until the next arrival.
    """
    start, end = float(workload.at[0]), float(workload.at[-1])
    everyone = np.ones(len(workload.at), np.bool_)
    asked = demand.read_demand(trace)
    lasts = np.diff(workload.at, append=end)
    record: Record = {
        "recorded_seconds": end - start,
        **by_resource.measure_over_time(asked, workload, series, start, end),
        "frag_percent": averages.find_mean(streams.list_frag_percents(trace, series), lasts),
    }
    if is_queued:
        record |= streams.measure_waits(trace, workload, series, everyone, "_seconds")
        record["still_waiting_pods"] = streams.count_still_waiting(series, len(workload.at))
        return record
    return record | streams.measure_losses(trace, workload, series, everyone)


def make_curve(trace: Trace, workload: Workload, series: Series) -> Curve:
    """Make lines over the seconds from the first arrival on: means over equal steps of time."""
    at = workload.at
    if at[-1] == at[0]:
        return _make_point(trace, series)
    edges = np.linspace(at[0], at[-1], N_STEPS + 1)
    amounts, capacity = workloads.read_load(trace)
    allocated = usage.measure_resource(workload, series, amounts[workload.pod]).list_means(edges)
    occupied = usage.measure_nodes(workload, series).list_means(edges)
    frag = usage.Line(at, streams.list_frag_percents(trace, series)).list_means(edges)
    middles: Floats = (edges[:-1] + edges[1:]) / 2.0 - at[0]
    return Curve(middles, 100.0 * allocated / capacity, frag, 100.0 * occupied / len(trace.nodes))


def _make_point(trace: Trace, series: Series) -> Curve:
    """Make a single point, because all pods came together."""
    return Curve(
        np.zeros(1),
        100.0 * series.allocated[-1:] / workloads.read_load(trace)[1],
        streams.list_frag_percents(trace, series)[-1:],
        100.0 * series.occupied[-1:] / len(trace.nodes),
    )
