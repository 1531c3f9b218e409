"""The few API calls that the agents make, against any API server."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec

Json = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()
_RETRY_SECONDS = 0.2
_ATTEMPTS = 10


class CallError(Exception):
    """An API call was refused; carries the HTTP code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Client:
    """A session with one API server."""

    def __init__(
        self, url: str, token: str | None = None, context: ssl.SSLContext | None = None
    ) -> None:
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(limit=64, ssl=context if context is not None else True)
        self._session = aiohttp.ClientSession(headers=headers, connector=connector)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""
        return await self._call("GET", path, query=query)

    async def patch(self, path: str, body: Json, media: str = MERGE) -> Json:
        """Patch an object."""
        return await self._call("PATCH", path, body, media)

    async def post(self, path: str, body: Json) -> Json:
        """Create an object."""
        return await self._call("POST", path, body)

    async def delete(self, path: str, body: Json | None = None) -> Json:
        """Delete an object."""
        return await self._call("DELETE", path, body)

    async def follow(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[str, Json]]:
        """Yield (type, object) for ever: those of a list, then of its watch, and anew when either fails.

        After every new list, objects that are gone are yielded as DELETED, so the reader may
        treat the sequence as one unbroken watch.
        """
        known: dict[str, Json] = {}
        while True:
            try:
                async for kind, item in self._list_and_watch(path, query or {}, known):
                    yield kind, item
            except (CallError, aiohttp.ClientError, TimeoutError, ConnectionError):
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list_and_watch(
        self, path: str, query: Mapping[str, str], known: dict[str, Json]
    ) -> AsyncIterator[tuple[str, Json]]:
        listed = await self.get(path, query)
        present = {item["metadata"]["uid"]: item for item in listed["items"]}
        gone = [item for uid, item in known.items() if uid not in present]
        known.clear()
        known.update(present)
        for item in gone:
            yield "DELETED", item
        for item in present.values():
            yield "ADDED", item
        version = listed["metadata"]["resourceVersion"]
        while True:
            async for kind, item in self._watch(path, {**query, "resourceVersion": version}):
                if kind == "ERROR":
                    # The version is too old, most likely: only a new list helps.
                    return
                version = item["metadata"]["resourceVersion"]
                uid = item["metadata"].get("uid", "")
                if kind == "BOOKMARK":
                    continue
                if kind == "DELETED":
                    known.pop(uid, None)
                else:
                    known[uid] = item
                yield kind, item

    async def _watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[tuple[str, Json]]:
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        timeout = aiohttp.ClientTimeout(total=None, sock_read=None)
        async with self._session.get(self._url + path, params=asked, timeout=timeout) as response:
            if response.status != 200:
                raise CallError(response.status, await response.text())
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = _DECODER.decode(line)
                    yield event["type"], event["object"]

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        media: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Json:
        data = _ENCODER.encode(body) if body is not None else None
        headers = {"Content-Type": media} if data is not None else {}
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_RETRY_SECONDS)
            try:
                async with self._session.request(
                    method, self._url + path, params=query, data=data, headers=headers
                ) as response:
                    raw = await response.read()
            except aiohttp.ClientConnectionError:
                # All requests of agents may safely be sent twice.
                continue
            if response.status >= 300:
                raise CallError(response.status, _read_message(raw))
            answer: Json = _DECODER.decode(raw)
            return answer
        raise CallError(503, f"no connection to {self._url}")


def _read_message(raw: bytes) -> str:
    """Return the message of a Status, or the body as it is if it is no Status."""
    try:
        return str(_DECODER.decode(raw)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return raw.decode(errors="replace")
