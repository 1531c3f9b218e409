"""Probes and metrics over HTTP: ``/livez``, ``/readyz``, ``/metrics``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

Check = Callable[[], list[str]]
Metrics = Callable[[str], Awaitable[tuple[str, AsyncIterator[bytes]]]]


class Health:
    """A small server beside the loop.

    Args:
        alive, ready: list what is wrong; empty if nothing is.
        metrics: makes the content type and the parts of the exposition text for an ``Accept`` header;
            raises ``TimeoutError`` if that takes too long.
    """

    def __init__(self, *, alive: Check, ready: Check, metrics: Metrics) -> None:
        self._app = web.Application()
        self._app.router.add_get("/livez", _make_probe(alive))
        self._app.router.add_get("/readyz", _make_probe(ready))
        self._app.router.add_get("/metrics", _make_metrics_handler(metrics))
        self._runner = web.AppRunner(self._app, access_log=None)
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free port. Then ``port`` is the port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()


def _make_probe(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        problems = check()
        if problems:
            return web.Response(
                status=HTTPStatus.SERVICE_UNAVAILABLE, text="\n".join(problems) + "\n"
            )
        return web.Response(text="ok\n")

    return answer


def _make_metrics_handler(
    metrics: Metrics,
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            content_type, parts = await metrics(request.headers.get("Accept", ""))
        except TimeoutError:
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="the loop is busy\n")
        response = web.StreamResponse(headers={"Content-Type": content_type})
        # Lines are much alike: compressed, they are a twentieth of the size.
        response.enable_compression()
        await response.prepare(request)
        async for part in parts:
            await response.write(part)
        await response.write_eof()
        return response

    return answer
