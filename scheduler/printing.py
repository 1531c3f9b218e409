"""SHELL: how commands print: tables, wrapped prose, and files that are known to be writable.

Prose has at most 80 columns everywhere, on standard error too, because people read it.

In a pipe or a file each row of a table is one whole line: ``grep``, ``awk`` or a ticket has no use for a row that was
folded or cut at the edge of a terminal that is not there.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from rich.console import Console

from scheduler.errors import BadInput, make_visible

# Of what ``-o json`` and ``-o yaml`` print, see docs/schemas: another when a key goes, or means something else.
SCHEMA_VERSION = 1
# Columns of prose where there is no edge of a terminal.
PROSE = 80
# Columns; rich has to be told of an edge.
_WIDE = 10_000
# In sentences; somebody will copy it.
_COMMAND = re.compile(r"`[^`]*`")
# Stands for a blank at which no line ends.
_JOINED = "\0"
_PADDING = re.compile(r"[ \t]+(?=\n)")


def make_console(*, stderr: bool = False) -> Console:
    """Return standard output, or standard error, as a console: a terminal folds rows at its edge, all else has whole rows."""
    file = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr) if file.isatty() else _make_edgeless(file)


def print_to_text(show: Callable[[Console], None]) -> str:
    """Return what ``show`` prints, every row on one line, for a file."""
    lines = io.StringIO()
    show(_make_edgeless(lines, force_terminal=False))
    return lines.getvalue()


def complain(text: str, file: IO[str] | None = None) -> None:
    """Write what is wrong: each line in 80 columns, or those of a terminal; what continues it is indented.

    Commands to copy stay on one line.

    Args:
        text: what is wrong, a sentence a line.
        file: where to write; None is standard error.
    """
    file = file or sys.stderr
    columns = shutil.get_terminal_size().columns if file.isatty() else PROSE
    for line in text.splitlines():
        whole = _COMMAND.sub(lambda found: found[0].replace(" ", _JOINED), line)
        said = wrap_prose(whole, min(PROSE, columns), hanging="  ").replace(_JOINED, " ")
        file.write(f"{said}\n")


def wrap_prose(prose: str, width: int, indent: str = "", hanging: str | None = None) -> str:
    """Wrap sentences in lines of at most ``width`` columns; no word is broken, because half of a name is another name.

    Args:
        prose: the sentences.
        width: columns.
        indent: before each line.
        hanging: before each line but the first, if it is not ``indent``.
    """
    return textwrap.fill(
        prose,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )


def make_printable(value: Any) -> Any:
    """Return the same value with every text fit for a terminal: anything may stand in a name."""
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, Mapping):
        return {make_printable(key): make_printable(inner) for key, inner in value.items()}
    return [make_printable(inner) for inner in value] if isinstance(value, list) else value


def add_version(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Add the version of the form to an answer for programs."""
    return {"schemaVersion": SCHEMA_VERSION, **answer}


def count_nouns(number: int, noun: str) -> str:
    """Write how many of a thing, as ``1 node`` and ``2 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def list_some(words: Sequence[str], most: int = 5) -> str:
    """List the first few words, and say how many more there are."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")


def check_writable(option: str, path: Path | None) -> None:
    """Find out before the work whether its result can be written; nothing is left behind.

    Args:
        option: names the file on the command line, as ``--output-file``.
        path: the file, None for none.

    Raises:
        BadInput: nothing can be written there.
    """
    if path is None:
        return
    try:
        was_there = path.exists()
        if was_there and not (path.is_file() or path.is_dir()):
            return  # a pipe or a device: to open it is to begin
        with path.open("ab"):
            pass
        if not was_there:
            path.unlink()
    except OSError as error:
        raise BadInput(option, f"{path} cannot be written: {error.strerror}") from error


def write_file(option: str, path: Path, content: str) -> None:
    """Write a file as UTF-8.

    Raises:
        BadInput: it cannot be written; names the option.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise BadInput(option, f"{path} cannot be written: {error.strerror}") from error


def is_terminal(screen: Console) -> bool:
    """Whether a person looks at the screen, who can be shown what goes away again."""
    # Not what rich says, which takes a pipe for a terminal when colours are asked for.
    return screen.file.isatty() and not screen.is_dumb_terminal


def _make_edgeless(file: IO[str], *, force_terminal: bool | None = None) -> Console:
    return Console(
        file=cast("IO[str]", _Unpadded(file)), width=_WIDE, force_terminal=force_terminal
    )


class _Unpadded(io.TextIOBase):
    """A file that gets lines without the blanks that fill up the last column."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the file, by which rich knows which boxes can be drawn."""
        return getattr(self._file, "encoding", None) or "utf-8"

    def write(self, content: str) -> int:
        """Write whole lines, or parts of one."""
        return self._file.write(_PADDING.sub("", content))

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()
