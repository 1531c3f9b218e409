"""The connections of the webhook's server: each request is answered in the turn of the loop in which its end comes.

Neither a task nor another turn of the loop comes between a request and its answer, as each turn would have to wait for
the main thread, which decides. With aiohttp's server an answer took two and a half turns and twice the CPU, and the 99th
percentile beside a busy loop was above 5 ms (``bench/admissions.py``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple, cast

from scheduler.kube.webhook import http_requests
from scheduler.kube.webhook.http_requests import HttpRequest, Unreadable

# A request has to come within so long, and a connection without one stays open so long: longer than the API server
# keeps it.
_REQUEST_SECONDS, _IDLE_SECONDS = 5.0, 180.0
_TEXT = "text/plain; charset=utf-8"


class Response(NamedTuple):
    """What a request is answered."""

    status: HTTPStatus
    media: str = _TEXT
    body: bytes = b""


class Connection(asyncio.Protocol):
    """One connection of a client.

    Args:
        answer: answers a request, at once.
        all_open: the connections of the server.

    Attributes:
        ends_at: when it is closed if nothing comes, by the monotonic clock.
    """

    def __init__(
        self, answer: Callable[[HttpRequest], Response], all_open: set[Connection]
    ) -> None:
        self._answer, self._all_open = answer, all_open
        self._received = bytearray()
        self._is_over = False
        self.ends_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._all_open.add(self)
        self.ends_at = time.monotonic() + _IDLE_SECONDS

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        del error
        self._all_open.discard(self)

    def data_received(self, data: bytes) -> None:
        """Answer what has come as a whole."""
        if self._is_over:
            # It is read on, so that the client can read why, and gets no error of its connection.
            return
        if not self._received:
            self.ends_at = time.monotonic() + _REQUEST_SECONDS
        self._received += data
        while not self._is_over:
            try:
                found = http_requests.read_request(self._received)
            except Unreadable as error:
                self._respond(Response(error.status), is_last=True)
                return
            if found is None:
                return
            del self._received[: found.size]
            self._respond(self._answer(found), is_last=found.is_last)
            if found.is_last:
                self._transport.close()
            if not self._received and not self._is_over:
                self.ends_at = time.monotonic() + _IDLE_SECONDS
                return

    def _respond(self, response: Response, *, is_last: bool) -> None:
        made = http_requests.write_response(*response, is_last=is_last)
        self._transport.write(made)
        if is_last:
            self._is_over = True
            self._received.clear()
            self.ends_at = time.monotonic() + _REQUEST_SECONDS

    def pause_writing(self) -> None:
        """Read no more from a client that does not read its answers."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Read on."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Close it, once what was written is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        self._transport.abort()
