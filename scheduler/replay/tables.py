"""CSV files, plain or compressed, read row by row. Every mistake is named with its file, line and column."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from scheduler.api import quantities
from scheduler.errors import BadInput

MIB = 2**20
# Far beyond any machine, and small enough that sums over a trace stay within int64.
AMOUNT_MAX = 2**36
_ENDINGS = (".csv", ".csv.gz", ".csv.xz")
_UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a file; the readers of its columns raise ``BadInput``."""

    path: Path
    line: int
    cells: dict[str, str]

    def bad(self, column: str, problem: str) -> BadInput:
        """The error that names this line and ``column``."""
        return BadInput(f"{self.path.name}, line {self.line}, column {column}", problem)

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
        return self._quantity(column, quantities.milli, 1)

    def mebibytes(self, column: str) -> int:
        """MiB, rounded up, of a Kubernetes quantity with its suffix: ``384Gi``, ``512Mi``; none is 0."""
        value = self.cells.get(column) or "0"
        if value.strip("0.") and value[-1].isdigit():
            raise self.bad(column, f'"{value}" has no unit: write for example {value}Mi or 16Gi')
        return self._quantity(column, quantities.value, MIB)

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
            raise self.bad(column, f'"{self.cells[column]}" is beyond any machine')
        return amount


def find(folder: Path, stem: str) -> Path | None:
    """The first of ``stem``.csv, .csv.gz and .csv.xz that is in ``folder``."""
    found = (folder / f"{stem}{ending}" for ending in _ENDINGS)
    return next((path for path in found if path.is_file()), None)


def rows(path: Path, needed: Collection[str], optional: Collection[str]) -> Iterator[Row]:
    """All lines below the header, cells without blanks around them.

    Raises:
        BadInput: unreadable, a column missing or unknown, or a line with another number of cells.
    """
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header, needed, optional)
        for cells in reader:
            if len(cells) == len(header):
                stripped = (cell.strip() for cell in cells)
                yield Row(path, reader.line_num, dict(zip(header, stripped, strict=True)))
            elif cells:
                raise BadInput(
                    f"{path.name}, line {reader.line_num}",
                    f"has {len(cells)} cells where the header has {len(header)}",
                )
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}", str(error)) from error


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        unpack = _UNPACK.get(path.suffix)
        return (unpack(content) if unpack else content).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error) as error:
        raise BadInput(str(path), f"cannot be read: {error}") from error


def _check_header(
    path: Path, header: list[str], needed: Collection[str], optional: Collection[str]
) -> None:
    where = f"{path.name}, line 1"
    allowed = f"needed are {', '.join(needed)}"
    if optional:
        allowed += f"; allowed besides {', '.join(optional)}"
    for name in header:
        if name not in needed and name not in optional:
            raise BadInput(f'{where}, column "{name}"', f"is unknown: {allowed}")
        if header.count(name) > 1:
            raise BadInput(f"{where}, column {name}", "is there more than once")
    for name in needed:
        if name not in header:
            raise BadInput(f"{where}, column {name}", f"is missing: {allowed}")
