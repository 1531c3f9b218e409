"""The few API calls, as bytes in and bytes out."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
import structlog
from kubernetes import client as kubernetes_client

from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube import kubeconfig as kubeconfigs
from scheduler.kube.writes import WriteConnections

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON = "application/json"
_BEARER_SECONDS = 10.0
_log = structlog.get_logger("evenkeel.client")
TRANSPORT_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


def _give_no_token() -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where the API server is, and the credentials for it.

    ``bearer`` gives the present token: service-account tokens rotate and those of exec plugins expire, so it is
    called again every few seconds.
    """

    url: str
    ca_file: str | None = None
    bearer: Callable[[], str | None] = _give_no_token
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True


class TooLarge(Exception):  # noqa: N818
    """An answer had more bytes than the caller takes."""


class Expected(NamedTuple):
    """The answer that a caller expects.

    Attributes:
        accept: the media type.
        seconds: how long the answer may take.
        most_bytes: the most bytes of the answer; 0 for any number.
    """

    accept: str = JSON
    seconds: float = 5.0
    most_bytes: int = 0


SMALL = Expected()
_OBJECT = Expected(seconds=30.0)


def load_access(kubeconfig: str | None, context: str | None = None) -> Access:
    """Load access from a kubeconfig file, from $KUBECONFIG, or from the pod's service account.

    Raises:
        BadInput: there is none, or it cannot be read.
    """
    configuration = kubernetes_client.Configuration()
    kubeconfigs.load_access(configuration, kubeconfig, context)

    def bearer() -> str | None:
        key: str = configuration.get_api_key_with_prefix("BearerToken", "authorization") or ""
        return key.removeprefix("Bearer ") or None

    return Access(
        url=configuration.host.rstrip("/"),
        ca_file=configuration.ssl_ca_cert,
        bearer=bearer,
        cert_file=configuration.cert_file,
        key_file=configuration.key_file,
        verify=configuration.verify_ssl,
    )


class ApiClient:
    """Persistent connections to one API server: those of a session for reads, others for writes.

    Attributes:
        access: where the API server is, and the credentials.
    """

    def __init__(
        self, access: Access, *, connections: int = 64, user_agent: str = "evenkeel"
    ) -> None:
        self.access = access
        self._base = access.url.rstrip("/")
        self._bearer = ""
        self._ask_again_at = 0.0
        self._user_agent = user_agent
        tls = _make_tls(access)
        self._writes = WriteConnections(access.url, tls, most=connections)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, ssl=True if tls is None else tls),
            headers={"User-Agent": user_agent},
            auto_decompress=True,
        )

    async def close(self) -> None:
        """Close all connections."""
        self._writes.close()
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        expect: Expected = SMALL,
    ) -> bytes:
        """Make one call, and return its answer.

        Raises:
            TooLarge: the answer has more bytes than expected.
            ApiError: the API server refused (with the Status object's reason), or gave no answer in time.
        """
        try:
            if body is not None:
                return await self._write(method, path, body, content_type, params, expect)
            async with self._session.request(
                method,
                self._base + path,
                params=params,
                headers=self._make_headers(expect.accept),
                timeout=aiohttp.ClientTimeout(total=expect.seconds),
            ) as response:
                payload = await _read_body(response, expect.most_bytes)
                return _check_answer(response.status, payload)
        except TimeoutError as error:
            raise ApiError(
                0, "Timeout", f"{method} {path}: no answer in {expect.seconds} s"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ApiError(0, "Connection", f"{method} {path}: {error}") from error

    async def _write(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str,
        params: Mapping[str, str] | None,
        expect: Expected,
    ) -> bytes:
        """Make a call with a body; its answer may have any size."""
        authorization = self._get_authorization()
        bearer = f"Authorization: {authorization}\r\n" if authorization else ""
        fields = (
            f"User-Agent: {self._user_agent}\r\n{bearer}"
            f"Accept: {expect.accept}\r\nContent-Type: {content_type}\r\n"
        )
        query = urlencode(params or {})
        answer = await self._writes.send_request(
            method, path, fields, body, query=query, seconds=expect.seconds
        )
        return _check_answer(answer.status, answer.payload)

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """Read an object or list as plain values.

        Raises:
            ApiError: as ``request``; or the answer is no JSON, because something else than the API server answers.
        """
        payload = await self.request("GET", path, params=params, expect=_OBJECT)
        try:
            return msgspec.json.decode(payload)
        except msgspec.MsgspecError as error:
            raise ApiError(0, "Unreadable", f"GET {path}: {error}") from error

    async def send(
        self,
        method: str,
        path: str,
        body: object,
        *,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        """Make a call with a body of plain values."""
        encoded = msgspec.json.encode(body)
        return await self.request(
            method, path, body=encoded, content_type=content_type, params=params
        )

    def stream(self, path: str, params: Mapping[str, str], *, silence_seconds: float) -> Any:
        """Open a watch: a context manager of a response; it fails if nothing arrives for so long."""
        return self._session.get(
            self._base + path,
            params=params,
            headers=self._make_headers(JSON),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=silence_seconds),
        )

    def _make_headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept}
        authorization = self._get_authorization()
        if authorization:
            headers["Authorization"] = authorization
        return headers

    def _get_authorization(self) -> str:
        # Reading the token costs a tenth of a bind, and tokens live for minutes at least.
        now = asyncio.get_running_loop().time()
        if now >= self._ask_again_at:
            self._ask_again_at = now + _BEARER_SECONDS
            try:
                token = self.access.bearer() or ""
                if not (token.isascii() and token.isprintable()):
                    raise ValueError("a token of characters that no header may have")
            except Exception as error:  # noqa: BLE001 - whatever a plugin or a file raises
                # The last token is probably still valid; if not, the API server will say so.
                _log.warning("token not renewed", error=str(error))
            else:
                self._bearer = f"Bearer {token}" if token else ""
        return self._bearer


def _check_answer(status: int, payload: bytes) -> bytes:
    """Return the payload of an answer; raise if it is an error."""
    if answers.is_failure(status):
        raise answers.make_error(status, payload)
    return payload


async def _read_body(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    if not most_bytes:
        return await response.read()
    chunks, n_bytes = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        n_bytes += len(chunk)
        if n_bytes > most_bytes:
            # The rest is not read, so the connection cannot be used again.
            response.close()
            raise TooLarge
    return b"".join(chunks)


def get_backoff(attempt: int, *, first: float = 0.1, most: float = 10.0) -> float:
    """Return the seconds before attempt number ``attempt`` + 1: they double, and half of them is random."""
    wait = min(most, first * 2.0 ** min(attempt, 20))
    return wait * (0.5 + random.random() / 2)  # noqa: S311 - jitter


def _make_tls(access: Access) -> ssl.SSLContext | None:
    if urlsplit(access.url).scheme != "https":
        return None
    context = ssl.create_default_context(cafile=access.ca_file)
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.cert_file:
        context.load_cert_chain(access.cert_file, access.key_file)
    return context
