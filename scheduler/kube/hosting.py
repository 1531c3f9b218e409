"""The process: how the scheduler starts and stops, and kopf beside it, which watches the rare kinds."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from scheduler.kube.client import Access
from scheduler.kube.watch.rare import Rare

# kopf gets so long to end its watches.
_END_SECONDS = 5.0
# No longer than this do the watches of the rare kinds wait for the lists of the others.
_LISTS_SECONDS = 10.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
Act = Callable[[], Awaitable[object]]


@contextmanager
def end_at_signals() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the process at once, while the main loop stands still and would notice them late.

    This is for the time before there is anything to finish or to give back. The default handlers are not enough: they do
    not end the first process of a container.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = [signal.signal(number, _end_process) for number in _SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            signal.signal(number, handler)


def _watch_signals(stop_flag: asyncio.Event) -> None:
    """Let each signal set the flag, as often as it comes."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop_flag.set)


def _end_process(number: int, _frame: object) -> None:
    # These processes compile kernels.
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(128 + number)


async def host(
    access: Access,
    get_rare: Callable[[], Rare],
    *,
    start: Act,
    wait_for_first_decisions: Act,
    read_again: Act,
    stop: Act,
    stop_flag: asyncio.Event,
) -> None:
    """Run until SIGTERM or until the flag is set.

    Args:
        access: the API server, and credentials for kopf.
        get_rare: gives what kopf watches; called after the start.
        start: called first; cancelled when the flag is set meanwhile.
        wait_for_first_decisions: called before kopf is imported, but not for long; cancelled as well.
        read_again: called before kopf is started again after an error: it is not known what kopf has missed.
        stop: called when the flag is set.
        stop_flag: a part of the process that must end sets it.

    Raises:
        Exception: the start failed, or the task that watches over kopf did.
    """
    _watch_signals(stop_flag)
    if not await _finish_act(start, stop_flag):
        return
    finish = partial(_finish_act, stop_flag=stop_flag)
    watching = asyncio.create_task(
        _watch_rare(
            access,
            get_rare(),
            partial(finish, wait_for_first_decisions),
            partial(finish, read_again),
            stop_flag,
        )
    )
    stopping = asyncio.create_task(stop_flag.wait())
    try:
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop_flag.set()
        await stop()
        await asyncio.wait({watching, stopping}, timeout=_END_SECONDS)
    if watching.done():
        watching.result()


async def _finish_act(act: Act, stop_flag: asyncio.Event) -> bool:
    """Let an act come to its end, or cancel it when the flag is set; return whether it has come to its end."""
    acting = asyncio.ensure_future(act())
    stopping = asyncio.create_task(stop_flag.wait())
    try:
        await asyncio.wait({acting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if acting.done():
            acting.result()
            return True
        return False
    finally:
        for task in (acting, stopping):
            task.cancel()
        await asyncio.gather(acting, stopping, return_exceptions=True)


async def _watch_rare(
    access: Access,
    rare: Rare,
    wait_for_first_decisions: Act,
    read_again: Act,
    stop_flag: asyncio.Event,
) -> None:
    # Importing kopf takes the interpreter a third of a second, for which the first decisions would wait.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LISTS_SECONDS):
            await wait_for_first_decisions()
    if stop_flag.is_set():
        return
    kopf_host = await asyncio.to_thread(importlib.import_module, "scheduler.kube.kopf_host")
    await kopf_host.keep_kopf(access, rare, read_again, stop_flag)
