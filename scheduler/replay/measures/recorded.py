"""Figures of a recorded trace, over its whole time from the first arrival to the last."""

from __future__ import annotations

import numpy as np

from scheduler.replay import demand, workloads
from scheduler.replay.experiment import Floats, Series, Trace, Workload
from scheduler.replay.measures import averages, by_resource, streams, usage
from scheduler.replay.measures.averages import Record
from scheduler.replay.measures.curve import Curve

N_STEPS = 240


def figures(trace: Trace, workload: Workload, series: Series, *, is_queued: bool) -> Record:
    """Figures of what was recorded, of all arrivals and exact over all time between the first and the last.

    Nothing is cut for a warm-up: pods that were there from the start are arrivals of time 0. Waiting is in
    seconds, and ``still_waiting_pods`` are all pods that were never placed. Fragments, of which only what an arrival
    left is known, count until the next arrival.
    """
    start, end = float(workload.at[0]), float(workload.at[-1])
    everyone = np.ones(len(workload.at), np.bool_)
    asked = demand.of_trace(trace)
    lasts = np.diff(workload.at, append=end)
    record: Record = {
        "recorded_seconds": end - start,
        **by_resource.over_time(asked, workload, series, start, end),
        "frag_percent": averages.mean(streams.frag_percent(trace, series), lasts),
    }
    if is_queued:
        record |= streams.waits(trace, workload, series, everyone, "_seconds")
        record["still_waiting_pods"] = streams.still_waiting(series, len(workload.at))
        return record
    return record | streams.losses(trace, workload, series, everyone)


def curve(trace: Trace, workload: Workload, series: Series) -> Curve:
    """Lines over the seconds from the first arrival on: means over equal steps of time."""
    at = workload.at
    if at[-1] == at[0]:
        return _moment(trace, series)
    edges = np.linspace(at[0], at[-1], N_STEPS + 1)
    amounts, capacity = workloads.of_load(trace)
    allocated = usage.of_resource(workload, series, amounts[workload.pod]).means(edges)
    occupied = usage.of_nodes(workload, series).means(edges)
    frag = usage.Line(at, streams.frag_percent(trace, series)).means(edges)
    middles: Floats = (edges[:-1] + edges[1:]) / 2.0 - at[0]
    return Curve(middles, 100.0 * allocated / capacity, frag, 100.0 * occupied / len(trace.nodes))


def _moment(trace: Trace, series: Series) -> Curve:
    """All came at once: a single point."""
    return Curve(
        np.zeros(1),
        100.0 * series.allocated[-1:] / workloads.of_load(trace)[1],
        streams.frag_percent(trace, series)[-1:],
        100.0 * series.occupied[-1:] / len(trace.nodes),
    )
