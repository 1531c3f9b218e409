"""Lines of ``nodes.csv`` and ``pods.csv``, our own format; ``traces`` says what its columns mean."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from scheduler import printing
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


def pods(path: Path, *, strict: bool) -> tuple[list[TracePod], tuple[str, ...]]:
    """The pods of a file, and how contradictory lines were read.

    Args:
        path: the file.
        strict: such lines are refused.

    Raises:
        BadInput: names file, line and column, and says what is allowed.
    """
    readings = Readings(path.name)
    found: list[TracePod] = []
    limits: dict[str, int] = {}
    for row in tables.rows(path, _COLUMNS, _POD_EXTRAS, _RESOURCE):
        one = _pod(row, readings, strict=strict)
        found.append(one)
        if not one.app:
            continue
        before = limits.setdefault(one.app, one.max_per_node)
        if before != one.max_per_node:
            if strict:
                raise row.bad(
                    "max_per_node",
                    f'"{row.cells.get("max_per_node", "")}": all lines of an app must have the same value, and an'
                    f' earlier line has "{before or ""}" for {one.app}',
                )
            # The smallest value of any line holds for all of them; an empty cell has no value.
            limits[one.app] = min(filter(None, (before, one.max_per_node)))
            readings.differing.setdefault(one.app, None)
    taken = [
        replace(one, max_per_node=limits[one.app]) if one.app in readings.differing else one
        for one in found
    ]
    return taken, tuple(readings.said(limits))


@dataclass(slots=True)
class Readings:
    """Lines that were not read literally.

    Attributes:
        file: its name.
        gone_at_once: pods that left when they came.
        gone_before: pods that left before they came.
        differing: apps whose lines do not agree.
    """

    file: str
    gone_at_once: list[str] = field(default_factory=list)
    gone_before: list[str] = field(default_factory=list)
    differing: dict[str, None] = field(default_factory=dict)

    def said(self, limits: Mapping[str, int]) -> Iterator[str]:
        """In sentences, with how many there are and their names."""
        if n := len(self.gone_at_once):
            pods, leave, them = ("pod", "leaves", "it") if n == 1 else ("pods", "leave", "them")
            yield (
                f"{self.file}: {n:,} {pods} {leave} in the second of arrival; the replay lets {them} run for 1/"
                f"{tables.TICKS} of a second: {printing.list_some(self.gone_at_once)}"
            )
        yield from tables.gone_before(self.file, self.gone_before, f"1/{tables.TICKS} of a second")
        if n := len(self.differing):
            apps = "app has lines" if n == 1 else "apps have lines"
            smallest = [f"{app} ({limits[app]})" for app in self.differing]
            yield (
                f"{self.file}: {n:,} {apps} with different values of max_per_node; the smallest counts: "
                f"{printing.list_some(smallest)}"
            )


def _pod(row: Row, readings: Readings, *, strict: bool) -> TracePod:
    gpus = _gpus(row)
    milli = row.share("gpu_share") if gpus else 0
    memory = row.mebibytes("gpu_memory")
    tables.check_share(row, gpus, milli, "gpu_share")
    for column in _OF_GPUS:
        if not gpus and row.cells.get(column):
            raise row.bad(column, f'"{row.cells[column]}": must be empty when gpus is 0')
    app, max_per_node = _app(row)
    arrival, departure = _stay(row)
    if departure <= arrival:
        if strict:
            came = row.cells.get(ARRIVAL) or "0"
            raise row.bad(DEPARTURE, f'"{row.cells[DEPARTURE]}" is not after the arrival, {came}')
        gone = readings.gone_at_once if departure == arrival else readings.gone_before
        gone.append(row.cells["name"])
        departure = arrival + 1 / tables.TICKS
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
            "app" if "app" in row.cells else "max_per_node",
            "max_per_node needs a value in the column app",
        )
    return app, row.integer("max_per_node", 1, _PER_NODE_MAX)


def _stay(row: Row) -> tuple[float, float]:
    """When it came and left; without an arrival it was there from the start, without a departure it stays."""
    arrival = row.seconds(ARRIVAL) if row.cells.get(ARRIVAL) else 0.0
    if not row.cells.get(DEPARTURE):
        return arrival, math.inf
    return arrival, row.seconds(DEPARTURE)


def _extended(row: Row) -> Amounts:
    """Amounts of extended resources, by name; amounts of 0 are left out."""
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
            where,
            f"is not a resource: write its name with a domain, such as {_RESOURCE}example.com/iops",
        )
    if families.find_place(name) >= 0 or name in families.INNER_RESOURCES:
        raise BadInput(where, "is a resource of GPUs: write requested GPUs in the column gpus")
    try:
        selectors.check_name(name, where)
    except BadInput as error:
        raise BadInput(where, "is not a valid resource name in Kubernetes") from error
    return name
