"""What is being done, on a terminal, once it takes longer than a moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_PATIENCE_SECONDS = 2.0


class Tell(Protocol):
    """Takes what is being done, and how much of how much is; a total of None is not known."""

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> None:
        """Something goes on."""


@contextmanager
def shown(console: Console, *, patience_seconds: float = _PATIENCE_SECONDS) -> Iterator[Tell]:
    """Within it, progress is shown and in the end wiped away; nothing off a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=None)

    def tell(what: str, done: int = 0, total: int | None = None) -> None:
        bar.update(task, description=what, completed=done, total=total)

    if not console.is_terminal:
        yield tell
        return
    timer = threading.Timer(patience_seconds, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
