"""Requests of HTTP/1.1 as the API server sends them, out of what a connection has received. Nothing here reads or writes.

What such a client does not do is refused: bodies in chunks, several lengths, lines that are folded.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

_HEAD_BYTES = 32 << 10
# A review has an object twice at most, and the API server takes none of more than 3 MiB.
_BODY_BYTES = 8 << 20
_END = b"\r\n\r\n"
_VERSIONS = (b"HTTP/1.1", b"HTTP/1.0")
_LENGTH, _ENCODING, _CONNECTION = b"content-length", b"transfer-encoding", b"connection"
# A length of more digits than any computer's.
_DIGITS_MAX = 18


class HttpRequest(NamedTuple):
    """A request.

    Attributes:
        method: its method.
        path: where it goes, without its query.
        body: its body.
        size: how many bytes it had in all.
        is_last: whether the client sends no other one over this connection.
    """

    method: str
    path: str
    body: bytes
    size: int
    is_last: bool


class Unreadable(Exception):  # noqa: N818
    """What came is no request that is read; what comes after it cannot be read either.

    Attributes:
        status: what the client is answered.
    """

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def read_request(received: bytearray) -> HttpRequest | None:
    """Read the first request of what was received; None if it is not all there yet.

    Raises:
        Unreadable: it is none, or too large.
    """
    end = received.find(_END, 0, _HEAD_BYTES)
    if end < 0:
        if len(received) >= _HEAD_BYTES:
            raise Unreadable(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        return None
    first, *lines = bytes(received[:end]).split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or words[2] not in _VERSIONS:
        raise Unreadable(HTTPStatus.BAD_REQUEST)
    method, target, version = words
    headers = _read_headers(lines)
    if _ENCODING in headers:
        raise Unreadable(HTTPStatus.LENGTH_REQUIRED)
    length = headers.get(_LENGTH, b"0")
    if not length.isdigit() or len(length) > _DIGITS_MAX:
        raise Unreadable(HTTPStatus.BAD_REQUEST)
    if int(length) > _BODY_BYTES:
        raise Unreadable(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    begin = end + len(_END)
    size = begin + int(length)
    if len(received) < size:
        return None
    is_last = version != _VERSIONS[0] or headers.get(_CONNECTION, b"").lower() == b"close"
    path = target.partition(b"?")[0].decode("latin-1")
    return HttpRequest(
        method.decode("latin-1"), path, bytes(received[begin:size]), size, is_last
    )  # fmt: skip


def _read_headers(lines: list[bytes]) -> dict[bytes, bytes]:
    """Read headers by their names in small letters; of several with one name the first counts.

    Raises:
        Unreadable: a line is none, or there are several lengths.
    """
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or not name or name != name.strip() or (name == _LENGTH and name in found):
            raise Unreadable(HTTPStatus.BAD_REQUEST)
        found.setdefault(name, value.strip())
    return found


def write_response(status: HTTPStatus, media: str, body: bytes, *, is_last: bool) -> bytes:
    """Write a response."""
    closing = "Connection: close\r\n" if is_last else ""
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {media}\r\n"
        f"Content-Length: {len(body)}\r\n{closing}\r\n"
    )
    return head.encode() + body
