"""Writes to the API server: HTTP/1.1, one request and its answer at a time on each of several connections.

A pod takes two writes, its bind and an event, and they are most of what a pod costs in this process: 190 µs each by a
general client, 67 µs by this module (8,000 small POSTs over TLS in turns, CPU of the process). Writes are simple, so
they can be cheap: they are small, sent in one piece, never redirected, and nothing about them is kept.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from typing import NamedTuple, cast
from urllib.parse import quote, unquote, urlsplit

_HEAD_END, _LINE_END = b"\r\n\r\n", b"\r\n"
_HEAD_MAX = 1 << 16
# Unused connections are kept open for so long. The API server keeps them longer, and the side that closes first never
# writes into a connection that the other side is about to close.
_IDLE_SECONDS = 15.0
_PATH_SAFE = "/:@!$&'()*+,;=~"
_NO_CONTENT, _NOT_MODIFIED, _INFORMATIONAL = 204, 304, range(100, 200)


class Reply(NamedTuple):
    """The answer to a write.

    Attributes:
        status: the status code.
        payload: the body.
        is_reusable: whether the connection may be used again.
    """

    status: int
    payload: bytes
    is_reusable: bool


class UnreadableError(ConnectionError):
    """What came back is no answer."""


class Reading:
    """Makes answers from bytes as they come, one answer for each request."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Reply | None:
        """Take bytes; return the answer once it is complete.

        Raises:
            UnreadableError: the bytes are no answer, or more than one.
        """
        if self._bytes:
            self._bytes += data
            data = bytes(self._bytes)
        found = _parse_reply(data, is_over=False)
        if found is None and not self._bytes:
            self._bytes += data
        return found

    def end(self) -> Reply | None:
        """Return the answer that the end of the connection completes; None if it completes none.

        Raises:
            UnreadableError: as ``feed``.
        """
        return _parse_reply(bytes(self._bytes), is_over=True)


def _parse_reply(data: bytes, *, is_over: bool) -> Reply | None:
    """Return the answer in the bytes; ``is_over`` says that no more will come."""
    begin = data.find(_HEAD_END) + len(_HEAD_END)
    if begin < len(_HEAD_END):
        if len(data) > _HEAD_MAX:
            raise UnreadableError("the head of an answer has no end")
        return None
    head = data[: begin - len(_LINE_END)].lower()
    status = _parse_status(head)
    if status in _INFORMATIONAL:
        return _parse_reply(data[begin:], is_over=is_over)
    is_reusable = b"close" not in _get_field(head, b"connection") and not head.startswith(
        b"http/1.0"
    )
    body = b"", begin
    if status not in {_NO_CONTENT, _NOT_MODIFIED}:
        found = _parse_body(head, data, begin)
        if found is None:
            has_end = _get_field(head, b"transfer-encoding") or _get_field(head, b"content-length")
            is_whole = is_over and not has_end
            return Reply(status, data[begin:], is_reusable=False) if is_whole else None
        body = found
    if body[1] != len(data):
        raise UnreadableError("there is more than one answer")
    return Reply(status, body[0], is_reusable)


def _parse_body(head: bytes, data: bytes, begin: int) -> tuple[bytes, int] | None:
    """Return the body and where it ends; None if it is not complete, or ends with the connection."""
    if b"chunked" in _get_field(head, b"transfer-encoding"):
        return _parse_chunks(data, begin)
    length = _get_field(head, b"content-length")
    if not length:
        return None
    end = begin + _parse_number(length, 10)
    return (data[begin:end], end) if end <= len(data) else None


def _parse_status(head: bytes) -> int:
    version, _, rest = head.partition(b" ")
    if not version.startswith(b"http/1."):
        raise UnreadableError(f"not HTTP/1: {head[:20]!r}")
    return _parse_number(rest[:3], 10)


def _get_field(head: bytes, name: bytes) -> bytes:
    """Return the value of a header; empty if it is missing. The head is in lower case and ends with a line."""
    at = head.find(b"\r\n%b:" % name)
    if at < 0:
        return b""
    at += len(name) + 3
    return head[at : head.index(_LINE_END, at)].strip()


