"""Lines of openb's files, see ``bench/data/openb/README.md``."""

from __future__ import annotations

import math

from scheduler.replay.experiment import WHOLE, TraceNode, TracePod
from scheduler.replay.reading import tables
from scheduler.replay.reading.tables import Row

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
ARRIVAL, DEPARTURE = "creation_time", "deletion_time"
# The multigpu lists have only the columns above.
POD_EXTRAS = ("gpu_spec", "qos", "pod_phase", ARRIVAL, DEPARTURE, "scheduled_time")
# Times are whole seconds; a task that is gone in the second it came was there for some part of it.
_LEAST_SECONDS = 1.0


def node(row: Row) -> TraceNode:
    """A node of the list."""
    return TraceNode(
        row.text("sn"),
        row.integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.integer("memory_mib", 0, tables.AMOUNT_MAX),
        row.integer("gpu", 1, tables.GPUS_MAX),
        row.cells["model"],
    )


def pod(row: Row) -> TracePod:
    """A task of the list."""
    gpus = row.integer("num_gpu", 0, tables.GPUS_MAX)
    milli = row.integer("gpu_milli", 1 if gpus else 0, WHOLE if gpus else 0)
    tables.check_share(row, gpus, milli, "gpu_milli")
    arrival, departure = _stay(row)
    return TracePod(
        row.text("name"),
        row.integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.integer("memory_mib", 0, tables.AMOUNT_MAX),
        gpus,
        milli,
        row.models("gpu_spec"),
        arrival=arrival,
        departure=departure,
    )


def _stay(row: Row) -> tuple[float, float]:
    arrival = row.seconds(ARRIVAL) if row.cells.get(ARRIVAL) else 0.0
    if not row.cells.get(DEPARTURE):
        return arrival, math.inf
    departure = row.seconds(DEPARTURE)
    if departure < arrival:
        raise row.bad(DEPARTURE, f'"{row.cells[DEPARTURE]}" is before {ARRIVAL}')
    return arrival, max(departure, arrival + _LEAST_SECONDS)
