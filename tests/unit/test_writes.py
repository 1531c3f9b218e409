"""Writes to the API server: every answer is read however it comes in pieces, and no connection is used wrongly."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.errors import ApiError
from scheduler.kube import writes
from scheduler.kube.client import Access, ApiClient
from scheduler.kube.writes import Reading, Reply, UnreadableError, WriteConnections

ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"


# Answers.


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, Reply]:
    """The bytes of an answer, framed in one of the ways there are, and what it says."""
    status = draw(st.sampled_from([200, 201, 204, 304, 409, 500]))
    body = b"" if status in {204, 304} else draw(st.binary(max_size=200))
    keeps = draw(st.booleans())
    head = [f"HTTP/1.1 {status} {draw(st.sampled_from(['', 'Created', 'Not: a header']))}"]
    fields = ["Audit-Id: 1", "X-Content-Length: 7", "Date: Mon, 23 Nov 2026 04:00:00 GMT"]
    framed = body
    if status not in {204, 304}:
        if draw(st.booleans()):
            fields.append(
                f"{draw(st.sampled_from(['Content-Length', 'content-length']))}: {len(body)}"
            )
        else:
            fields.append("Transfer-Encoding: chunked")
            framed = _chunked(draw, body)
    if not keeps:
        fields.append("Connection: close")
    fields = draw(st.permutations(fields))
    before = b"HTTP/1.1 100 Continue\r\n\r\n" * draw(st.integers(0, 2))
    text = "\r\n".join([*head, *fields]).encode() + b"\r\n\r\n"
    return before + text + framed, Reply(status, body, keeps)


def _chunked(draw: st.DrawFn, body: bytes) -> bytes:
    framed, at = b"", 0
    while at < len(body):
        size = draw(st.integers(1, len(body) - at))
        extension = draw(st.sampled_from([b"", b";name=value"]))
        framed += b"%x%b\r\n%b\r\n" % (size, extension, body[at : at + size])
        at += size
    return framed + b"0\r\n" + draw(st.sampled_from([b"", b"Trailer: x\r\n"])) + b"\r\n"


@given(answers(), st.data())
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(
    made: tuple[bytes, Reply], data: st.DataObject
) -> None:
    text, expected = made
    cuts = sorted(data.draw(st.lists(st.integers(1, len(text) - 1), max_size=8)))
    reading, found = Reading(), None
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        assert found is None
        if end > begin:
            found = reading.feed(text[begin:end])
    assert found == expected


@given(answers(), st.data())
def test_a_part_of_an_answer_is_none(made: tuple[bytes, Reply], data: st.DataObject) -> None:
    text, _ = made
    part = text[: data.draw(st.integers(0, len(text) - 1))]
    reading = Reading()
    assert reading.feed(part) is None
    assert reading.end() is None


def test_an_answer_without_length_ends_with_the_connection() -> None:
    reading = Reading()
    assert reading.feed(b"HTTP/1.1 200 OK\r\n\r\nall of ") is None
    assert reading.feed(b"it") is None
    assert reading.end() == Reply(200, b"all of it", is_reusable=False)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 abc\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", id="a length below none"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nmore", id="more than it says"),
        pytest.param(ANSWER + ANSWER, id="two answers"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", id="no size of a chunk"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            id="a long chunk",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, id="a head without end"),
    ],
)
def test_what_is_no_answer_is_told(text: bytes) -> None:
    with pytest.raises(UnreadableError):
        Reading().feed(text)


# Connections, against a server on this machine that answers as it is told.

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """What was asked of it, connection by connection."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.url = ""
        self.n_connections = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[Server]:
    server = Server(serve)
    listening = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()


async def request(reader: asyncio.StreamReader) -> bytes:
    """Head and body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


def answering(*given_answers: bytes, heard: list[bytes] | None = None) -> Serve:
    """Answers one request after another with these, the last for all that follow."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(100):
            asked = await request(reader)
            if heard is not None:
                heard.append(asked)
            writer.write(given_answers[min(number, len(given_answers) - 1)])
            await writer.drain()

    return serve


async def ask(
    made: WriteConnections, path: str = "/pods", body: bytes = b"{}", seconds: float = 5.0
) -> Reply:
    return await made.send_request(
        "POST", path, "Accept: application/json\r\n", body, seconds=seconds
    )


async def test_a_connection_is_used_again() -> None:
    async with serving(answering(ANSWER)) as server:
        made = WriteConnections(server.url, None, most=4)
        for _ in range(3):
            assert await ask(made) == Reply(201, b"ok", is_reusable=True)
        assert server.n_connections == 1
        made.close()


async def test_a_request_is_what_was_asked() -> None:
    heard: list[bytes] = []
    async with serving(answering(ANSWER, heard=heard)) as server:
        where = server.url.replace("http://", "http://me:p%40ss@") + "/k8s/clusters/c-1/"
        made = WriteConnections(where, None, most=1)
        await ask(made, "/api/a b\r\nX: y", b'{"a": 1}')
        made.close()
    head, _, body = heard[0].partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert first == "POST /k8s/clusters/c-1/api/a%20b%0D%0AX:%20y HTTP/1.1"
    assert sorted(fields) == [
        "Accept: application/json",
        "Authorization: Basic bWU6cEBzcw==",
        "Content-Length: 8",
        f"Host: {server.url.removeprefix('http://')}",
    ]
    assert body == b'{"a": 1}'


