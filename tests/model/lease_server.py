"""One lease as the API server keeps it, and a clock: what a replica needs to lead or to stand by."""

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from scheduler.errors import ApiError

Json = dict[str, Any]


class Api:
    """One lease; ``lose`` swallows the next answer to a write."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.version = 0
        self.lose = False
        # Status and chunks of the next watch.
        self.news: tuple[int, list[bytes]] = (200, [])
        self.watched: list[str] = []

    async def get(self, _: str) -> Json:
        if self.lease is None:
            raise ApiError(404, "NotFound", "")
        return copy.deepcopy(self.lease)

    @asynccontextmanager
    async def stream(
        self, _: str, params: dict[str, str], *, silence_seconds: float
    ) -> AsyncIterator[Any]:
        assert silence_seconds > 0.0
        assert params["fieldSelector"] == "metadata.name=l"
        self.watched.append(params["resourceVersion"])
        status, news = self.news

        async def chunks() -> AsyncIterator[bytes]:
            for chunk in news:
                yield chunk

        content = SimpleNamespace(iter_any=chunks)
        yield SimpleNamespace(status=status, content=content)

    async def send(self, method: str, _: str, body: Json) -> bytes:
        if method == "PUT" and body["metadata"]["resourceVersion"] != str(self.version):
            raise ApiError(409, "Conflict", "")
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        if self.lose:
            self.lose = False
            raise ApiError(0, "Timeout", "no answer")
        return b""


class Notes:
    """Hands nothing on."""

    def write_annotations(self) -> dict[str, str]:
        return {}

    def read_annotations(self, _: dict[str, str]) -> None:
        """Takes nothing over."""


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now
