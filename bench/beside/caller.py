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
from bench.rows.row import Row, Size

PODS = "/api/v1/namespaces/default/pods"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LIST_OF_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_MERGE = {"Content-Type": "application/merge-patch+json"}
_TRIES = 20


class Change(msgspec.Struct):
    """A line of a watch."""

    type: str
    object: dict[str, Any]


_changes = msgspec.json.Decoder(Change)


class Caller:
    """One API server, a row and its size.

    Attributes:
        row: what is measured.
        size: how large.
        scheduler: the name that incoming pods give.
    """

    def __init__(
        self, session: aiohttp.ClientSession, row: Row, size: Size, scheduler: str
    ) -> None:
        self._session = session
        self.row, self.size, self.scheduler = row, size, scheduler

    async def call(self, method: str, path: str, body: object = None) -> bytes:
        """One call; a PATCH is a merge patch. What it is about may be gone: then there is no answer.

        Raises:
            RuntimeError: it was refused, or the API server stayed too busy.
        """
        data = None if body is None else msgspec.json.encode(body)
        headers = _MERGE if method == "PATCH" else None
        for _ in range(_TRIES):
            async with self._session.request(method, path, data=data, headers=headers) as answer:
                payload = await answer.read()
                if answer.status == 404:
                    return b""
                if answer.status < 400:
                    return payload
                if answer.status != 429:
                    break
            await asyncio.sleep(0.1)
        raise RuntimeError(f"{method} {path}: {answer.status} {payload.decode(errors='replace')}")

    async def names(self, path: str, **selectors: str) -> tuple[dict[str, str], str]:
        """Names and uids of what is there, and the version to watch from."""
        headers = {"Accept": _LIST_OF_METADATA}
        async with self._session.get(path, params=selectors, headers=headers) as answer:
            answer.raise_for_status()
            found = msgspec.json.decode(await answer.read())
        metas = (item["metadata"] for item in found["items"])
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
        headers = {
            "Authorization": f"Bearer {given.token}", "Content-Type": "application/json"
        }  # fmt: skip
        trust = ssl.create_default_context(cafile=given.ca_file)
        async with aiohttp.ClientSession(
            base_url=given.url,
            headers=headers,
            connector=aiohttp.TCPConnector(limit=64, ssl=trust),
        ) as session:
            size = Size(given.nodes, given.pods)
            await work(Caller(session, table.BY_NAME[given.row], size, given.scheduler))

    uvloop.run(run())
