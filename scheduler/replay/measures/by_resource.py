"""Figures that every experiment has for each resource, and for the nodes.

They are named ``<figure>_<resource>_percent``, the resources being those of ``demand``:

- allocated: the share of its capacity.
- lost: the share of the requested amount that was requested by pods that were lost.
- stranded: the share of its capacity, see ``stranded``.

``lost_percent`` is the mean of what was lost of the resources that bind, ``nodes_occupied_percent`` the nodes
that have any pod.
"""

from __future__ import annotations

import numpy as np

from scheduler.replay.demand import Demand
from scheduler.replay.experiment import Floats, Series, Workload
from scheduler.replay.measures import averages, usage
from scheduler.replay.measures.averages import Flags, Record


def lost(asked: Demand, workload: Workload, series: Series, is_counted: Flags) -> Record:
    """What was lost of the arrivals that count, weighted by what they request."""
    is_lost = np.where(series.node[is_counted] < 0, 100.0, 0.0)
    which = workload.pod[is_counted]
    shares = [
        averages.mean(is_lost, amounts[which].astype(np.float64)) for amounts in asked.amounts
    ]
    record: Record = {
        f"lost_{name}_percent": share for name, share in zip(asked.names, shares, strict=True)
    }
    binding = [share for row in asked.binding_rows if (share := shares[row]) is not None]
    record["lost_percent"] = sum(binding) / len(binding) if binding else None
    return record


def over_time(
    asked: Demand, workload: Workload, series: Series, start: float, end: float
) -> Record:
    """What was allocated and stranded and the nodes in use, from one time to another."""
    record: Record = {}
    total = asked.total
    for row, name in enumerate(asked.names):
        line = usage.of_resource(workload, series, asked.amounts[row][workload.pod])
        record[f"allocated_{name}_percent"] = _percent(line.mean(start, end), int(total[row]))
    for row, name in enumerate(asked.names):
        record[f"stranded_{name}_percent"] = None
        if series.samples is not None:
            is_within = (series.samples.at > start) & (series.samples.at <= end)
            found = averages.mean(stranded(asked, series, row)[is_within])
            record[f"stranded_{name}_percent"] = found
    nodes = usage.of_nodes(workload, series)
    record["nodes_occupied_percent"] = _percent(nodes.mean(start, end), asked.capacity.shape[1])
    return record


def stranded(asked: Demand, series: Series, row: int) -> Floats:
    """[S] percent of the capacity of a resource, at each look; nan where there is none of it."""
    if series.samples is None:
        return np.zeros(0)
    total = float(asked.total[row])
    found: Floats = series.samples.stranded[:, row]
    return 100.0 * found / total if total > 0 else np.full(found.size, np.nan)


def _percent(amount: float, total: int) -> float | None:
    return 100.0 * amount / total if total else None
