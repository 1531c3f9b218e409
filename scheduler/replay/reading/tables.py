"""Reads CSV files, plain or compressed, row by row. Every mistake is named with its file, line and column."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import math
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler import printing
from scheduler.api import quantities
from scheduler.errors import BadInput
from scheduler.replay.experiment import WHOLE

MIB = 2**20
# Far more than any machine has, and small enough that sums over a trace stay within int64.
AMOUNT_MAX = 2**36
GPUS_MAX = 64  # of one node
# In seconds: three thousand years. A Unix time is below this bound, but not if it is in milliseconds.
TIME_MAX = 10**11
# Times are kept in parts of a second that a double holds exactly, so that pods that leave make room for pods that
# come at the same moment.
TICKS = 1024
_ENDINGS = (".csv", ".csv.gz", ".csv.xz")
_TIME = re.compile(r"\d+(\.\d+)?", re.ASCII)
_UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a file; the readers of its columns raise ``BadInput``."""

    path: Path
    line: int
    cells: dict[str, str]

    def make_error(self, column: str, problem: str) -> BadInput:
        """Make the error that names this line and ``column``."""
        return BadInput(self.name_place(column), problem)

    def name_place(self, column: str) -> str:
        """Name the place of a cell, for an error."""
        return f"{self.path.name}, line {self.line}, column {column}"

    def read_text(self, column: str) -> str:
        """Read a cell that must not be empty."""
        value = self.cells[column]
        if not value:
            raise self.make_error(column, "is empty")
        return value

    def read_integer(self, column: str, low: int, high: int) -> int:
        """Read a whole number from ``low`` to ``high``."""
        value = self.cells[column]  # int() would also accept 1_000 and digits of other scripts
        digits = value.isascii() and value.isdigit() and len(value) <= len(str(AMOUNT_MAX))
        if not digits or not low <= int(value) <= high:
            raise self.make_error(
                column, f'"{value[:64]}" is not a whole number from {low} to {high}'
            )
        return int(value)

    def read_cores(self, column: str) -> int:
        """Read 1/1000 core, rounded up, from a Kubernetes quantity: ``12``, ``0.5`` or ``500m``."""
        return self._read_quantity(column, quantities.read_milli, 1)

    def read_mebibytes(self, column: str) -> int:
        """Read MiB, rounded up, from a Kubernetes quantity with its suffix: ``384Gi``, ``512Mi``; an empty cell is 0."""
        value = self.cells.get(column) or "0"
        if value.strip("0.") and value[-1].isdigit():
            raise self.make_error(
                column, f'"{value}" has no unit: write for example {value}Mi or 16Gi'
            )
        return self._read_quantity(column, quantities.read_value, MIB)

    def read_share(self, column: str) -> int:
        """Read a share of one GPU, above 0 to 1, in thousandths; an empty cell is a whole GPU."""
        allowed = "is not a share of one GPU: write 0.001 to 1, or nothing for a whole GPU"
        value = self.cells.get(column) or "1"
        try:
            milli = round(float(value) * 1000)
        except (ValueError, OverflowError) as error:
            raise self.make_error(column, f'"{value}" {allowed}') from error
        if not 1 <= milli <= 1000:
            raise self.make_error(column, f'"{value}" {allowed}')
        return milli

    def read_seconds(self, column: str) -> float:
        """Read a time in seconds from 0, to 1/1024 of a second."""
        value = self.cells[column]
        time = float(value) if _TIME.fullmatch(value) else math.inf
        if time > TIME_MAX:
            raise self.make_error(
                column, f'"{value[:64]}" is not a time from 0 to {TIME_MAX} seconds'
            )
        return round(time * TICKS) / TICKS

    def read_models(self, column: str) -> tuple[str, ...]:
        """Read GPU models joined with a bar, sorted, each once; an empty cell is any model."""
        value = self.cells.get(column, "")
        names = tuple(sorted(set(value.split("|")))) if value else ()
        if "" in names:
            raise self.make_error(column, f'"{value}" is not a list of GPU models joined with |')
        return names

    def _read_quantity(self, column: str, read: Callable[[str], int], unit: int) -> int:
        try:
            amount = -(-read(self.cells.get(column) or "0") // unit)
        except quantities.BadQuantity as error:
            raise self.make_error(column, str(error)) from error
        if amount > AMOUNT_MAX:
            raise self.make_error(
                column, f'"{self.cells[column]}" is too large: at most {AMOUNT_MAX} are allowed'
            )
        return amount


def find_file(folder: Path, stem: str) -> Path | None:
    """Find the first of ``stem``.csv, .csv.gz and .csv.xz that is in ``folder``."""
    found = (folder / f"{stem}{ending}" for ending in _ENDINGS)
    return next((path for path in found if path.is_file()), None)


def check_share(row: Row, gpus: int, milli: int, column: str) -> None:
    """Refuse a share of several GPUs.

    Raises:
        BadInput: this is such a share; the error names the line and ``column``.
    """
    if gpus > 1 and milli < WHOLE:
        raise row.make_error(
            column,
            f'"{row.cells[column]}": a share is allowed with 1 GPU only, and {gpus} are requested',
        )


def read_header(path: Path) -> list[str]:
    """Read the names of the columns.

    Raises:
        BadInput: the file cannot be read.
    """
    return [
        name.strip() for name in next(csv.reader(io.StringIO(_read_text(path), newline="")), [])
    ]


def read_rows(
    path: Path, needed: Collection[str], optional: Collection[str], prefix: str | None = None
) -> Iterator[Row]:
    """Read all lines below the header, with cells without blanks around them.

    Args:
        path: the file.
        needed: columns that must exist.
        optional: columns that may exist.
        prefix: columns with names that begin so may exist, too; None: no others may.

    Raises:
        BadInput: the file cannot be read, a column is missing or unknown, or a line has another number of cells.
    """
    reader = csv.reader(io.StringIO(_read_text(path), newline=""))
    try:
        columns = [name.strip() for name in next(reader, [])]
        _check_header(path, columns, needed, (*optional, *_list_named(columns, prefix)))
        for cells in reader:
            if len(cells) == len(columns):
                stripped = (cell.strip() for cell in cells)
                yield Row(path, reader.line_num, dict(zip(columns, stripped, strict=True)))
            elif cells:
                raise BadInput(
                    f"{path.name}, line {reader.line_num}",
                    f"has {len(cells)} cells where the header has {len(columns)}",
                )
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}", str(error)) from error


