"""Answers reviews over HTTPS, each at its path."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import structlog

from scheduler.errors import BadInput, join_lines
from scheduler.kube.report.metrics.reviews import Outcome, ReviewCounts
from scheduler.kube.webhook import reviews
from scheduler.kube.webhook.connections import Connection, Response
from scheduler.kube.webhook.http_requests import HttpRequest
from scheduler.kube.webhook.keeping import Pair

_SWEEP_SECONDS, _STOP_SECONDS = 1.0, 1.0
_HANDSHAKE_SECONDS = 5.0
_JSON = "application/json"
Answering = Callable[[bytes], reviews.Answer]
_log = structlog.get_logger("evenkeel.webhook")


class ReviewServer:
    """A server in the running loop.

    Attributes:
        port: where it listens; 0 before the start.
    """

    def __init__(self, answers: Mapping[str, Answering], counts: ReviewCounts) -> None:
        """Make a server that does not listen yet.

        Args:
            answers: by path, one of ``WEBHOOKS``, what answers a review.
            counts: what was answered.
        """
        self._answers, self._counts = answers, counts
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._open: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self.port = 0

    def use(self, pair: Pair) -> None:
        """Use a certificate for all connections from now on.

        Raises:
            BadInput: it is none, or the key is another one's.
        """
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("tls.crt", "tls.key")]
            for path, text in zip(files, pair, strict=True):
                path.write_bytes(text)
            try:
                self._tls.load_cert_chain(files[0], files[1])
            except (ssl.SSLError, OSError) as error:
                raise BadInput("certificate", f"cannot be used: {join_lines(error)}") from error

    async def start(self, host: str, port: int) -> None:
        """Listen, with the certificate that it was given; port 0 takes a free port.

        Raises:
            BadInput: it cannot listen there.
        """
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: Connection(self._answer, self._open),
                host,
                port,
                ssl=self._tls,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            )
        except OSError as error:
            raise BadInput("webhook.port", f"cannot listen at {port}: {error.strerror}") from error
        self.port = self._server.sockets[0].getsockname()[1]
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is None or self._sweeping is None:
            return
        self._sweeping.cancel()
        self._server.close()
        for one in self._open:
            one.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                while self._open:
                    await asyncio.sleep(_STOP_SECONDS / 100)
        for one in list(self._open):
            one.abort()

    async def _sweep(self) -> None:
        """Close connections whose clients keep them open in vain."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = time.monotonic()
            for one in list(self._open):
                if now > one.ends_at:
                    one.abort()

    def _answer(self, request: HttpRequest) -> Response:
        path = request.path.removeprefix("/")
        answer = self._answers.get(path)
        if answer is None:
            return Response(HTTPStatus.NOT_FOUND)
        if request.method != "POST":
            return Response(HTTPStatus.METHOD_NOT_ALLOWED)
        began, outcome = time.perf_counter(), Outcome.FAILED
        try:
            made, outcome = answer(request.body)
            return Response(HTTPStatus.OK, _JSON, made)
        except reviews.NotReview as error:
            return Response(HTTPStatus.BAD_REQUEST, body=f"{error}\n".encode(errors="replace"))
        except Exception as error:  # noqa: BLE001 - what a stranger writes must not end the server
            _log.exception("a review has no answer", error=join_lines(error))
            return Response(HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            self._counts.count(path, outcome, time.perf_counter() - began)
