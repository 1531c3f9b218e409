"""Reads lines of openb's files, see ``bench/data/openb/README.md``."""

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
# Times are whole seconds; a task that left in the second of its arrival ran for some part of this second.
_LEAST_SECONDS = 1.0


def read_node(row: Row) -> TraceNode:
    """Read a node of the list."""
    return TraceNode(
        row.read_text("sn"),
        row.read_integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.read_integer("memory_mib", 0, tables.AMOUNT_MAX),
        row.read_integer("gpu", 1, tables.GPUS_MAX),
        row.cells["model"],
    )


def read_pods(path: Path, *, strict: bool) -> tuple[list[TracePod], tuple[str, ...]]:
    """Read the tasks of a list, and return also how contradictory lines were read; if ``strict``, refuse such lines.

    Raises:
        BadInput: a line is wrong; the error names file, line and column, and says what is allowed.
    """
    gone_before: list[str] = []
    found = [
        _read_pod(row, gone_before, strict=strict)
        for row in tables.read_rows(path, POD_COLUMNS, POD_EXTRAS)
    ]
    return found, tuple(
        tables.describe_gone_before(path.name, gone_before, f"{_LEAST_SECONDS:g} second")
    )


def _read_pod(row: Row, gone_before: list[str], *, strict: bool) -> TracePod:
    gpus = row.read_integer("num_gpu", 0, tables.GPUS_MAX)
    milli = row.read_integer("gpu_milli", 1 if gpus else 0, WHOLE if gpus else 0)
    tables.check_share(row, gpus, milli, "gpu_milli")
    arrival, departure = _read_stay(row)
    if departure < arrival:
        if strict:
            raise row.make_error(DEPARTURE, f'"{row.cells[DEPARTURE]}" is before {ARRIVAL}')
        gone_before.append(row.cells["name"])
    return TracePod(
        row.read_text("name"),
        row.read_integer("cpu_milli", 0, tables.AMOUNT_MAX),
        row.read_integer("memory_mib", 0, tables.AMOUNT_MAX),
        gpus,
        milli,
        row.read_models("gpu_spec"),
        arrival=arrival,
        departure=max(departure, arrival + _LEAST_SECONDS),
    )


def _read_stay(row: Row) -> tuple[float, float]:
    arrival = row.read_seconds(ARRIVAL) if row.cells.get(ARRIVAL) else 0.0
    if not row.cells.get(DEPARTURE):
        return arrival, math.inf
    return arrival, row.read_seconds(DEPARTURE)