@pytest.mark.parametrize(
    "last", [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"],
)  # fmt: skip
async def test_a_connection_that_the_server_ends_is_not_used_again(last: bytes) -> None:
    async with serving(answering(last)) as server:
        made = WriteConnections(server.url, None, most=1)
        for _ in range(3):
            assert (await ask(made)).status == 200
        assert server.n_connections == 3


async def test_a_connection_closed_while_idle_is_not_used_again() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(ANSWER)

    async with serving(once) as server:
        made = WriteConnections(server.url, None, most=1)
        for _ in range(3):
            assert (await ask(made)).status == 201
            await asyncio.sleep(0.05)
        assert server.n_connections == 3


async def test_a_connection_that_was_idle_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who closes it first never writes into one that the other is about to close."""
    async with serving(answering(ANSWER)) as server:
        made = WriteConnections(server.url, None, most=1)
        await ask(made)
        monkeypatch.setattr(writes, "_IDLE_SECONDS", -1.0)
        await ask(made)
        assert server.n_connections == 2
        made.close()


async def test_no_answer_is_an_error_and_no_later_request_gets_it() -> None:
    """An answer that comes late must not be taken for that of the next pod."""

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await request(reader):
            if b"first" in asked:
                await asyncio.sleep(0.3)
            writer.write(ANSWER.replace(b"ok", b"no") if b"first" in asked else ANSWER)

    async with serving(late) as server:
        made = WriteConnections(server.url, None, most=1)
        with pytest.raises(TimeoutError):
            await ask(made, "/first", seconds=0.1)
        assert (await ask(made, "/second")).payload == b"ok"
        await asyncio.sleep(0.4)
        assert (await ask(made, "/third")).payload == b"ok"
        made.close()


async def test_a_request_that_is_given_up_gives_its_place_back() -> None:
    async with serving(answering(ANSWER)) as server:
        made = WriteConnections(server.url, None, most=1)
        for _ in range(3):
            task = asyncio.create_task(ask(made))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await ask(made)).status == 201
        made.close()


async def test_a_connection_lost_before_the_answer_is_an_error() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await request(reader)

    async with serving(silent) as server:
        with pytest.raises(OSError, match="closed"):
            await ask(WriteConnections(server.url, None, most=1))


async def test_nobody_there_is_an_error() -> None:
    async with serving(answering(ANSWER)) as server:
        pass
    with pytest.raises(ConnectionRefusedError):
        await ask(WriteConnections(server.url, None, most=1))


async def test_no_more_connections_are_open_than_are_allowed() -> None:
    async with serving(answering(ANSWER)) as server:
        made = WriteConnections(server.url, None, most=3)
        found = await asyncio.gather(*(ask(made) for _ in range(50)))
        assert {answer.status for answer in found} == {201}
        assert server.n_connections == 3
        made.close()


# The client that they are part of.


@asynccontextmanager
async def client(
    answer: bytes, bearer: Callable[[], str | None], heard: list[bytes]
) -> AsyncIterator[ApiClient]:
    async with serving(answering(answer, heard=heard)) as server:
        api = ApiClient(Access(url=server.url, bearer=bearer))
        try:
            yield api
        finally:
            await api.close()


async def test_the_client_writes_as_the_bearer_of_its_token() -> None:
    heard: list[bytes] = []
    async with client(ANSWER, lambda: "secret", heard) as api:
        assert await api.send("PATCH", "/x", {"a": 1}, content_type="application/merge-patch+json") == b"ok"  # fmt: skip
    head = heard[0].decode()
    assert "\r\nAuthorization: Bearer secret\r\n" in head
    assert "\r\nContent-Type: application/merge-patch+json\r\n" in head
    assert head.endswith('{"a":1}')


async def test_a_token_that_no_header_may_have_is_not_sent() -> None:
    """It could say more to the API server than who asks."""
    heard: list[bytes] = []
    async with client(ANSWER, lambda: "secret\r\nImpersonate-User: admin", heard) as api:
        await api.send("POST", "/x", {})
    assert b"Impersonate" not in heard[0]


@pytest.mark.parametrize(
    ("status", "message"), [(409, "it has changed"), (302, "elsewhere"), (503, "too busy")]
)
async def test_a_write_that_did_not_succeed_is_an_error_with_its_words(
    status: int, message: str
) -> None:
    """A write is not followed to elsewhere: who answers there may have written nothing."""
    body = b'{"reason": "Why", "message": "%b"}' % message.encode()
    answer = b"HTTP/1.1 %d X\r\nLocation: /login\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )
    async with client(answer, lambda: None, []) as api:
        with pytest.raises(ApiError) as raised:
            await api.send("POST", "/x", {})
    assert (raised.value.status, raised.value.reason, raised.value.message) == (
        status,
        "Why",
        message,
    )


async def test_what_is_no_answer_leaves_the_outcome_unknown() -> None:
    async with client(b"no HTTP at all\r\n\r\n", lambda: None, []) as api:
        with pytest.raises(ApiError) as raised:
            await api.send("POST", "/x", {})
    assert raised.value.status == 0
