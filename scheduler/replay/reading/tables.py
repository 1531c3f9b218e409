"""CSV files, plain or compressed, read row by row. Every mistake is named with its file, line and column."""

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
# Far beyond any machine, and small enough that sums over a trace stay within int64.
AMOUNT_MAX = 2**36
GPUS_MAX = 64  # of one node
# Seconds: three thousand years. A time of Unix is one, in milliseconds it is not.
TIME_MAX = 10**11
# Times are kept in parts of a second that a double holds exactly, so that what leaves makes room for what
# comes at that very moment.
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

    def bad(self, column: str, problem: str) -> BadInput:
        """The error that names this line and ``column``."""
        return BadInput(self.place(column), problem)

    def place(self, column: str) -> str:
        """The place of a cell, for an error."""
        return f"{self.path.name}, line {self.line}, column {column}"

    def text(self, column: str) -> str:
        """The cell, never empty."""
        value = self.cells[column]
        if not value:
            raise self.bad(column, "is empty")
        return value

    def integer(self, column: str, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``."""
        value = self.cells[column]  # int() would also take 1_000 and digits of other scripts
        digits = value.isascii() and value.isdigit() and len(value) <= len(str(AMOUNT_MAX))
        if not digits or not low <= int(value) <= high:
            raise self.bad(column, f'"{value[:64]}" is not a whole number from {low} to {high}')
        return int(value)

    def cores(self, column: str) -> int:
        """1/1000 core, rounded up, of a Kubernetes quantity: ``12``, ``0.5`` or ``500m``."""
        return self._quantity(column, quantities.read_milli, 1)

    def mebibytes(self, column: str) -> int:
        """MiB, rounded up, of a Kubernetes quantity with its suffix: ``384Gi``, ``512Mi``; none is 0."""
        value = self.cells.get(column) or "0"
        if value.strip("0.") and value[-1].isdigit():
            raise self.bad(column, f'"{value}" has no unit: write for example {value}Mi or 16Gi')
        return self._quantity(column, quantities.read_value, MIB)

    def share(self, column: str) -> int:
        """Milli of a share of one GPU: above 0 to 1, in thousandths; empty is a whole GPU."""
        allowed = "is not a share of one GPU: write 0.001 to 1, or nothing for a whole GPU"
        value = self.cells.get(column) or "1"
        try:
            milli = round(float(value) * 1000)
        except (ValueError, OverflowError) as error:
            raise self.bad(column, f'"{value}" {allowed}') from error
        if not 1 <= milli <= 1000:
            raise self.bad(column, f'"{value}" {allowed}')
        return milli

    def seconds(self, column: str) -> float:
        """A time in seconds from 0, to 1/1024 of a second."""
        value = self.cells[column]
        time = float(value) if _TIME.fullmatch(value) else math.inf
        if time > TIME_MAX:
            raise self.bad(column, f'"{value[:64]}" is not a time from 0 to {TIME_MAX} seconds')
        return round(time * TICKS) / TICKS

    def models(self, column: str) -> tuple[str, ...]:
        """GPU models joined with a bar, sorted, each once; empty is any model."""
        value = self.cells.get(column, "")
        names = tuple(sorted(set(value.split("|")))) if value else ()
        if "" in names:
            raise self.bad(column, f'"{value}" is not a list of GPU models joined with |')
        return names

    def _quantity(self, column: str, read: Callable[[str], int], unit: int) -> int:
        try:
            amount = -(-read(self.cells.get(column) or "0") // unit)
        except quantities.BadQuantity as error:
            raise self.bad(column, str(error)) from error
        if amount > AMOUNT_MAX:
            raise self.bad(
                column, f'"{self.cells[column]}" is too large: at most {AMOUNT_MAX} are allowed'
            )
        return amount


def find(folder: Path, stem: str) -> Path | None:
    """The first of ``stem``.csv, .csv.gz and .csv.xz that is in ``folder``."""
    found = (folder / f"{stem}{ending}" for ending in _ENDINGS)
    return next((path for path in found if path.is_file()), None)


def check_share(row: Row, gpus: int, milli: int, column: str) -> None:
    """Refuse a share of several GPUs.

    Raises:
        BadInput: names the line and ``column``.
    """
    if gpus > 1 and milli < WHOLE:
        raise row.bad(
            column,
            f'"{row.cells[column]}": a share is allowed with 1 GPU only, and {gpus} are requested',
        )


def header(path: Path) -> list[str]:
    """The names of the columns.

    Raises:
        BadInput: unreadable.
    """
    return [name.strip() for name in next(csv.reader(io.StringIO(_text(path), newline="")), [])]


def rows(
    path: Path, needed: Collection[str], optional: Collection[str], prefix: str | None = None
) -> Iterator[Row]:
    """All lines below the header, cells without blanks around them.

    Args:
        path: the file.
        needed: columns that must be there.
        optional: columns that may be.
        prefix: any column that begins so may be there too; None: there are no such.

    Raises:
        BadInput: unreadable, a column missing or unknown, or a line with another number of cells.
    """
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        columns = [name.strip() for name in next(reader, [])]
        _check_header(path, columns, needed, (*optional, *_named(columns, prefix)))
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


def _named(columns: list[str], prefix: str | None) -> list[str]:
    """The columns that begin so, each once; without any, how one is written."""
    if prefix is None:
        return []
    return list(dict.fromkeys(n for n in columns if n.startswith(prefix))) or [f"{prefix}NAME"]


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        unpack = _UNPACK.get(path.suffix)
        return (unpack(content) if unpack else content).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error) as error:
        raise BadInput(str(path), f"cannot be read: {error}") from error


def gone_before(file: str, pods: Sequence[str], stay: str) -> Iterator[str]:
    """That pods of a file leave before they arrive, and how long they run instead; nothing without such pods."""
    if n := len(pods):
        which, it, its = (
            ("pod leaves before it arrives", "it", "its")
            if n == 1
            else ("pods leave before they arrive", "them", "their")
        )
        yield f"{file}: {n:,} {which}; the replay lets {it} run for {stay} from {its} arrival: {printing.some(pods)}"


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
