"""The process: how the scheduler starts and stops, and kopf beside it, which watches the rare kinds."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from scheduler.kube.client import Access
from scheduler.kube.watch.rare import Rare

# kopf gets so long to end its watches.
_END_SECONDS = 5.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
Act = Callable[[], Awaitable[None]]


@contextmanager
def end_at_signals() -> Iterator[None]:
    """While the main loop stands still, SIGTERM and Ctrl-C end the process: the loop would hear them late.

    For the time before there is anything to finish or to give back. The default would not do: the first process
    of a container is not ended by it.
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


def _hear_signals(stop_flag: asyncio.Event) -> None:
    """A signal sets the flag, as often as it comes."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop_flag.set)


def _end_process(number: int, _frame: object) -> None:
    # Those that compile kernels.
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(128 + number)


async def host(
    access: Access,
    get_rare: Callable[[], Rare],
    *,
    start: Act,
    again: Act,
    stop: Act,
    stop_flag: asyncio.Event,
) -> None:
    """Run until SIGTERM or until the flag is set.

    Args:
        access: how kopf is let in.
        get_rare: gives what kopf watches; called after the start.
        start: called first; cancelled when the flag is set meanwhile.
        again: called before kopf is started again after an error: nobody knows what it has missed.
        stop: called when the flag is set.
        stop_flag: set by whoever wants the end.

    Raises:
        Exception: what the start met, or what ended the watch over kopf.
    """
    _hear_signals(stop_flag)
    if not await _finish_act(start, stop_flag):
        return
    watching = asyncio.create_task(_watch_rare(access, get_rare(), again, stop_flag))
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
    """Let an act come to its end, or cancel it when the flag is set before; whether it has come to its end."""
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


async def _watch_rare(access: Access, rare: Rare, again: Act, stop_flag: asyncio.Event) -> None:
    # Nobody waits for the fifth of a second that it takes to import kopf.
    kopf_host = await asyncio.to_thread(importlib.import_module, "scheduler.kube.kopf_host")
    await kopf_host.keep_kopf(access, rare, partial(_finish_act, again, stop_flag), stop_flag)
