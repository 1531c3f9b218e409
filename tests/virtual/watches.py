"""Watches: every stream hears of the same changes in order, late, and each in its own time."""

import asyncio
import bisect
import json
import random
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType

import aiohttp

from tests.model.server import Json, Server, event_of
from tests.virtual.clock import Clock

_BOOKMARK_SECONDS = 60.0


class Watch:
    """The server's end of one watch: sends what changed after ``cursor`` into a response."""

    def __init__(
        self, clock: Clock, server: Server, response: "Response", params: dict[str, str], kind: str
    ) -> None:
        self.who = response.who
        self._clock, self._server, self._response = clock, server, response
        self._selector, self.kind = params.get("fieldSelector", ""), kind
        self.cursor = int(params["resourceVersion"])
        self.is_open = True
        self._sent_at = clock.now

    def pump(self, most: int) -> None:
        """Send up to ``most`` of the changes not yet sent."""
        server = self._server
        if self.cursor < server.compacted:
            self._send("ERROR", {"code": 410, "reason": "Expired", "message": "compacted"})
            self.close()
            return
        start = bisect.bisect_right(server.log, self.cursor, key=lambda change: change.version)
        for change in server.log[start:]:
            if not most:
                return
            if event := event_of(change, self.kind, self._selector):
                self._send(*event)
                most -= 1
            self.cursor = change.version
        if self._clock.now - self._sent_at >= _BOOKMARK_SECONDS:
            self._send("BOOKMARK", {"metadata": {"resourceVersion": str(server.version)}})

    def is_behind(self) -> bool:
        return bool(self._server.log) and self.cursor < self._server.log[-1].version

    def close(self) -> None:
        """The server ends the watch in good order."""
        self.is_open = False
        self._response.feed(None)

    def tear(self) -> None:
        """The connection breaks; what was under way on it is lost."""
        self.is_open = False
        self._response.feed(aiohttp.ClientPayloadError("connection torn"))

    def _send(self, kind: str, body: Json) -> None:
        # The client tells kinds apart by the first bytes, so the order of keys is the server's.
        self._sent_at = self._clock.now
        line = json.dumps({"type": kind, "object": body}, separators=(",", ":"))
        self._response.feed(line.encode() + b"\n")


class Response:
    """The client's end, as much of aiohttp's as a stream uses."""

    def __init__(self, who: str, silence_seconds: float, rng: random.Random) -> None:
        self.who = who
        self.status = 0
        self.watch: Watch | None = None
        self._body = b""
        self._silence, self._rng = silence_seconds, rng
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[bytes | Exception | None] = deque()
        self._waiter: asyncio.Future[None] | None = None

    @property
    def content(self) -> "Response":
        return self

    async def read(self) -> bytes:
        return self._body

    def answered(self, status: int, body: bytes) -> None:
        self.status, self._body = status, body
        self.feed(b"")

    def feed(self, chunk: bytes | Exception | None) -> None:
        """Something arrives: bytes, a failure, or the end."""
        self._arrived.append(chunk)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def next(self) -> bytes | None:
        if not self._arrived:
            self._waiter = self._loop.create_future()
            try:
                async with asyncio.timeout(self._silence):
                    await self._waiter
            except TimeoutError as error:
                raise aiohttp.SocketTimeoutError("nothing arrives") from error
        chunk = self._arrived.popleft()
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    async def iter_any(self) -> AsyncIterator[bytes]:
        while (chunk := await self.next()) is not None:
            # A line may arrive in two pieces.
            cut = self._rng.randrange(len(chunk) + 1) if self._rng.random() < 0.1 else 0
            for piece in filter(None, (chunk[:cut], chunk[cut:])):
                yield piece


class Opening:
    """What ``ApiClient.stream`` returns: entering it waits until the server answers."""

    def __init__(self, response: Response) -> None:
        self._response = response

    async def __aenter__(self) -> Response:
        await self._response.next()
        return self._response

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._response.watch is not None:
            self._response.watch.is_open = False
