"""SHELL: how commands print: tables that are whole off a terminal, prose that is wrapped, files known to be writable.

Prose has at most 80 columns everywhere, on standard error too.

Whoever reads a pipe or a file reads lines, and a row that was folded or cut at the edge of a terminal that is
not there is of no use to ``grep``, ``awk`` or a ticket. Sentences are for people, everywhere.
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

from scheduler.errors import BadInput, visible

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


def console(*, stderr: bool = False) -> Console:
    """Standard output, or standard error: rows are folded at the edge of a terminal, and whole elsewhere."""
    file = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr) if file.isatty() else _edgeless(file)


def text(show: Callable[[Console], None]) -> str:
    """What ``show`` prints, every row on one line, for a file."""
    lines = io.StringIO()
    show(_edgeless(lines, force_terminal=False))
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
        said = wrapped(whole, min(PROSE, columns), hanging="  ").replace(_JOINED, " ")
        file.write(f"{said}\n")


def wrapped(prose: str, width: int, indent: str = "", hanging: str | None = None) -> str:
    """Sentences in lines of at most ``width`` columns; no word is broken, for half of a name is another name.

    Args:
        prose: the sentences.
        width: columns.
        indent: before each line.
        hanging: before each line but the first, if that is another.
    """
    return textwrap.fill(
        prose,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )


def shown(value: Any) -> Any:
    """The same with every text fit for a terminal: names are what their writers made them."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {shown(key): shown(inner) for key, inner in value.items()}
    return [shown(inner) for inner in value] if isinstance(value, list) else value


def versioned(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer for programs, which must know in which form it is."""
    return {"schemaVersion": SCHEMA_VERSION, **answer}


def count_nouns(number: int, noun: str) -> str:
    """How many of a thing, as ``1 node`` and ``2 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(words: Sequence[str], most: int = 5) -> str:
    """The first few, and how many more there are."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")


def check_writable(option: str, path: Path | None) -> None:
    """Find out before the work, not after, that its result has no place; nothing is left behind.

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


def write(option: str, path: Path, content: str) -> None:
    """Write a file as UTF-8.

    Raises:
        BadInput: it cannot be written; names the option.
    """
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise BadInput(option, f"{path} cannot be written: {error.strerror}") from error


def is_terminal(screen: Console) -> bool:
    """Whether somebody looks at it, who can be shown what goes away again."""
    # Not what rich says, which takes a pipe for a terminal when colours are asked for.
    return screen.file.isatty() and not screen.is_dumb_terminal


def _edgeless(file: IO[str], *, force_terminal: bool | None = None) -> Console:
    return Console(
        file=cast("IO[str]", _Unpadded(file)), width=_WIDE, force_terminal=force_terminal
    )


class _Unpadded(io.TextIOBase):
    """Lines without the blanks that fill the last column up."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the file, by which rich knows which boxes can be drawn."""
        return getattr(self._file, "encoding", None) or "utf-8"

    def write(self, content: str) -> int:
        """Write whole lines, or parts of one."""
        return self._file.write(_PADDING.sub("", content))

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()
