"""The process: how the scheduler starts and stops, and kopf beside it, which watches the rare kinds."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from scheduler import ending
from scheduler.kube.client import Access
from scheduler.kube.watch.rare import Rare

# kopf gets so long to end its watches.
_END_SECONDS = 5.0
# kopf waits this long at most for the lists.
_LISTS_SECONDS = 10.0
Act = Callable[[], Awaitable[object]]


def _watch_signals(stop_flag: asyncio.Event) -> None:
    """Let each signal set the flag, as often as it comes."""
    if threading.current_thread() is threading.main_thread():
        for number in ending.SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, stop_flag.set)


async def host(
    access: Access,
    get_rare: Callable[[], Rare],
    *,
    start: Act,
    wait_for_lists: Act,
    read_again: Act,
    stop: Act,
    stop_flag: asyncio.Event,
) -> None:
    """Run until SIGTERM or until the flag is set.

    Args:
        access: the API server, and credentials for kopf.
        get_rare: gives what kopf watches; called after the start.
        start: called first; cancelled when the flag is set meanwhile.
        wait_for_lists: called before kopf is imported; cancelled after ten seconds, or when the flag is set.
        read_again: called before kopf is started, also after an error: kopf does not know what has gone before.
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
            partial(finish, wait_for_lists),
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
    wait_for_lists: Act,
    read_again: Act,
    stop_flag: asyncio.Event,
) -> None:
    # The first decisions would wait while kopf is imported.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LISTS_SECONDS):
            await wait_for_lists()
    if stop_flag.is_set():
        return
    kopf_host = await asyncio.to_thread(importlib.import_module, "scheduler.kube.kopf_host")
    await kopf_host.keep_kopf(access, rare, read_again, stop_flag)
