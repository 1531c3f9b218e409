"""SHELL: progress on standard error: drawn on a terminal; in a pipe or a file one line if the work takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from scheduler import printing

_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 2.0
_MIB = 1 << 20
# How the line off a terminal begins.
PREFIX = "evenkeel: "


class Tell(Protocol):
    """Takes what is being done, and how much of how much is; a total of None is not known."""

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> None:
        """Something goes on."""


@contextmanager
def stages(
    screen: Console | None = None, *, patience_seconds: float | None = None
) -> Iterator[Tell]:
    """What is being done, once it takes longer than a moment: wiped away in the end, and one line off a terminal.

    Args:
        screen: where to draw; None is standard error.
        patience_seconds: for so long nothing is shown; None for as long as people wait without a word.
    """
    screen = screen or printing.console(stderr=True)
    patience_seconds = _PATIENCE_SECONDS if patience_seconds is None else patience_seconds
    if not printing.is_terminal(screen):
        with _line(screen, patience_seconds) as tell_line:
            yield tell_line
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=screen, transient=True)
    task = bar.add_task("", total=None)

    def tell(what: str, done: int = 0, total: int | None = None) -> None:
        bar.update(task, description=what, completed=done, total=total)

    try:
        with _later(patience_seconds, bar.start):
            yield tell
    finally:
        bar.stop()


@contextmanager
def _later(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Do something after a while, in a thread of its own, unless the work is done before."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def _line(screen: Console, patience_seconds: float) -> Iterator[Tell]:
    """One line, after a while, of what is being done then: whoever reads a log need not read how it went on."""
    told, is_due = "", False

    def tell(what: str, done: int = 0, total: int | None = None) -> None:
        nonlocal told
        told = what if total is None else f"{what}, {done:,} of {total:,}"
        if is_due:
            write()

    def write() -> None:
        nonlocal is_due
        # Before anything is told there is nothing to say: the first that is told is said at once.
        is_due = not told
        if is_due:
            return
        # Nobody may be there to read it any more, and that is no trouble.
        with suppress(OSError, ValueError):
            printing.complain(f"{PREFIX}{told} ...", screen.file)
            screen.file.flush()

    with _later(patience_seconds, write):
        yield tell


@contextmanager
def bar(what: str, total: int, screen: Console | None = None) -> Iterator[Progressed]:
    """A bar on standard error that goes when the work is done; off a terminal one line, if it takes long.

    Args:
        what: is worked on, as ``runs``.
        total: how many there are.
        screen: where to draw; None is standard error.

    Yields:
        What to call with how many are done by now, in parts of one too.
    """
    screen = screen or printing.console(stderr=True)
    if not printing.is_terminal(screen):
        with _line(screen, _PATIENCE_SECONDS) as tell:
            tell(what, 0, total)
            yield lambda done: tell(what, int(done), total)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]} of {task.total}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as drawn:
        task = drawn.add_task(what, total=total, done=0)
        yield lambda done: drawn.update(task, completed=done, done=int(done))


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
    """A file to be read to its end, with a bar on standard error, or a line if that is no terminal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if not file.seekable():  # a pipe, of which nobody knows how long it is
            yield file
            return
        n_mib = max(1, path.stat().st_size // _MIB)
        with (
            bar(f"MiB of {path.name}", n_mib) as progressed,
            often(lambda: progressed(file.tell() / _MIB)),
        ):
            yield file


Progressed = Callable[[float], None]
