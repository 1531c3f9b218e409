"""Writes the output of a replay: a table, JSON or Parquet, all from one list of flat records."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from scheduler import printing
from scheduler.errors import BadInput
from scheduler.replay import demand
from scheduler.replay.headings import write_heading
from scheduler.replay.measures import summary as over_seeds
from scheduler.replay.measures.averages import Record, Value

# Runs that differ in one of these fields are summarised separately; runs that differ only in their seed, together.
GROUP = (
    "trace", "variant", "experiment", "load", "load_of", "binding", "queue", "waiting", "learn", "queues", "defrag", "mode",
)  # fmt: skip
# These differ between the columns of one table.
_ACROSS = 3
_NO_FIGURES = ("seed", "arrivals")
_OF_RESOURCE = re.compile(r"(allocated|stranded)_(.+)_percent(?:_at_(\w+))?")
_LOADS_SHOWN = ("100", "end")
_ENDLESS = 10_000  # columns, more than any table has


def summarise(records: Sequence[Record]) -> list[Record]:
    """Summarise records by mean and spread over the seeds, see ``measures.summary``."""
    return over_seeds.summarise_records(records, GROUP, _NO_FIGURES)


def write_json(records: Sequence[Record]) -> str:
    """Write ``{"schemaVersion", "runs": [one record per run], "summary": [one per mode and so on]}``."""
    content = printing.add_version({"runs": list(records), "summary": summarise(records)})
    return json.dumps(content, indent=2, allow_nan=False)


def check_parquet() -> None:
    """Refuse Parquet if its extra is not installed.

    Raises:
        BadInput: the extra is missing; the error says how to install it.
    """
    try:
        importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        raise BadInput(
            "--output parquet", "needs the extra parquet: pip install evenkeel-scheduler[parquet]"
        ) from error


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """Write a row per run and a column per field of its record, with null if the run has no such figure.

    Raises:
        BadInput: the extra is not installed, or the file cannot be written.
    """
    check_parquet()
    import pyarrow as pa  # noqa: PLC0415 - an extra
    from pyarrow import parquet  # noqa: PLC0415

    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {}
    for name in names:
        values = [record.get(name) for record in records]
        # A column without any value would have no type, and the files of two replays would not match.
        kind = pa.float64() if all(value is None for value in values) else None
        columns[name] = pa.array(values, type=kind)
    try:
        parquet.write_table(pa.table(columns), path)
    except OSError as error:
        raise BadInput("--output-file", f"{path}: {error}") from error


def print_results(records: Sequence[Record], console: Console) -> None:
    """Print a table per experiment: figures down, policies and modes across, mean ± spread over the seeds.

    Figures of a recorded trace that are 0 with all modes are named below, in one sentence. JSON and Parquet hold more
    figures: those of every resource at every load would fill a page.

    Modes that do not fit beside the others are in a table below; off a terminal all modes are side by side.
    """
    groups: dict[tuple[Value, ...], list[Record]] = {}
    for one in summarise(records):
        groups.setdefault(tuple(one[key] for key in GROUP[:-_ACROSS]), []).append(one)
    for group in groups.values():
        # The title is printed above, because a table's own title is folded to the table's width.
        console.print(_make_title(group[0]), highlight=False, markup=False, soft_wrap=True)
        # Only runs in which pods are moved have figures of moves.
        names = dict.fromkeys(name for one in group for name in one)
        shown = [name for name in names if _is_shown(name, group[0])]
        # A recorded run has all figures, but most of them are 0.
        is_recorded = group[0]["experiment"] == "recorded"
        nothing = [
            name for name in shown if is_recorded and all(_is_nothing(one, name) for one in group)
        ]
        rows = [name for name in shown if name not in nothing]
        while group:
            n = _count_abreast(group, rows, console)
            console.print(_make_table(group[:n], rows))
            del group[:n]
        if nothing:
            said = "; ".join(map(write_heading, nothing))
            text = printing.wrap_prose(
                f"Figures that are 0 with every mode and seed: {said}.", printing.PROSE
            )
            console.print(text, highlight=False, markup=False)


def _make_title(one: Record) -> str:
    load = "" if one["load"] is None else f", load {one['load']}"
    if load and one["load_of"] != demand.GPU:
        load += f" of {one['load_of']}"
    waiting = ", queued" if one["queue"] else ""
    if one["queue"] and one["waiting"] not in {"", "backfill"}:
        waiting += f" ({one['waiting']})"
    return f"{one['experiment']} of {one['trace']}, {one['variant']}{load}{waiting}"


def _count_abreast(group: Sequence[Record], rows: Sequence[str], console: Console) -> int:
    """Count the modes that fit beside each other; at least one."""
    endless = console.options.update(width=_ENDLESS)
    fits = [
        n
        for n in range(1, len(group) + 1)
        if console.measure(_make_table(group[:n], rows), options=endless).maximum <= console.width
    ]
    return max(fits, default=1)


def _make_table(group: Sequence[Record], rows: Sequence[str]) -> Table:
    first = group[0]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(
        f"mean ± sd of {first['runs']} seeds" if first["runs"] != 1 else "mean of one seed",
        overflow="fold",
    )
    for one in group:
        heading = "\n".join(str(one[key]) for key in GROUP[-_ACROSS:] if one[key])
        table.add_column(heading, justify="right", no_wrap=True)
    for name in rows:
        cells = [_write_cell(one.get(name), one.get(f"{name}_sd")) for one in group]
        if any(cells):
            table.add_row(write_heading(name), *cells)
    return table


def _is_nothing(one: Record, name: str) -> bool:
    return one.get(name, 0) == 0 and not one.get(f"{name}_sd")


def _is_shown(name: str, one: Record) -> bool:
    """Whether the table shows a figure: the figures of every resource at every load are only in files.

    Allocated GPUs have a figure without a resource in its name, and need no second line.
    """
    if name in GROUP or name == "runs" or name.endswith("_sd"):
        return False
    match = _OF_RESOURCE.fullmatch(name)
    if match is None:
        return True
    figure, resource, load = match.groups()
    if figure == "allocated" and resource == demand.GPU:
        return one["experiment"] == "recorded"
    return load in {None, *_LOADS_SHOWN} or (figure == "allocated" and resource == one["load_of"])


def _write_cell(mean: Value, spread: Value) -> str:
    if not isinstance(mean, int | float):
        return ""
    n_digits = 2 if abs(mean) < 1000 else 0
    shown = f"{mean:.{n_digits}f}"
    return f"{shown} ± {spread:.{n_digits}f}" if isinstance(spread, int | float) else shown
