"""The end of a process at a signal that comes before there is anything to finish or to give back."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def end_at_signals() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the process at once, also while it imports or the main loop stands still.

    The default handlers are not enough: they do not end the first process of a container. An exception is not, either: a
    library that is being imported may catch it, and the process would go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = [signal.signal(number, _end_process) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, handlers, strict=True):
            signal.signal(number, handler)


def _end_process(number: int, _frame: object) -> None:
    # These processes compile kernels.
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(128 + number)
