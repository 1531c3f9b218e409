"""Reads lines of ``nodes.csv`` and ``pods.csv``, our own format; ``traces`` says what the columns mean."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from scheduler import printing
from scheduler.api import selectors
from scheduler.devices import table as families
from scheduler.devices.mig_models import CUT_MODELS
from scheduler.errors import BadInput
from scheduler.replay.experiment import Amounts, TraceNode, TracePod
from scheduler.replay.reading import tables
from scheduler.replay.reading.tables import Row

ARRIVAL, DEPARTURE = "arrival", "departure"
_COLUMNS = ("name", "cpu", "memory")
_NODE_EXTRAS = ("gpus", "model", "mig")
_POD_EXTRAS = (
    "gpus", "gpu_share", "models", "gpu_memory", "app", "max_per_node", ARRIVAL, DEPARTURE, "group", "run_time", "queue",
)  # fmt: skip
_OF_GPUS = ("gpu_share", "gpu_memory", "models")
_RESOURCE = "resource:"
# The largest maxSkew of a topology spread constraint.
_PER_NODE_MAX = 2**31 - 1


def read_nodes(path: Path) -> Iterator[TraceNode]:
    """Read the nodes of a file.

    Raises:
        BadInput: a line is wrong; the error names file, line and column, and says what is allowed.
    """
    for row in tables.read_rows(path, _COLUMNS, _NODE_EXTRAS, _RESOURCE):
        yield TraceNode(
            row.read_text("name"),
            row.read_cores("cpu"),
            row.read_mebibytes("memory"),
            _read_gpus(row),
            row.cells.get("model", ""),
            _read_extended(row),
            _read_mig(row),
        )


def _read_mig(row: Row) -> str:
    text = row.cells.get("mig", "")
    if text and text not in CUT_MODELS:
        raise row.make_error("mig", f'"{text}": must be empty or one of {", ".join(CUT_MODELS)}')
    return text


def read_pods(path: Path, *, strict: bool) -> tuple[list[TracePod], tuple[str, ...]]:
    """Read the pods of a file, and return also how contradictory lines were read.

    Args:
        path: the file.
        strict: contradictory lines are refused.

    Raises:
        BadInput: a line is wrong; the error names file, line and column, and says what is allowed.
    """
    readings = Readings(path.name)
    found: list[TracePod] = []
    limits: dict[str, int] = {}
    queues: dict[str, str] = {}
    for row in tables.read_rows(path, _COLUMNS, _POD_EXTRAS, _RESOURCE):
        one = _read_pod(row, readings, strict=strict)
        found.append(one)
        if one.group and queues.setdefault(one.group, one.queue) != one.queue:
            raise row.make_error(
                "queue",
                f'"{one.queue}": all lines of a group must have the same queue, and an earlier line of {one.group} has'
                f' "{queues[one.group]}"',
            )
        if not one.app:
            continue
        before = limits.setdefault(one.app, one.max_per_node)
        if before != one.max_per_node:
            if strict:
                raise row.make_error(
                    "max_per_node",
                    f'"{row.cells.get("max_per_node", "")}": all lines of an app must have the same value, and an'
                    f' earlier line has "{before or ""}" for {one.app}',
                )
            # The smallest value of any line holds for all lines of the app; an empty cell has no value.
            limits[one.app] = min(filter(None, (before, one.max_per_node)))
            readings.differing.setdefault(one.app, None)
    taken = [
        replace(one, max_per_node=limits[one.app]) if one.app in readings.differing else one
        for one in found
    ]
    return taken, tuple(readings.describe(limits))


@dataclass(slots=True)
class Readings:
    """Lines that were not read literally.

    Attributes:
        file: the name of the file.
        gone_at_once: pods that left at the time of their arrival.
        gone_before: pods that left before their arrival.
        differing: apps whose lines differ.
    """

    file: str
    gone_at_once: list[str] = field(default_factory=list)
    gone_before: list[str] = field(default_factory=list)
    differing: dict[str, None] = field(default_factory=dict)

    def describe(self, limits: Mapping[str, int]) -> Iterator[str]:
        """Describe the lines in sentences, with their number and names."""
        if n := len(self.gone_at_once):
            pods, leave, them = ("pod", "leaves", "it") if n == 1 else ("pods", "leave", "them")
            yield (
                f"{self.file}: {n:,} {pods} {leave} in the second of arrival; the replay lets {them} run for 1/"
                f"{tables.TICKS} of a second: {printing.list_some(self.gone_at_once)}"
            )
        yield from tables.describe_gone_before(
            self.file, self.gone_before, f"1/{tables.TICKS} of a second"
        )
        if n := len(self.differing):
            apps = "app has lines" if n == 1 else "apps have lines"
            smallest = [f"{app} ({limits[app]})" for app in self.differing]
            yield (
                f"{self.file}: {n:,} {apps} with different values of max_per_node; the smallest counts: "
                f"{printing.list_some(smallest)}"
            )


def _read_pod(row: Row, readings: Readings, *, strict: bool) -> TracePod:
    gpus = _read_gpus(row)
    milli = row.read_share("gpu_share") if gpus else 0
    memory = row.read_mebibytes("gpu_memory")
    tables.check_share(row, gpus, milli, "gpu_share")
    for column in _OF_GPUS:
        if not gpus and row.cells.get(column):
            raise row.make_error(column, f'"{row.cells[column]}": must be empty when gpus is 0')
    app, max_per_node = _read_app(row)
    arrival, departure = _read_stay(row)
    if departure <= arrival:
        if strict:
            came = row.cells.get(ARRIVAL) or "0"
            raise row.make_error(
                DEPARTURE, f'"{row.cells[DEPARTURE]}" is not after the arrival, {came}'
            )
        gone = readings.gone_at_once if departure == arrival else readings.gone_before
        gone.append(row.cells["name"])
        departure = arrival + 1 / tables.TICKS
    return TracePod(
        row.read_text("name"),
        row.read_cores("cpu"),
        row.read_mebibytes("memory"),
        gpus,
        milli,
        row.read_models("models"),
        memory,
        _read_extended(row),
        app,
        max_per_node,
        arrival,
        departure,
        _read_group(row),
        row.read_seconds("run_time") if row.cells.get("run_time") else math.inf,
        _read_queue(row),
    )


def _read_gpus(row: Row) -> int:
    return row.read_integer("gpus", 0, tables.GPUS_MAX) if "gpus" in row.cells else 0


def _read_app(row: Row) -> tuple[str, int]:
    """Read the app, and how many pods of it one node may have; 0: any number."""
    app, most = row.cells.get("app", ""), row.cells.get("max_per_node", "")
    selectors.check_value(app, row.name_place("app"))
    if not most:
        return app, 0
    if not app:
        raise row.make_error(
            "app" if "app" in row.cells else "max_per_node",
            "max_per_node needs a value in the column app",
        )
    return app, row.read_integer("max_per_node", 1, _PER_NODE_MAX)


def _read_group(row: Row) -> str:
    """Read the name of the group."""
    group = row.cells.get("group", "")
    selectors.check_value(group, row.name_place("group"))
    return group


def _read_queue(row: Row) -> str:
    """Read the name of the queue."""
    queue = row.cells.get("queue", "")
    selectors.check_value(queue, row.name_place("queue"))
    return queue


def _read_stay(row: Row) -> tuple[float, float]:
    """Read when a pod came and left; without an arrival it was there from the start, without a departure it stays."""
    arrival = row.read_seconds(ARRIVAL) if row.cells.get(ARRIVAL) else 0.0
    if not row.cells.get(DEPARTURE):
        return arrival, math.inf
    return arrival, row.read_seconds(DEPARTURE)


def _read_extended(row: Row) -> Amounts:
    """Read the amounts of extended resources, by name; amounts of 0 are left out."""
    found = []
    for column in row.cells:
        if column.startswith(_RESOURCE):
            name = _read_resource(row.path.name, column)
            amount = row.read_integer(column, 0, tables.AMOUNT_MAX) if row.cells[column] else 0
            if amount:
                found.append((name, amount))
    return tuple(sorted(found))


@functools.cache
def _read_resource(file: str, column: str) -> str:
    """Read the resource of a column."""
    where, name = f'{file}, line 1, column "{column}"', column.removeprefix(_RESOURCE)
    if "/" not in name:
        raise BadInput(
            where,
            f"is not a resource: write its name with a domain, such as {_RESOURCE}example.com/iops",
        )
    if families.DEFAULT_DEVICES.is_of_devices(name):
        raise BadInput(where, "is a resource of GPUs: write requested GPUs in the column gpus")
    try:
        selectors.check_name(name, where)
    except BadInput as error:
        raise BadInput(where, "is not a valid resource name in Kubernetes") from error
    return name