def _parse_chunks(data: bytes, at: int) -> tuple[bytes, int] | None:
    """Return the body from its chunks and where they end; None if they are not complete."""
    parts: list[bytes] = []
    while (line_end := data.find(_LINE_END, at)) >= 0:
        size = _parse_number(data[at:line_end].partition(b";")[0].strip(), 16)
        at = line_end + len(_LINE_END)
        if not size:
            return _skip_trailers(data, at, b"".join(parts))
        parts.append(data[at : at + size])
        at += size + len(_LINE_END)
        if at > len(data):
            return None
        if data[at - len(_LINE_END) : at] != _LINE_END:
            raise UnreadableError("a chunk is longer than it says")
    return None


def _skip_trailers(data: bytes, at: int, payload: bytes) -> tuple[bytes, int] | None:
    while (line_end := data.find(_LINE_END, at)) >= 0:
        is_last = line_end == at
        at = line_end + len(_LINE_END)
        if is_last:
            return payload, at
    return None


def _parse_number(text: bytes, base: int) -> int:
    digits = b"0123456789abcdef"[:base]
    if not text or text.lower().strip(digits):
        raise UnreadableError(f"not a number: {text[:20]!r}")
    return int(text, base)


class _Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._reading = Reading()
        self._waiter: asyncio.Future[Reply] | None = None
        self.is_open = False
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of it.
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        try:
            answer = self._reading.feed(data)
        except UnreadableError as error:
            self._fail(error)
            return
        if answer is not None:
            self._take_reply(answer)

    def eof_received(self) -> None:
        """End an answer without a length: it ends with the connection."""
        try:
            answer = self._reading.end()
        except UnreadableError as error:
            self._fail(error)
            return
        if answer is not None:
            self._take_reply(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(exc or ConnectionResetError("the connection was closed before the answer"))

    async def send_request(self, request: bytes) -> Reply:
        """Send a request and return its answer.

        Raises:
            OSError: the connection broke, or what came is no answer.
        """
        if self._transport is None or not self.is_open:
            raise ConnectionResetError("the connection is closed")
        self._reading = Reading()
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiter

    def close(self) -> None:
        """Close the connection, whatever is under way."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _take_reply(self, answer: Reply) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            # An answer without a request.
            self.close()
            return
        if not answer.is_reusable:
            self.close()
        if not waiter.done():
            waiter.set_result(answer)

    def _fail(self, error: Exception) -> None:
        self.close()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error if isinstance(error, OSError) else ConnectionError(repr(error)))  # fmt: skip


class WriteConnections:
    """Connections to one API server, opened as they are needed.

    Args:
        url: the URL of the API server; its path stands before every path.
        tls: the TLS settings; None for plain HTTP.
        most: the most connections at once; further writes wait.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None, *, most: int) -> None:
        where = urlsplit(url)
        self._host, self._port = where.hostname or "", where.port or (443 if tls else 80)
        who, _, netloc = where.netloc.rpartition("@")
        self._prefix, self._tls = where.path.rstrip("/"), tls
        self._always = f"Host: {netloc}\r\n"
        if who:
            word = b64encode(unquote(who).encode()).decode()
            self._always += f"Authorization: Basic {word}\r\n"
        self._places = asyncio.Semaphore(most)
        # The connection that was used last is used next: so no more are kept open than are needed.
        self._idle: list[_Connection] = []

    async def send_request(
        self, method: str, path: str, headers: str, body: bytes, *, query: str = "", seconds: float
    ) -> Reply:
        """Send one write, and return its answer.

        Args:
            method: the method of the request.
            path: the path of the request; characters that no path may have are quoted.
            headers: lines, each with its end.
            body: the body of the request.
            query: the encoded parameters of the request; empty for none.
            seconds: how long all may take, including the wait for a connection.

        Raises:
            TimeoutError: there was no answer in time.
            OSError: the connection could not be made or broke, or what came is no answer.
        """
        target = f"{self._prefix}{quote(path, safe=_PATH_SAFE)}{'?' if query else ''}{query}"
        head = (
            f"{method} {target} HTTP/1.1\r\n"
            f"{self._always}{headers}Content-Length: {len(body)}\r\n\r\n"
        )
        async with asyncio.timeout(seconds), self._places:
            connection = self._reuse_connection() or await self._open_connection()
            try:
                answer = await connection.send_request(head.encode("latin-1") + body)
            except BaseException:
                connection.close()
                raise
            if connection.is_open:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
            return answer

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _reuse_connection(self) -> _Connection | None:
        """Return an open connection that was used not long ago; None if there is none."""
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since >= oldest:
                return connection
            connection.close()
        return None

    async def _open_connection(self) -> _Connection:
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection, self._host, self._port, ssl=self._tls
        )
        return connection
