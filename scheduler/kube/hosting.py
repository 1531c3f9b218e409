"""kopf hosts the process: it starts and stops the scheduler, logs in, and tells of the rare kinds."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import kopf

from scheduler.kube.client import Access
from scheduler.kube.watch.rare import Rare

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
    """A signal sets the flag, as often as it comes; kopf's own handlers take one for an error that comes twice."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop_flag.set)


def _end(number: int, _frame: object) -> None:
    os._exit(128 + number)


@contextmanager
def _told_by_the_caller(failed: list[Exception]) -> Iterator[None]:
    """Of a start that failed kopf logs nothing: the caller is given the error, and tells it in words of its own."""
    log = logging.getLogger("kopf.activities.startup")

    def is_wanted(_: logging.LogRecord) -> bool:
        return not failed

    log.addFilter(is_wanted)
    try:
        yield
    finally:
        log.removeFilter(is_wanted)


async def host(
    access: Access, rare: Rare, *, start: Act, stop: Act, stop_flag: asyncio.Event
) -> None:
    """Run until SIGTERM or until the flag is set.

    Args:
        access: how kopf is let in.
        rare: what kopf watches.
        start: called once kopf is up.
        stop: called before kopf goes.
        stop_flag: set by whoever wants the end, and here when the start failed.

    Raises:
        Exception: what the start met.
    """
    failed: list[Exception] = []

    async def starts(**_: Any) -> None:
        try:
            await start()
        except Exception as error:
            # kopf would try again for ever; a port that is taken, say, will not become free.
            failed.append(error)
            stop_flag.set()
            raise kopf.PermanentError(str(error)) from error
        _hear_signals(stop_flag)

    async def stops(**_: Any) -> None:
        await stop()

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
    kopf.on.startup(registry=registry)(starts)
    kopf.on.cleanup(registry=registry)(stops)
    kopf.on.login(registry=registry)(logs_in)
    rare.register(registry)
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    try:
        with _told_by_the_caller(failed):
            await kopf.operator(
                registry=registry,
                settings=settings,
                clusterwide=True,
                standalone=True,
                stop_flag=stop_flag,
            )
    except Exception:
        # Of a start that failed kopf says only that it did.
        if not failed:
            raise
    if failed:
        raise failed[0]
