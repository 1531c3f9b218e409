"""Answers that go wrong: refused before a request is served, or lost, late or broken after it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from tests.operator.servers import Server


class Call(NamedTuple):
    """A request as a fault may look at it; ``number`` counts those of the same method and path."""

    method: str
    path: str
    number: int

    @property
    def is_binding(self) -> bool:
        """Whether it binds a pod."""
        return self.path.endswith("/binding")

    @property
    def pod(self) -> str:
        """The pod it is about, empty when it is about something else."""
        parts = self.path.split("/")
        return parts[parts.index("pods") + 1] if "pods" in parts[:-1] else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request.

    Attributes:
        status: what is answered; 0 breaks the connection.
        served: whether the request takes effect first.
        seconds: how late the answer is, or how late the request is served when ``held``.
        held: the delay comes before the request is served; then its true answer follows.
    """

    status: int = 500
    served: bool = False
    seconds: float = 0.0
    held: bool = False


@dataclass(slots=True)
class Faults:
    """What was asked while faults were on, and what went wrong."""

    choose: Callable[[Call], Fault | None]
    calls: list[Call] = field(default_factory=list)
    done: list[Call] = field(default_factory=list)
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def of(self, request: web.BaseRequest) -> Fault | None:
        """The fault for a request, None when all goes well."""
        key = (request.method, request.path)
        self._counts[key] = self._counts.get(key, 0) + 1
        call = Call(*key, self._counts[key])
        self.calls.append(call)
        fault = self.choose(call)
        if fault is not None:
            self.done.append(call)
        return fault


@contextmanager
def injected(server: Server, choose: Callable[[Call], Fault | None]) -> Iterator[Faults]:
    """Let requests of the operator to the embedded server fail while the block runs."""
    assert server.embedded is not None
    faults = Faults(choose)
    api = server.embedded.cluster.server
    route = api._route

    async def unreliable(request: web.BaseRequest) -> web.StreamResponse:
        is_operator = request.headers.get("User-Agent", "").startswith("evenkeel")
        fault = faults.of(request) if is_operator else None
        if fault is None:
            return await route(request)
        if fault.held:
            # Read first: what comes too late for its sender is still served.
            await request.read()
            await asyncio.sleep(fault.seconds)
            return await route(request)
        if fault.served:
            await route(request)
        await asyncio.sleep(fault.seconds)
        if not fault.status:
            assert request.transport is not None
            request.transport.abort()
        reason = {429: "TooManyRequests", 409: "Conflict"}.get(fault.status, "InternalError")
        body = {"kind": "Status", "reason": reason, "message": "injected", "code": fault.status}
        return web.Response(status=fault.status or 500, text=json.dumps(body))

    server.embedded.run(lambda _: setattr(api, "_route", unreliable))
    try:
        yield faults
    finally:
        server.embedded.run(lambda _: setattr(api, "_route", route))
