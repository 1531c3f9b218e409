"""kopf comes after the first decisions, but it comes; and the heap is frozen then."""

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.kube import hosting, running
from scheduler.kube.running import RunningParts


class _Process:
    """What happens in one process, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stop_flag = asyncio.Event()
        self.done: list[str] = []
        fake = SimpleNamespace(keep_kopf=self._keep_kopf)
        monkeypatch.setitem(sys.modules, "scheduler.kube.kopf_host", fake)
        monkeypatch.setattr(hosting, "_watch_signals", lambda _: None)

    async def run(self, wait_for_first_decisions: hosting.Act) -> None:
        async def do(what: str) -> None:
            self.done.append(what)

        nothing: Any = None
        await hosting.host(
            nothing,
            lambda: nothing,
            start=lambda: do("start"),
            wait_for_first_decisions=wait_for_first_decisions,
            read_again=lambda: do("read again"),
            stop=lambda: do("stop"),
            stop_flag=self.stop_flag,
        )

    async def _keep_kopf(self, *_: object) -> None:
        self.done.append("kopf")
        self.stop_flag.set()


async def test_kopf_waits_for_the_first_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    process = _Process(monkeypatch)

    async def wait() -> None:
        await asyncio.sleep(0.01)
        process.done.append("decided")

    await process.run(wait)
    assert process.done == ["start", "decided", "kopf", "stop"]


async def test_kopf_comes_although_lists_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "_LISTS_SECONDS", 0.01)
    process = _Process(monkeypatch)
    await process.run(asyncio.Event().wait)
    assert process.done == ["start", "kopf", "stop"]


async def test_a_stop_before_the_first_decisions_begins_no_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = _Process(monkeypatch)
    asyncio.get_running_loop().call_later(0.01, process.stop_flag.set)
    await process.run(asyncio.Event().wait)
    assert process.done == ["start", "stop"]


async def test_the_heap_is_frozen_once_all_streams_have_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(running, "_FIRST_DECISIONS_SECONDS", 0.001)
    streams = [SimpleNamespace(is_listed=False), SimpleNamespace(is_listed=True)]
    parts: Any = SimpleNamespace(streams=streams)
    lifeline: Any = None
    frozen: list[str] = []
    parts_at_work = RunningParts(parts, lifeline, lambda _: None, freeze=lambda: frozen.append(""))
    tending = asyncio.ensure_future(parts_at_work._tend_heap())
    await asyncio.sleep(0.02)
    assert not frozen
    streams[0].is_listed = True
    await asyncio.sleep(0.05)
    assert len(frozen) == 1
    tending.cancel()
