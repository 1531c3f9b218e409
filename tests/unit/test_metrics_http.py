"""The small server's answer to Prometheus: part by part, packed, in the format that was asked for."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from scheduler.kube.report.health import Health


async def _parts() -> AsyncIterator[bytes]:
    for i in range(100):
        yield b"a_total %d\n" % i
        await asyncio.sleep(0)


async def _told(accept: str) -> tuple[str, AsyncIterator[bytes]]:
    return accept or "text/plain; version=0.0.4; charset=utf-8", _parts()


async def _busy(_: str) -> tuple[str, AsyncIterator[bytes]]:
    raise TimeoutError


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_scrape_is_packed_if_the_client_takes_that(encoding: str) -> None:
    health = Health(alive=list, ready=list, metrics=_told)
    await health.start("127.0.0.1", 0)
    try:
        headers = {"Accept-Encoding": encoding, "Accept": "application/openmetrics-text"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{health.port}/metrics", headers=headers) as answer,
        ):
            assert answer.headers.get("Content-Encoding", "identity") == encoding
            assert answer.headers["Content-Type"] == "application/openmetrics-text"
            assert (await answer.read()).count(b"\n") == 100
    finally:
        await health.stop()


async def test_a_busy_loop_is_told_and_not_waited_for() -> None:
    health = Health(alive=list, ready=list, metrics=_busy)
    await health.start("127.0.0.1", 0)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{health.port}/metrics") as answer,
        ):
            assert (answer.status, await answer.text()) == (503, "the loop is busy\n")
    finally:
        await health.stop()
