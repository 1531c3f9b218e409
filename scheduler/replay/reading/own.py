"""Lines of ``nodes.csv`` and ``pods.csv``, our own format; ``traces`` tells what its columns mean."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path

from scheduler.api import selectors
from scheduler.devices import table as families
from scheduler.errors import BadInput
from scheduler.replay.experiment import Amounts, TraceNode, TracePod
from scheduler.replay.reading import tables
from scheduler.replay.reading.tables import Row

ARRIVAL, DEPARTURE = "arrival", "departure"
_COLUMNS = ("name", "cpu", "memory")
_NODE_EXTRAS = ("gpus", "model")
_POD_EXTRAS = (
    "gpus", "gpu_share", "models", "gpu_memory", "app", "max_per_node", ARRIVAL, DEPARTURE,
)  # fmt: skip
_OF_GPUS = ("gpu_share", "gpu_memory", "models")
_RESOURCE = "resource:"
# As many as fit in the maxSkew of a topology spread constraint.
_PER_NODE_MAX = 2**31 - 1


def nodes(path: Path) -> Iterator[TraceNode]:
    """The nodes of a file.

    Raises:
        BadInput: names file, line and column, and says what is allowed.
    """
    for row in tables.rows(path, _COLUMNS, _NODE_EXTRAS, _RESOURCE):
        yield TraceNode(
            row.text("name"),
            row.cores("cpu"),
            row.mebibytes("memory"),
            _gpus(row),
            row.cells.get("model", ""),
            _extended(row),
        )


def pods(path: Path) -> Iterator[TracePod]:
    """The pods of a file.

    Raises:
        BadInput: names file, line and column, and says what is allowed.
    """
    limits: dict[str, int] = {}
    for row in tables.rows(path, _COLUMNS, _POD_EXTRAS, _RESOURCE):
        one = _pod(row)
        if one.app and limits.setdefault(one.app, one.max_per_node) != one.max_per_node:
            raise row.bad(
                "max_per_node",
                f'"{row.cells.get("max_per_node", "")}": the lines of an app must agree, and one above'
                f' says "{limits[one.app] or ""}" for {one.app}',
            )
        yield one


def _pod(row: Row) -> TracePod:
    gpus = _gpus(row)
    milli = row.share("gpu_share") if gpus else 0
    memory = row.mebibytes("gpu_memory")
    tables.check_share(row, gpus, milli, "gpu_share")
    for column in _OF_GPUS:
        if not gpus and row.cells.get(column):
            raise row.bad(column, f'"{row.cells[column]}": must be empty when gpus is 0')
    app, max_per_node = _app(row)
    arrival, departure = _stay(row)
    return TracePod(
        row.text("name"),
        row.cores("cpu"),
        row.mebibytes("memory"),
        gpus,
        milli,
        row.models("models"),
        memory,
        _extended(row),
        app,
        max_per_node,
        arrival,
        departure,
    )


def _gpus(row: Row) -> int:
    return row.integer("gpus", 0, tables.GPUS_MAX) if "gpus" in row.cells else 0


def _app(row: Row) -> tuple[str, int]:
    """The app, and how many pods of it one node may have; 0: any number."""
    app, most = row.cells.get("app", ""), row.cells.get("max_per_node", "")
    selectors.check_value(app, row.place("app"))
    if not most:
        return app, 0
    if not app:
        raise row.bad(
            "app" if "app" in row.cells else "max_per_node", "needs the app that it is of"
        )
    return app, row.integer("max_per_node", 1, _PER_NODE_MAX)


def _stay(row: Row) -> tuple[float, float]:
    """When it came and left; without an arrival it was there from the start, without a departure it stays."""
    arrival = row.seconds(ARRIVAL) if row.cells.get(ARRIVAL) else 0.0
    if not row.cells.get(DEPARTURE):
        return arrival, math.inf
    departure = row.seconds(DEPARTURE)
    if departure <= arrival:
        came = row.cells.get(ARRIVAL) or "0"
        raise row.bad(DEPARTURE, f'"{row.cells[DEPARTURE]}" is not after the arrival, {came}')
    return arrival, departure


def _extended(row: Row) -> Amounts:
    """Amounts of extended resources, by name; those of which there is or is asked none are left out."""
    found = []
    for column in row.cells:
        if column.startswith(_RESOURCE):
            name = _resource(row.path.name, column)
            amount = row.integer(column, 0, tables.AMOUNT_MAX) if row.cells[column] else 0
            if amount:
                found.append((name, amount))
    return tuple(sorted(found))


@functools.cache
def _resource(file: str, column: str) -> str:
    """The resource that a column is of."""
    where, name = f'{file}, line 1, column "{column}"', column.removeprefix(_RESOURCE)
    if "/" not in name:
        raise BadInput(
            where, f"is no resource: write its name with a domain, as {_RESOURCE}example.com/iops"
        )
    if families.place_of(name) >= 0 or name in families.INNER_RESOURCES:
        raise BadInput(where, "is one of devices: GPUs are asked for by the column gpus")
    try:
        selectors.check_name(name, where)
    except BadInput as error:
        raise BadInput(where, "is no resource's name in Kubernetes") from error
    return name
