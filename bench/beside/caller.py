"""What these programs have in common: their command line, calls to the API server, and a watch for ever."""

from __future__ import annotations

import argparse
import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import aiohttp
import msgspec
import uvloop

from bench.rows import table
from bench.rows.row import Size
from scheduler.kube.writes import WriteConnections

PODS = "/api/v1/namespaces/default/pods"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LIST_OF_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_TRIES, _SECONDS = 20, 60.0
# At once, as many as Evenkeel's client has.
_CONNECTIONS = 64


class Change(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: dict[str, Any]


_changes = msgspec.json.Decoder(Change)


class Caller:
    """One API server, a row and its size. What is written goes through Evenkeel's own connections.

    Attributes:
        row: what is measured.
        size: how large.
        scheduler: the name that incoming pods give.
    """

    def __init__(
        self, session: aiohttp.ClientSession, writes: WriteConnections, given: argparse.Namespace
    ) -> None:
        self._session, self._writes = session, writes
        self._fields = f"Authorization: Bearer {given.token}\r\nAccept: application/json\r\n"
        self.row, self.size = table.BY_NAME[given.row], Size(given.nodes, given.pods)
        self.scheduler: str = given.scheduler

    async def call(self, method: str, path: str, body: object) -> None:
        """One write; a PATCH is a merge patch. That what it is about has gone is no error.

        Raises:
            RuntimeError: it was refused, or the API server stayed too busy.
        """
        data = msgspec.json.encode(body)
        kind = "merge-patch+json" if method == "PATCH" else "json"
        fields = f"{self._fields}Content-Type: application/{kind}\r\n"
        for _ in range(_TRIES):
            answer = await self._writes.send_request(method, path, fields, data, seconds=_SECONDS)
            if answer.status < 300 or answer.status == 404:
                return
            if answer.status != 429:
                break
            await asyncio.sleep(0.1)
        raise RuntimeError(
            f"{method} {path}: {answer.status} {answer.payload.decode(errors='replace')}"
        )

    async def names(self, path: str, **selectors: str) -> tuple[dict[str, str], str]:
        """Names and uids of what is there, and the version to watch from."""
        headers = {"Accept": _LIST_OF_METADATA}
        async with self._session.get(path, params=selectors, headers=headers) as answer:
            answer.raise_for_status()
            found = msgspec.json.decode(await answer.read())
        # Of metadata alone the API server writes an empty list as null.
        metas = (item["metadata"] for item in found["items"] or ())
        uids = {meta["name"]: meta["uid"] for meta in metas}
        return uids, found["metadata"]["resourceVersion"]

    async def changes(
        self, path: str, version: str = "0", *, whole: bool = False, **selectors: str
    ) -> AsyncIterator[Change]:
        """All that changes from a version on, for ever; metadata alone unless ``whole``."""
        headers = {} if whole else {"Accept": _METADATA}
        timeout = aiohttp.ClientTimeout(total=None)
        while True:
            asked = {
                "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version, **selectors
            }  # fmt: skip
            async with self._session.get(
                path, params=asked, headers=headers, timeout=timeout
            ) as answer:
                answer.raise_for_status()
                rest = b""
                async for chunk in answer.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        change = _changes.decode(line)
                        if change.type == "ERROR":
                            raise RuntimeError(f"watch {path}: {change.object}")
                        version = change.object["metadata"]["resourceVersion"]
                        if change.type != "BOOKMARK":
                            yield change


def main(work: Callable[[Caller], Coroutine[Any, Any, None]]) -> None:
    """Run a program: where the API server is, and what is measured, come from the command line."""
    parser = argparse.ArgumentParser()
    for option in ("--url", "--token", "--ca-file", "--row", "--scheduler"):
        parser.add_argument(option, required=True)
    for option in ("--nodes", "--pods"):
        parser.add_argument(option, required=True, type=int)
    given = parser.parse_args()

    async def run() -> None:
        trust = ssl.create_default_context(cafile=given.ca_file)
        async with aiohttp.ClientSession(
            base_url=given.url,
            headers={"Authorization": f"Bearer {given.token}"},
            connector=aiohttp.TCPConnector(ssl=trust),
        ) as session:
            writes = WriteConnections(given.url, trust, most=_CONNECTIONS)
            await work(Caller(session, writes, given))

    uvloop.run(run())
