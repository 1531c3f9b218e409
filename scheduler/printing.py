"""SHELL: how commands print: tables that are whole off a terminal, progress on one, files known to be writable.

Whoever reads a pipe or a file reads lines, and a line that was folded or cut at the edge of a terminal that is
not there is of no use to ``grep``, ``awk`` or a ticket.
"""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from scheduler.errors import BadInput

# Columns; rich has to be told of an edge.
_WIDE = 10_000
_LOOK_SECONDS = 0.2
_MIB = 1 << 20
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


@contextmanager
def progress(what: str, total: int, screen: Console | None = None) -> Iterator[Progressed]:
    """A bar on standard error that goes when the work is done; none at all off a terminal.

    Args:
        what: is worked on, as ``runs``.
        total: how many there are.
        screen: where to draw; None is standard error.

    Yields:
        What to call with how many are done by now, in parts of one too.
    """
    screen = screen or console(stderr=True)
    if not _is_terminal(screen):
        yield lambda _: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]} of {task.total}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(what, total=total, done=0)
        yield lambda done: bar.update(task, completed=done, done=int(done))


@contextmanager
def often(look: Callable[[], None]) -> Iterator[None]:
    """Call something a few times a second, in a thread of its own, while work goes on."""
    is_over = threading.Event()

    def turn() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            look()

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def read(path: Path) -> Iterator[IO[bytes]]:
    """A file to be read to its end, with a bar on standard error if that is a terminal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if not file.seekable():  # a pipe, of which nobody knows how long it is
            yield file
            return
        n_mib = max(1, path.stat().st_size // _MIB)
        with (
            progress("MiB", n_mib) as progressed,
            often(lambda: progressed(file.tell() / _MIB)),
        ):
            yield file


Progressed = Callable[[float], None]


def _is_terminal(screen: Console) -> bool:
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
