"""Work in several processes on this machine; all of them end with the process that started them.

Ctrl-C goes to every process of a terminal. Those that work never get it, so that none of them prints where it
was; their parent ends them. If it ends without doing so, they notice.
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
    """Something large that every process is given, packed once, in memory that all of them see.

    What a process is started with goes through a pipe. When it is more than a pipe holds, the process that starts the
    process stands still until that one has imported what it takes to read it, and so for each in turn: Ctrl-C,
    which waits until all are started, would wait for all those imports.
    """

    def __init__(self, content: Content) -> None:
        packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
        self._memory = SPAWN.RawArray("B", len(packed))
        memoryview(self._memory).cast("B")[:] = packed

    def open(self) -> Content:
        """The content, anew each time."""
        return cast("Content", pickle.loads(self._memory))  # noqa: S301 - packed by ourselves


def each(
    work: Callable[[Given], Answer],
    given: Iterable[Given],
    n_processes: int,
    *,
    prepare: Callable[[], None],
    look: Callable[[], None],
) -> Generator[tuple[int, Future[Answer]], None, None]:
    """Do the same work for each given item; closing the generator early ends the processes.

    Args:
        work: a function of a module, as everything that goes to another process.
        given: what to work on.
        n_processes: how many at once.
        prepare: what a process does before its first work; what is large in it is a Parcel.
        look: called here several times a second.

    Yields:
        Which of the given is done, and its answer, or the error with which its process ended.
    """
    with _pool(n_processes, prepare) as pool:
        with _undisturbed():
            which = {pool.submit(work, one): i for i, one in enumerate(given)}
        waiting = set(which)
        while waiting:
            done, waiting = wait(waiting, _LOOK_SECONDS, FIRST_COMPLETED)
            look()
            for future in done:
                yield which[future], future


@contextmanager
def _pool(n_processes: int, prepare: Callable[[], None]) -> Iterator[ProcessPoolExecutor]:
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
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits, and never comes to processes that are started meanwhile: they inherit what is blocked."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # It would let Ctrl-C through again once it has started its own process.
    resource_tracker.ensure_running()
    came: list[Any] = []
    # Of this thread alone is it blocked; what comes by another one is put off.
    handler = signal.signal(signal.SIGINT, lambda *_: came.append(None))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt
