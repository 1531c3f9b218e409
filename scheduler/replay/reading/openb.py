"""Lines of openb's files, see ``bench/data/openb/README.md``."""

from __future__ import annotations

import math
from pathlib import Path

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


def pods(path: Path, *, strict: bool) -> tuple[list[TracePod], tuple[str, ...]]:
    """The tasks of a list, and how contradictory lines were read; where ``strict`` such lines are refused.

    Raises:
        BadInput: names file, line and column, and says what is allowed.
    """
    gone_before: list[str] = []
    found = [
        _pod(row, gone_before, strict=strict) for row in tables.rows(path, POD_COLUMNS, POD_EXTRAS)
    ]
    return found, tuple(tables.gone_before(path.name, gone_before, f"{_LEAST_SECONDS:g} second"))


def _pod(row: Row, gone_before: list[str], *, strict: bool) -> TracePod:
    gpus = row.integer("num_gpu", 0, tables.GPUS_MAX)
    milli = row.integer("gpu_milli", 1 if gpus else 0, WHOLE if gpus else 0)
    tables.check_share(row, gpus, milli, "gpu_milli")
    arrival, departure = _stay(row)
    if departure < arrival:
        if strict:
            raise row.bad(DEPARTURE, f'"{row.cells[DEPARTURE]}" is before {ARRIVAL}')
        gone_before.append(row.cells["name"])
    return TracePod(
        row.text("name"),
        row.integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.integer("memory_mib", 0, tables.AMOUNT_MAX),
        gpus,
        milli,
        row.models("gpu_spec"),
        arrival=arrival,
        departure=max(departure, arrival + _LEAST_SECONDS),
    )


def _stay(row: Row) -> tuple[float, float]:
    arrival = row.seconds(ARRIVAL) if row.cells.get(ARRIVAL) else 0.0
    if not row.cells.get(DEPARTURE):
        return arrival, math.inf
    return arrival, row.seconds(DEPARTURE)
