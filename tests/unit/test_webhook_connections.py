"""Requests as they come over a connection: whole, in pieces, several at once, and such as no API server sends."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.kube.webhook import connections, http_requests
from scheduler.kube.webhook.connections import Connection, Response
from scheduler.kube.webhook.http_requests import HttpRequest, Unreadable
from tests import slices

_WHOLE = b"POST /mutate?timeout=5s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"


def test_a_request() -> None:
    found = http_requests.read_request(bytearray(_WHOLE + b"POST"))
    assert found == HttpRequest("POST", "/mutate", b"body", len(_WHOLE), is_last=False)
    for n in range(len(_WHOLE)):
        assert http_requests.read_request(bytearray(_WHOLE[:n])) is None
    bare = http_requests.read_request(bytearray(b"GET / HTTP/1.1\r\n\r\n"))
    assert bare == HttpRequest("GET", "/", b"", 18, is_last=False)


@pytest.mark.parametrize("line", [b"connection: Close", b"CONNECTION:close"])
def test_a_last_request(line: bytes) -> None:
    for version, lines in ((b"1.1", line + b"\r\n"), (b"1.0", b"")):
        found = http_requests.read_request(
            bytearray(b"GET / HTTP/" + version + b"\r\n" + lines + b"\r\n")
        )
        assert found is not None
        assert found.is_last


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET / a HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n: none\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length : 1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (8 * 2**20 + 1), 413),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 2**15, 431),
    ],
)
def test_what_is_refused(text: bytes, status: int) -> None:
    with pytest.raises(Unreadable) as refused:
        http_requests.read_request(bytearray(text))
    assert refused.value.status == status


class _Transport:
    """What a connection writes to."""

    def __init__(self) -> None:
        self.written = b""
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self.written += data

    def __getattr__(self, name: str) -> Any:
        return lambda: self.calls.append(name)


def _connect() -> tuple[Connection, _Transport, list[bytes], set[Connection]]:
    seen: list[bytes] = []

    def answer(request: HttpRequest) -> Response:
        seen.append(request.body)
        return Response(HTTPStatus.OK, body=b"answer " + request.body)

    all_open: set[Connection] = set()
    connection, transport = Connection(answer, all_open), _Transport()
    connection.connection_made(transport)  # type: ignore[arg-type]
    return connection, transport, seen, all_open


def _write(body: bytes) -> bytes:
    return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@settings(max_examples=slices.count_examples(500), deadline=None)
@given(bodies=st.lists(st.binary(max_size=20), max_size=5), data=st.data())
def test_requests_are_answered_in_their_order_however_they_are_cut(
    bodies: list[bytes], data: st.DataObject
) -> None:
    connection, transport, seen, _ = _connect()
    text = b"".join(map(_write, bodies))
    while text:
        n = data.draw(st.integers(1, len(text)))
        connection.data_received(text[:n])
        text = text[n:]
    assert seen == bodies
    assert transport.written.count(b"HTTP/1.1 200 OK\r\n") == len(bodies)
    assert not transport.calls


@settings(max_examples=slices.count_examples(2000), deadline=None)
@given(texts=st.lists(st.binary(max_size=40) | st.sampled_from([_WHOLE, b"\r\n\r\n", b" HTTP/1.1\r\n", b"A: b\r\n"]), max_size=6))  # fmt: skip
def test_whatever_comes_nothing_is_raised(texts: list[bytes]) -> None:
    connection, transport, _, _ = _connect()
    for text in texts:
        connection.data_received(text)
    n_refused = transport.written.count(b"HTTP/1.1 400")
    assert n_refused <= 1
    assert transport.written.count(b"Connection: close") == n_refused


def test_after_a_request_that_cannot_be_read_nothing_is_answered() -> None:
    connection, transport, seen, _ = _connect()
    connection.data_received(b"what\r\n\r\n" + _WHOLE)
    connection.data_received(_WHOLE)
    assert seen == []
    assert transport.written.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    # The client closes it, or the sweep does.
    assert transport.calls == []


def test_a_last_request_is_answered_and_the_connection_closed() -> None:
    connection, transport, seen, all_open = _connect()
    connection.data_received(b"GET / HTTP/1.0\r\n\r\n" + _WHOLE)
    assert seen == [b""]
    assert b"Connection: close" in transport.written
    assert transport.calls == ["close"]
    assert all_open == {connection}
    connection.connection_lost(None)
    assert not all_open


def test_a_client_that_reads_no_answers_is_not_read() -> None:
    connection, transport, _, _ = _connect()
    connection.pause_writing()
    connection.resume_writing()
    assert transport.calls == ["pause_reading", "resume_reading"]


def test_a_request_has_to_come_in_time() -> None:
    now = time.monotonic()
    connection, _, _, _ = _connect()
    idle = connection.ends_at
    assert idle > now + connections._REQUEST_SECONDS
    connection.data_received(_WHOLE[:10])
    first = connection.ends_at
    assert first < idle
    # More bytes give it no more time.
    connection.data_received(_WHOLE[10:20])
    assert connection.ends_at == first
    connection.data_received(_WHOLE[20:])
    assert connection.ends_at >= idle
