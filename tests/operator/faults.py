"""Answers that go wrong: refused before a request is served, or lost, late or broken after it was."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from scheduler.embedded.api.server import Serve
from tests.operator.servers import Embedded, Server
from tests.operator.world import World

_REASONS = {422: "Invalid", 429: "TooManyRequests", 503: "ServiceUnavailable"}


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
    def is_pods(self) -> bool:
        """Whether it is about pods in general: a list or a watch."""
        return self.path == "/api/v1/pods"

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
    """What was asked while faults were on, and what went wrong.

    Attributes:
        calls, done: every request of the operator, and those with a fault.
        under_way: how many of these are not answered yet.
    """

    choose: Callable[[Call], Fault | None]
    calls: list[Call] = field(default_factory=list)
    done: list[Call] = field(default_factory=list)
    under_way: int = 0
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def happened(self) -> bool:
        """Whether anything went wrong yet; to be waited for."""
        return bool(self.done)

    async def are_over(self) -> bool:
        """Whether all that went wrong has been answered; to be waited for."""
        return not self.under_way

    async def around(self, request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
        """Serve a request, with the fault that is chosen for it."""
        fault = self._of(request)
        if fault is None:
            return await serve(request)
        self.under_way += 1
        try:
            return await _spoilt(fault, request, serve)
        finally:
            self.under_way -= 1

    def _of(self, request: web.BaseRequest) -> Fault | None:
        if not request.headers.get("User-Agent", "").startswith(("evenkeel", "kopf")):
            return None
        key = (request.method, request.path)
        self._counts[key] += 1
        call = Call(*key, self._counts[key])
        self.calls.append(call)
        fault = self.choose(call)
        if fault is not None:
            self.done.append(call)
        return fault


async def _spoilt(fault: Fault, request: web.BaseRequest, serve: Serve) -> web.StreamResponse:
    if fault.held:
        await asyncio.sleep(fault.seconds)
        return await serve(request)
    if fault.served:
        await serve(request)
    await asyncio.sleep(fault.seconds)
    if not fault.status and request.transport is not None:
        request.transport.abort()
    return make_answer(fault.status)


def make_answer(status: int) -> web.Response:
    """What a server says that refuses; on a broken connection (status 0) it reaches nobody."""
    body = {
        "kind": "Status",
        "reason": _REASONS.get(status, "InternalError"),
        "message": "injected",
        "code": status,
    }
    return web.Response(status=status or 500, text=json.dumps(body))


@contextmanager
def injected(server: Server, choose: Callable[[Call], Fault | None]) -> Iterator[Faults]:
    """Let requests of the operator to the embedded server fail while the block runs.

    ``choose`` is called in the server's thread, one request at a time.
    """
    assert server.embedded is not None
    faults = Faults(choose)
    server.embedded.run(lambda c: setattr(c.server, "around", faults.around))
    try:
        yield faults
    finally:
        server.embedded.run(lambda c: setattr(c.server, "around", None))


def inside(world: World) -> Embedded:
    """The embedded server behind a world's URL."""
    assert world.server.embedded is not None
    return world.server.embedded
