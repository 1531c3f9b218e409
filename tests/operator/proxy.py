"""A proxy before an API server: it passes on every request, except those which a test holds or spoils."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import aiohttp
import yaml
from aiohttp import web

from tests.operator import faults
from tests.operator.faults import Fault
from tests.operator.servers import Server

_HOP = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class Request(NamedTuple):
    """A request on its way."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Proxy:
    """What is passed on and what is held.

    Attributes:
        server: the API server through the proxy, as the operator sees it.
        holds: whether a request with that method and path is held; its sender gets no answer.
        held: these requests, oldest first.
        choose_fault: what goes wrong with a request of that method and path.
        n_spoilt: how many requests got a fault.
    """

    server: Server
    session: aiohttp.ClientSession
    holds: Callable[[str, str], bool] = lambda _method, _path: False
    held: list[Request] = field(default_factory=list)
    choose_fault: Callable[[str, str], Fault | None] = lambda _method, _path: None
    n_spoilt: int = 0

    async def is_holding(self) -> bool:
        """Whether anything is held; to be waited for."""
        return bool(self.held)

    async def let_go(self) -> list[tuple[int, str]]:
        """Send what was held to the API server, whether anybody still waits for it or not; return the answers."""
        answers = []
        for request in self.held:
            async with self._send(request) as answer:
                answers.append((answer.status, await answer.text()))
        self.held.clear()
        return answers

    async def serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        """Pass one request on, and its answer back as it comes."""
        headers = {key: value for key, value in incoming.headers.items() if key.lower() not in _HOP}
        request = Request(incoming.method, incoming.raw_path, headers, await incoming.read())
        if self.holds(request.method, incoming.path):
            self.held.append(request)
            # Its sender hears nothing for as long as it waits.
            await asyncio.Event().wait()
        if fault := self.choose_fault(request.method, incoming.path):
            self.n_spoilt += 1
            return await self._spoil(fault, request, incoming)
        async with self._send(request) as answer:
            kind = answer.headers.get("Content-Type", "application/json")
            passed = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            # The sender may be gone.
            with suppress(ConnectionError):
                await passed.prepare(incoming)
                async for chunk in answer.content.iter_any():
                    await passed.write(chunk)
            return passed

    def _send(self, request: Request) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self.session.request(
            request.method, request.path, headers=request.headers, data=request.body or None
        )

    async def _spoil(
        self, fault: Fault, request: Request, incoming: web.BaseRequest
    ) -> web.StreamResponse:
        """Answer with a fault, after the API server was given the request or instead of that."""
        if fault.served:
            async with self._send(request):
                pass
        await asyncio.sleep(fault.seconds)
        if not fault.status and incoming.transport is not None:
            incoming.transport.abort()
        return faults.make_answer(fault.status)


@asynccontextmanager
async def before(server: Server) -> AsyncIterator[Proxy]:
    """A proxy before a server while the block runs."""
    tls = server.tls if server.tls is not None else True
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(server.url, connector=connector, timeout=timeout) as session:
        proxy = Proxy(server, session)
        runner = web.ServerRunner(web.Server(proxy.serve), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        path = server.folder / "kubeconfig-of-the-proxy"
        proxy.server = replace(server, kubeconfig=_kubeconfig(server.kubeconfig, path, url))
        try:
            yield proxy
        finally:
            await runner.cleanup()


def _kubeconfig(given: Path, path: Path, url: str) -> Path:
    """The same access, but through the proxy."""
    loaded = yaml.safe_load(given.read_text())
    for cluster in loaded["clusters"]:
        cluster["cluster"] = {"server": url}
    path.write_text(yaml.safe_dump(loaded))
    return path
