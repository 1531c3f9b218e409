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
    """Is told what is being done, and how much of it is done; a total of None is not known."""

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> None:
        """Tell what goes on."""


@contextmanager
def show_stages(
    screen: Console | None = None, *, patience_seconds: float | None = None
) -> Iterator[Tell]:
    """Show what is being done if it takes longer than a moment: on a terminal until it is done, elsewhere in one line.

    Args:
        screen: where to draw; None is standard error.
        patience_seconds: how long nothing is shown; None for as long as people usually wait without a word.
    """
    screen = screen or printing.make_console(stderr=True)
    patience_seconds = _PATIENCE_SECONDS if patience_seconds is None else patience_seconds
    if not printing.is_terminal(screen):
        with _show_line(screen, patience_seconds) as tell_line:
            yield tell_line
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=screen, transient=True)
    task = bar.add_task("", total=None)

    def tell(what: str, done: int = 0, total: int | None = None) -> None:
        bar.update(task, description=what, completed=done, total=total)

    try:
        with _act_later(patience_seconds, bar.start):
            yield tell
    finally:
        bar.stop()


@contextmanager
def _act_later(seconds: float, act: Callable[[], None]) -> Iterator[None]:
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
def _show_line(screen: Console, patience_seconds: float) -> Iterator[Tell]:
    """Write one line, after a while, of what is being done then: a log need not have how it went on."""
    told, is_due = "", False

    def tell(what: str, done: int = 0, total: int | None = None) -> None:
        nonlocal told
        told = what if total is None else f"{what}, {done:,} of {total:,}"
        if is_due:
            write()

    def write() -> None:
        nonlocal is_due
        # If nothing was told yet, there is nothing to say; what is told first is then written at once.
        is_due = not told
        if is_due:
            return
        # It is no trouble if nobody is there to read it any more.
        with suppress(OSError, ValueError):
            printing.complain(f"{PREFIX}{told} ...", screen.file)
            screen.file.flush()

    with _act_later(patience_seconds, write):
        yield tell


@contextmanager
def show_bar(what: str, total: int, screen: Console | None = None) -> Iterator[Progressed]:
    """Show a bar on standard error until the work is done; off a terminal write one line, if the work takes long.

    Args:
        what: what is worked on, as ``runs``.
        total: how many there are.
        screen: where to draw; None is standard error.

    Yields:
        A function to call with how many are done by now, fractions too.
    """
    screen = screen or printing.make_console(stderr=True)
    if not printing.is_terminal(screen):
        with _show_line(screen, _PATIENCE_SECONDS) as tell:
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
def look_often(look: Callable[[], None]) -> Iterator[None]:
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
def read_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be read to its end, and show on standard error how far the reading is.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if not file.seekable():  # a pipe, of which nobody knows how long it is
            yield file
            return
        n_mib = max(1, path.stat().st_size // _MIB)
        with (
            show_bar(f"MiB of {path.name}", n_mib) as progressed,
            look_often(lambda: progressed(file.tell() / _MIB)),
        ):
            yield file


Progressed = Callable[[float], None]
