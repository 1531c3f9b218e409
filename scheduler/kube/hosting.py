"""The process: how the scheduler starts and stops beside kopf, which watches the rare kinds.

kopf has a thread and an event loop of its own. It ends at answers that it does not expect, such as a watch that is
refused with 410, and then cancels every task of its loop that it did not find there at its start. It is started again;
the scheduler goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import kopf
import structlog

from scheduler.kube.client import Access, backoff
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.watch.rare import Rare

# Whoever has run for so long has recovered from what ended the run before.
_RECOVERED_SECONDS = 60.0
# kopf gets so long to end its watches.
_END_SECONDS = 5.0
_log = structlog.get_logger("evenkeel")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
Act = Callable[[], Awaitable[None]]


@contextmanager
def ends_at_once() -> Iterator[None]:
    """While the main loop stands still, SIGTERM and Ctrl-C end the process: the loop would hear them late.

    For the time before there is anything to finish or to give back. The default would not do: the first process
    of a container is not ended by it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = [signal.signal(number, _end) for number in _SIGNALS]
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


def _end(number: int, _frame: object) -> None:
    # Those that compile kernels.
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(128 + number)


async def host(
    access: Access, rare: Rare, *, start: Act, again: Act, stop: Act, stop_flag: asyncio.Event
) -> None:
    """Run until SIGTERM or until the flag is set.

    Args:
        access: how kopf is let in.
        rare: what kopf watches.
        start: called first; cancelled when the flag is set meanwhile.
        again: called before kopf is started again after an error: nobody knows what it has missed.
        stop: called when the flag is set.
        stop_flag: set by whoever wants the end.

    Raises:
        Exception: what the start met, or what ended the watch over kopf.
    """
    _hear_signals(stop_flag)
    if not await _finish(start, stop_flag):
        return
    watching = asyncio.create_task(_keep_kopf(access, rare, again, stop_flag))
    stopping = asyncio.create_task(stop_flag.wait())
    try:
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop_flag.set()
        await stop()
        await asyncio.wait({watching, stopping}, timeout=_END_SECONDS)
    if watching.done():
        watching.result()


async def _finish(act: Act, stop_flag: asyncio.Event) -> bool:
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


async def _keep_kopf(access: Access, rare: Rare, again: Act, stop_flag: asyncio.Event) -> None:
    """Run kopf until the flag is set, and start it again whenever it ends before."""
    thread = LoopThread("kopf")
    registry = _make_registry(access, rare)
    for name in ("running", "orchestration"):
        logging.getLogger(f"kopf._core.reactor.{name}").addFilter(_is_news)
    loop = asyncio.get_running_loop()
    attempt = 0
    while not stop_flag.is_set():
        began = loop.time()
        error = await _run_kopf(thread, registry, stop_flag)
        if stop_flag.is_set():
            break
        attempt = 0 if loop.time() - began > _RECOVERED_SECONDS else attempt + 1
        wait = backoff(attempt, first=1.0, most=30.0)
        _log.warning(
            "the watch of policies and namespaces ended and starts again; their changes arrive late",
            error=repr(error),
            retry_seconds=wait,
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(stop_flag.wait(), wait)
        if not stop_flag.is_set():
            await _finish(again, stop_flag)
    await thread.stop()


async def _run_kopf(
    thread: LoopThread, registry: kopf.OperatorRegistry, stop_flag: asyncio.Event
) -> Exception | None:
    """Run kopf until it ends or the flag is set; the error at which it has ended."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # Otherwise kopf kills the process ten minutes after it has ended.
    settings.process.ultimate_exiting_timeout = None
    end = asyncio.Event()
    running = asyncio.create_task(
        thread.call(
            kopf.operator(
                registry=registry,
                settings=settings,
                clusterwide=True,
                standalone=True,
                stop_flag=end,
            )
        )
    )
    stopping = asyncio.create_task(stop_flag.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not running.done():
        await thread.call(_set(end))
    try:
        await running
    except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler goes on
        return error
    return None


async def _set(flag: asyncio.Event) -> None:
    flag.set()


def _make_registry(access: Access, rare: Rare) -> kopf.OperatorRegistry:
    def logs_in(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=access.url,
            ca_path=access.ca_file,
            insecure=not access.verify,
            token=access.bearer(),
            certificate_path=access.cert_file,
            private_key_path=access.key_file,
        )

    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(logs_in)
    rare.register(registry)
    return registry


def _is_news(record: logging.LogRecord) -> bool:
    """Signals, of which kopf warns that it hears none, are heard here, and what kopf fails with is logged here."""
    message = record.getMessage()
    return "OS signals are ignored" not in message and " has failed: " not in message
