"""Measures the figures that every experiment has for each resource, and for the nodes.

Their names are ``<figure>_<resource>_percent``, with the resources of ``demand``:

- allocated: the allocated share of the capacity.
- lost: the share of the requested amount that was requested by pods that were lost.
- stranded: the stranded share of the capacity, see ``stranded``.

``lost_percent`` is the mean of the lost shares of the resources that bind, ``nodes_occupied_percent`` the share of nodes
with any pod.
"""

from __future__ import annotations

import numpy as np

from scheduler.replay.demand import Demand
from scheduler.replay.experiment import Floats, Series, Workload
from scheduler.replay.measures import averages, usage
from scheduler.replay.measures.averages import Flags, Record


def measure_lost(asked: Demand, workload: Workload, series: Series, is_counted: Flags) -> Record:
    """Measure what was lost of the arrivals that count, weighted by what they request."""
    is_lost = np.where(series.node[is_counted] < 0, 100.0, 0.0)
    which = workload.pod[is_counted]
    shares = [
        averages.find_mean(is_lost, amounts[which].astype(np.float64)) for amounts in asked.amounts
    ]
    record: Record = {
        f"lost_{name}_percent": share for name, share in zip(asked.names, shares, strict=True)
    }
    binding = [share for row in asked.binding_rows if (share := shares[row]) is not None]
    record["lost_percent"] = sum(binding) / len(binding) if binding else None
    return record


def measure_over_time(
    asked: Demand, workload: Workload, series: Series, start: float, end: float
) -> Record:
    """Measure what was allocated and stranded, and the nodes in use, from one time to another."""
    record: Record = {}
    total = asked.total
    for row, name in enumerate(asked.names):
        line = usage.measure_resource(workload, series, asked.amounts[row][workload.pod])
        record[f"allocated_{name}_percent"] = _find_percent(
            line.find_mean(start, end), int(total[row])
        )
    for row, name in enumerate(asked.names):
        record[f"stranded_{name}_percent"] = None
        if series.samples is not None:
            is_within = (series.samples.at > start) & (series.samples.at <= end)
            found = averages.find_mean(measure_stranded(asked, series, row)[is_within])
            record[f"stranded_{name}_percent"] = found
    nodes = usage.measure_nodes(workload, series)
    record["nodes_occupied_percent"] = _find_percent(
        nodes.find_mean(start, end), asked.capacity.shape[1]
    )
    return record


def measure_stranded(asked: Demand, series: Series, row: int) -> Floats:
    """Measure [S] the stranded percent of a resource's capacity at each look; nan if there is none of it."""
    if series.samples is None:
        return np.zeros(0)
    total = float(asked.total[row])
    found: Floats = series.samples.stranded[:, row]
    return 100.0 * found / total if total > 0 else np.full(found.size, np.nan)


def _find_percent(amount: float, total: int) -> float | None:
    return 100.0 * amount / total if total else None
