"""kopf in a thread and an event loop of its own, where it watches the rare kinds.

kopf ends after an answer that it does not expect, such as a watch that is refused with 410, and then cancels every task of
its loop that is younger than itself. It is started again; the scheduler goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import kopf
import structlog

from scheduler.kube.client import Access, get_backoff
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.watch.rare import Rare

# A run of this length has recovered from what ended the run before.
_RECOVERED_SECONDS = 60.0
_log = structlog.get_logger("evenkeel")
Act = Callable[[], Awaitable[None]]


async def keep_kopf(access: Access, rare: Rare, read_again: Act, stop_flag: asyncio.Event) -> None:
    """Run kopf until the flag is set, and start it again whenever it ends before.

    Args:
        access: the API server, and credentials for kopf.
        rare: what kopf watches.
        read_again: called each time before kopf is started: kopf does not know what has gone before.
        stop_flag: set when the process ends.
    """
    thread = LoopThread("kopf")
    registry = _make_registry(access, rare)
    for name in ("running", "orchestration"):
        logging.getLogger(f"kopf._core.reactor.{name}").addFilter(_is_news)
    loop = asyncio.get_running_loop()
    attempt = 0
    while not stop_flag.is_set():
        await read_again()
        began = loop.time()
        error = await _run_kopf(thread, registry, stop_flag)
        if stop_flag.is_set():
            break
        attempt = 0 if loop.time() - began > _RECOVERED_SECONDS else attempt + 1
        wait = get_backoff(attempt, first=1.0, most=30.0)
        _log.warning(
            "the watch of policies and namespaces ended and starts again; their changes arrive late",
            error=repr(error),
            retry_seconds=wait,
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(stop_flag.wait(), wait)
    await thread.stop()


async def _run_kopf(
    thread: LoopThread, registry: kopf.OperatorRegistry, stop_flag: asyncio.Event
) -> Exception | None:
    """Run kopf until it ends or the flag is set; return the error with which it has ended."""
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
        await thread.call(_end_kopf(end))
    try:
        await running
    except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler goes on
        return error
    return None


async def _end_kopf(end: asyncio.Event) -> None:
    """Set the flag on which kopf ends.

    A scan of the kinds of the API server that is under way leaves its requests behind, and their connections are closed.
    """
    asyncio.get_running_loop().set_exception_handler(_log_unless_closed)
    end.set()


def _log_unless_closed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), aiohttp.ClientConnectionError):
        loop.default_exception_handler(context)


def _make_registry(access: Access, rare: Rare) -> kopf.OperatorRegistry:
    def log_in(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(
            server=access.url,
            ca_path=access.ca_file,
            insecure=not access.verify,
            token=access.bearer(),
            certificate_path=access.cert_file,
            private_key_path=access.key_file,
        )

    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(log_in)
    rare.register_handlers(registry)
    return registry


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of kopf's log is of use: signals are handled here, and kopf's failures are logged here."""
    message = record.getMessage()
    return "OS signals are ignored" not in message and " has failed: " not in message
