"""kopf comes and the heap is frozen after the lists, but for kopf no list is waited for too long."""

import asyncio
import gc
import sys
import threading
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import kopf
import pytest

from scheduler.kube import hosting, kopf_host, running
from scheduler.kube.app import Operator
from scheduler.kube.client import Access
from scheduler.kube.loop_thread import LoopThread
from scheduler.kube.running import RunningParts
from scheduler.kube.watch.rare import Rare


class _Process:
    """What happens in one process, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stop_flag = asyncio.Event()
        self.done: list[str] = []
        fake = SimpleNamespace(keep_kopf=self._keep_kopf)
        monkeypatch.setitem(sys.modules, "scheduler.kube.kopf_host", fake)
        monkeypatch.setattr(hosting, "_watch_signals", lambda _: None)

    async def run(self, wait_for_lists: hosting.Act) -> None:
        async def do(what: str) -> None:
            self.done.append(what)

        nothing: Any = None
        await hosting.host(
            nothing,
            lambda: nothing,
            start=lambda: do("start"),
            wait_for_lists=wait_for_lists,
            read_again=lambda: do("read again"),
            stop=lambda: do("stop"),
            stop_flag=self.stop_flag,
        )

    async def _keep_kopf(self, *_: object) -> None:
        self.done.append("kopf")
        self.stop_flag.set()


async def test_kopf_waits_for_the_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    process = _Process(monkeypatch)

    async def wait() -> None:
        await asyncio.sleep(0.01)
        process.done.append("listed")

    await process.run(wait)
    assert process.done == ["start", "listed", "kopf", "stop"]


async def test_kopf_comes_although_lists_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "_LISTS_SECONDS", 0.01)
    process = _Process(monkeypatch)
    await process.run(asyncio.Event().wait)
    assert process.done == ["start", "kopf", "stop"]


async def test_a_stop_before_the_lists_begins_no_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = _Process(monkeypatch)
    asyncio.get_running_loop().call_later(0.01, process.stop_flag.set)
    await process.run(asyncio.Event().wait)
    assert process.done == ["start", "stop"]


async def test_the_heap_is_frozen_a_moment_after_all_streams_have_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(running, "_LATER_SECONDS", 0.2)
    streams = [SimpleNamespace(is_listed=False), SimpleNamespace(is_listed=True)]
    parts: Any = SimpleNamespace(streams=streams)
    lifeline: Any = None
    clock = asyncio.get_running_loop().time
    frozen: list[float] = []
    parts_at_work = RunningParts(
        parts, lifeline, lambda _: None, freeze=lambda: frozen.append(clock())
    )
    freezing = asyncio.ensure_future(parts_at_work._freeze_heap())
    await asyncio.sleep(0.01)
    streams[0].is_listed = True
    listed = clock()
    await asyncio.wait_for(freezing, 30.0)
    assert len(frozen) == 1
    assert frozen[0] - listed >= 0.2


async def test_kopf_is_given_what_changed_before_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells of what is there when it comes, so what has gone since the start would stay for ten minutes."""
    stop_flag = asyncio.Event()
    done: list[str] = []

    async def run_kopf(*_: object) -> Exception | None:
        done.append("kopf")
        stop_flag.set()
        return None

    async def read_again() -> None:
        done.append("read again")

    monkeypatch.setattr(kopf_host, "_run_kopf", run_kopf)
    access = Access(url="http://nowhere")
    await kopf_host.keep_kopf(access, Rare((), lambda _: None), read_again, stop_flag)
    assert done == ["read again", "kopf"]


@pytest.mark.parametrize(
    ("error", "n"),
    [(aiohttp.ClientConnectionError("Connection closed"), 0), (ValueError("of kopf"), 1)],
)
async def test_what_kopf_leaves_behind_when_it_ends_fails_without_a_line(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    n: int,
) -> None:
    stop_flag, begun = asyncio.Event(), threading.Event()

    async def leave_behind() -> None:
        raise error

    async def run_kopf(*, stop_flag: asyncio.Event, **_: object) -> None:
        begun.set()
        await stop_flag.wait()
        left = asyncio.ensure_future(leave_behind())
        await asyncio.wait({left})

    monkeypatch.setattr(kopf, "operator", run_kopf)
    thread, registry = LoopThread("kopf"), kopf.OperatorRegistry()
    running_kopf = asyncio.ensure_future(kopf_host._run_kopf(thread, registry, stop_flag))
    await asyncio.to_thread(begun.wait)
    stop_flag.set()
    assert await running_kopf is None
    await thread.stop()
    gc.collect()
    assert len([line for line in caplog.records if "never retrieved" in line.message]) == n


async def test_the_operator_waits_for_its_lists_before_kopf() -> None:
    options: Any = None
    waited: list[str] = []

    async def wait_for_lists() -> None:
        waited.append("for lists")

    operator = Operator(options)
    operator._running = cast("RunningParts", SimpleNamespace(wait_for_lists=wait_for_lists))
    await operator._wait_for_lists()
    assert waited == ["for lists"]
