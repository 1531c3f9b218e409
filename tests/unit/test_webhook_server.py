"""The webhook over HTTPS: what it answers, and its certificate while it is served."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from scheduler.api import kinds, names
from scheduler.api.admission.settings import Served
from scheduler.api.queues.settings import WebhookSettings
from scheduler.errors import BadInput
from scheduler.kube.client import Access
from scheduler.kube.report.metrics.reviews import ReviewCounts
from scheduler.kube.webhook import certificates, connections
from scheduler.kube.webhook.certificates import Certificates
from scheduler.kube.webhook.keeping import Pair
from scheduler.kube.webhook.server import ReviewServer
from scheduler.kube.webhook.webhook import Answers, Webhook
from tests.unit.webhook_reviews import KNOWN, QUEUE, write_review

Json = dict[str, Any]
_JOB: Json = {"metadata": {"labels": QUEUE}, "spec": {"template": {"spec": {}}}}

_ANSWERS = Answers(of_queues=KNOWN)


def make_certificates() -> Certificates:
    made = certificates.renew(None, ("localhost",), datetime.now(UTC))
    assert made is not None
    return made


def make_trust(made: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=made.authorities.decode())


@pytest.fixture
async def served() -> AsyncIterator[tuple[ReviewServer, Certificates]]:
    made, server = make_certificates(), ReviewServer(_ANSWERS.list_by_path(), ReviewCounts())
    server.use(Pair(made.certificate, made.key))
    await server.start("127.0.0.1", 0)
    try:
        yield server, made
    finally:
        await server.stop()


async def _post(server: ReviewServer, tls: ssl.SSLContext, path: str, body: bytes) -> tuple[int, bytes]:  # fmt: skip
    # A new connection each time.
    connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post(f"https://localhost:{server.port}{path}", data=io.BytesIO(body)) as answer,
    ):
        return answer.status, await answer.read()


async def test_reviews_are_answered(served: tuple[ReviewServer, Certificates]) -> None:
    server, made = served
    body = write_review(kinds.JOBS, _JOB)
    status, answer = await _post(server, make_trust(made), "/mutate", body)
    assert (status, msgspec.json.decode(answer)["response"]["patchType"]) == (200, "JSONPatch")
    status, answer = await _post(server, make_trust(made), "/validate", body)
    assert (status, msgspec.json.decode(answer)["response"]["allowed"]) == (200, True)


async def test_what_is_no_review_is_refused_and_the_server_goes_on(
    served: tuple[ReviewServer, Certificates],
) -> None:
    server, made = served
    tls = make_trust(made)
    assert (await _post(server, tls, "/mutate", b"{"))[0] == 400
    assert (await _post(server, tls, "/mutate", b" " * (9 << 20)))[0] == 413
    assert (await _post(server, tls, "/elsewhere", b"{}"))[0] == 404
    assert (await _post(server, tls, "/mutate", write_review(kinds.JOBS, _JOB)))[0] == 200


async def test_a_failure_of_ours_is_an_answer(
    served: tuple[ReviewServer, Certificates],
) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError

    _, made = served
    known = KNOWN._replace(is_managed=fail)  # type: ignore[arg-type]
    broken = ReviewServer(Answers(of_queues=known).list_by_path(), ReviewCounts())
    broken.use(Pair(made.certificate, made.key))
    await broken.start("127.0.0.1", 0)
    try:
        assert (await _post(broken, make_trust(made), "/mutate", write_review(kinds.JOBS, _JOB)))[
            0
        ] == 500
    finally:
        await broken.stop()


async def test_reviews_are_counted_by_what_was_answered(
    served: tuple[ReviewServer, Certificates],
) -> None:
    server, made = served
    tls = make_trust(made)
    bad = {**_JOB, "metadata": {**_JOB["metadata"], "labels": {names.KUEUE_QUEUE: "no/name"}}}
    await _post(server, tls, "/mutate", write_review(kinds.JOBS, _JOB))
    await _post(server, tls, "/validate", write_review(kinds.JOBS, _JOB))
    await _post(server, tls, "/validate", write_review(kinds.JOBS, bad))
    await _post(server, tls, "/validate", b"{")
    await _post(server, tls, "/elsewhere", b"{")
    counted, seconds = server._counts.collect()
    found = {tuple(one.labels.values()): one.value for one in counted.samples}
    assert {key: n for key, n in found.items() if n} == {
        ("mutate", "changed"): 1,
        ("validate", "allowed"): 1,
        ("validate", "refused"): 1,
        ("validate", "failed"): 1,
    }
    assert found["mutate", "refused"] == 0
    n = {one.labels["webhook"]: one.value for one in seconds.samples if one.name.endswith("_count")}
    assert n == {"mutate": 1, "validate": 3, "mutate-device-pods": 0}


async def test_a_new_certificate_is_used_without_a_restart(
    served: tuple[ReviewServer, Certificates],
) -> None:
    server, old = served
    new = make_certificates()
    server.use(Pair(new.certificate, new.key))
    assert (await _post(server, make_trust(new), "/mutate", write_review(kinds.JOBS, _JOB)))[
        0
    ] == 200
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await _post(server, make_trust(old), "/mutate", b"{}")


async def test_a_certificate_that_is_none_is_refused_and_the_old_one_stays(
    served: tuple[ReviewServer, Certificates],
) -> None:
    server, made = served
    with pytest.raises(BadInput, match="certificate: cannot be used"):
        server.use(Pair(b"nothing", made.key))
    with pytest.raises(BadInput, match="certificate: cannot be used"):
        server.use(Pair(made.certificate, make_certificates().key))
    assert (await _post(server, make_trust(made), "/mutate", write_review(kinds.JOBS, _JOB)))[
        0
    ] == 200


async def test_a_port_that_is_taken_is_named(served: tuple[ReviewServer, Certificates]) -> None:
    server, made = served
    other = ReviewServer(_ANSWERS.list_by_path(), ReviewCounts())
    other.use(Pair(made.certificate, made.key))
    with pytest.raises(BadInput, match=r"webhook\.port"):
        await other.start("127.0.0.1", server.port)
    await other.stop()


async def test_a_webhook_serves_once_there_is_a_certificate_and_ends_when_it_is_cancelled(
    tmp_path: Path,
) -> None:
    settings = WebhookSettings(port=0, certificates=str(tmp_path))
    webhook = Webhook(
        Served(settings, for_queues=True, for_devices=False),
        Access(url="http://nowhere"),
        "127.0.0.1",
        _ANSWERS,
    )
    running = asyncio.create_task(webhook.run())
    while webhook.trouble is None:
        await asyncio.sleep(0.01)
    assert "there is no such file" in webhook.trouble.message
    assert webhook.port == 0
    made = make_certificates()
    (tmp_path / "tls.crt").write_bytes(made.certificate)
    (tmp_path / "tls.key").write_bytes(made.key)
    while not webhook.port:
        await asyncio.sleep(0.01)
    connector = aiohttp.TCPConnector(ssl=make_trust(made))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post(
            f"https://localhost:{webhook.port}/mutate", data=write_review(kinds.JOBS, _JOB)
        ) as answer,
    ):
        assert answer.status == 200
    assert webhook.trouble is None
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_connections_without_a_request_are_closed(
    served: tuple[ReviewServer, Certificates], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_REQUEST_SECONDS", 0.1)
    server, made = served
    tls = make_trust(made)
    reader, writer = await asyncio.open_connection("localhost", server.port, ssl=tls)
    idle, idle_writer = await asyncio.open_connection("localhost", server.port, ssl=tls)
    writer.write(b"POST /mutate HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 10) == b""
    # The other one may be used still.
    body = write_review(kinds.JOBS, _JOB)
    idle_writer.write(b"POST /mutate?timeout=5s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)  # fmt: skip
    assert (await idle.readline()).startswith(b"HTTP/1.1 200")
    for one in (writer, idle_writer):
        one.close()


async def test_other_methods_and_paths(served: tuple[ReviewServer, Certificates]) -> None:
    server, made = served
    connector = aiohttp.TCPConnector(ssl=make_trust(made))
    async with aiohttp.ClientSession(connector=connector) as session:
        for method, path, status in (("GET", "/mutate", 405), ("PUT", "/mutate", 405), ("GET", "/", 404), ("POST", "//mutate", 404)):  # fmt: skip
            url = f"https://localhost:{server.port}{path}"
            async with session.request(method, url) as answer:
                assert answer.status == status