def _list_named(columns: list[str], prefix: str | None) -> list[str]:
    """List the columns that begin with the prefix, each once; if there are none, how such a column is written."""
    if prefix is None:
        return []
    return list(dict.fromkeys(n for n in columns if n.startswith(prefix))) or [f"{prefix}NAME"]


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        unpack = _UNPACK.get(path.suffix)
        return (unpack(content) if unpack else content).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error) as error:
        raise BadInput(str(path), f"cannot be read: {error}") from error


def describe_gone_before(file: str, pods: Sequence[str], stay: str) -> Iterator[str]:
    """Describe the pods of a file that leave before they arrive, and how long they run instead; nothing without any."""
    if n := len(pods):
        which, it, its = (
            ("pod leaves before it arrives", "it", "its")
            if n == 1
            else ("pods leave before they arrive", "them", "their")
        )
        yield f"{file}: {n:,} {which}; the replay lets {it} run for {stay} from {its} arrival: {printing.list_some(pods)}"


def _check_header(
    path: Path, columns: list[str], needed: Collection[str], optional: Collection[str]
) -> None:
    where = f"{path.name}, line 1"
    allowed = f"needed are {', '.join(needed)}"
    if optional:
        allowed += f"; allowed besides {', '.join(optional)}"
    for name in columns:
        if name not in needed and name not in optional:
            raise BadInput(f'{where}, column "{name}"', f"is unknown: {allowed}")
        if columns.count(name) > 1:
            raise BadInput(f"{where}, column {name}", "appears more than once")
    for name in needed:
        if name not in columns:
            raise BadInput(f"{where}, column {name}", f"is missing: {allowed}")
