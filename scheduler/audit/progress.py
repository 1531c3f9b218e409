"""What is being done, on a terminal, once it takes longer than two seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

_AFTER_SECONDS = 2.0


@contextmanager
def shown(
    console: Console | None = None, after_seconds: float = _AFTER_SECONDS
) -> Iterator[Callable[[str], None]]:
    """Gives what is to be told how far the work has come; on standard error, and only if that is a terminal."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    status = console.status("")
    timer = threading.Timer(after_seconds, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield status.update
    finally:
        timer.cancel()
        # It may just be starting.
        timer.join()
        status.stop()
