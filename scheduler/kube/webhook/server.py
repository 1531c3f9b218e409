"""Answers reviews over HTTPS, each at its path."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path

import structlog
from aiohttp import web

from scheduler.errors import BadInput, join_lines
from scheduler.kube.report.metrics.reviews import Outcome, ReviewCounts
from scheduler.kube.webhook import reviews
from scheduler.kube.webhook.keeping import Pair

# A review has an object twice at most, and the API server takes none of more than 3 MiB.
_BODY_BYTES = 8 << 20
_BODY_SECONDS = 5.0
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
        self._counts = counts
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        app = web.Application(client_max_size=_BODY_BYTES)
        for path, answer in answers.items():
            app.router.add_post(f"/{path}", self._make_handler(path, answer))
        self._runner = web.AppRunner(app, access_log=None)
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
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=self._tls).start()
        except OSError as error:
            raise BadInput("webhook.port", f"cannot listen at {port}: {error.strerror}") from error  # fmt: skip
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    def _make_handler(
        self, path: str, answer: Answering
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.Response:
            began, result = time.perf_counter(), Outcome.FAILED
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    body = await request.read()
                made, result = answer(body)
                return web.Response(body=made, content_type=_JSON)
            except TimeoutError:
                return web.Response(status=HTTPStatus.REQUEST_TIMEOUT.value)
            except reviews.NotReview as error:
                return web.Response(status=HTTPStatus.BAD_REQUEST.value, text=f"{error}\n")
            except web.HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 - what a stranger writes must not end the server
                _log.exception("a review has no answer", error=join_lines(error))
                return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR.value)
            finally:
                self._counts.count(path, result, time.perf_counter() - began)

        return handle
