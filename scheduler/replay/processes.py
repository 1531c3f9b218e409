"""Runs work in several processes on this machine; all of them end with the process that started them.

Ctrl-C goes to every process of a terminal. Worker processes block it, so that none of them prints a traceback; their
parent ends them. If the parent ends without doing so, the workers notice.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, Generic, TypeVar, cast

Given = TypeVar("Given")
Answer = TypeVar("Answer")
Content = TypeVar("Content")

_LOOK_SECONDS = 0.2
# A fork would copy the locks of threads that numba or a progress bar may hold.
SPAWN = multiprocessing.get_context("spawn")


class Parcel(Generic[Content]):
    """Something large that every process gets, packed once, in memory that all processes see.

    The arguments of a new process go through a pipe. If they are more than a pipe holds, the parent waits until the
    new process has imported everything that is needed to read them, and so for each process in turn. Ctrl-C waits until
    all processes are started, so it would wait for all these imports.
    """

    def __init__(self, content: Content) -> None:
        packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        self._memory = SPAWN.RawArray("B", len(packed))
        memoryview(self._memory).cast("B")[:] = packed

    def open(self) -> Content:
        """Unpack the content, anew each time."""
        return cast("Content", pickle.loads(self._memory))  # noqa: S301 - packed by ourselves


def run_each(
    work: Callable[[Given], Answer],
    given: Iterable[Given],
    n_processes: int,
    *,
    prepare: Callable[[], None],
    look: Callable[[], None],
) -> Generator[tuple[int, Future[Answer]], None, None]:
    """Do the same work for each given item; closing the generator early ends the processes.

    Args:
        work: a function of a module, because everything for another process must be found by name.
        given: the items to work on.
        n_processes: how many processes work at once.
        prepare: is called in a process before its first work; large arguments must be in a Parcel.
        look: is called in this process several times a second.

    Yields:
        The index of an item that is done, and its answer, or the error with which its process ended.
    """
    with _open_pool(n_processes, prepare) as pool:
        with _hold_interrupts():
            which = {pool.submit(work, one): i for i, one in enumerate(given)}
        waiting = set(which)
        while waiting:
            done, waiting = wait(waiting, _LOOK_SECONDS, FIRST_COMPLETED)
            look()
            for future in done:
                yield which[future], future


@contextmanager
def _open_pool(n_processes: int, prepare: Callable[[], None]) -> Iterator[ProcessPoolExecutor]:
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        n_processes, mp_context=SPAWN, initializer=_begin, initargs=(prepare,)
    )
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(prepare: Callable[[], None]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back meanwhile, and for good in processes that are started meanwhile: they inherit blocked signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Otherwise the tracker would unblock Ctrl-C when it starts its own process.
    resource_tracker.ensure_running()
    came: list[Any] = []
    # Signals are blocked for this thread only; a Ctrl-C that another thread gets is put off.
    handler = signal.signal(signal.SIGINT, lambda *_: came.append(None))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt
