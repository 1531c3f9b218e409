"""Writes what KAI's queues have used over time on their objects, every five minutes: a restart goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from scheduler.api import kinds, names
from scheduler.api.queues.kai_usage import write_record
from scheduler.engine.engine import Engine
from scheduler.engine.questions.kai_queues import UsageOfKaiQueues
from scheduler.errors import ApiError
from scheduler.kube import client
from scheduler.kube.client import ApiClient

_SECONDS = 300.0
_KIND = kinds.KAI_QUEUES
_log = structlog.get_logger("evenkeel.queues")


class UsageWriter:
    """Writes the usage of queues, if it counts."""

    def __init__(self, api: ApiClient, engine: Engine, may_write: Callable[[], bool]) -> None:
        self._api, self._engine, self._may_write = api, engine, may_write

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(_SECONDS)
            await self.write()

    async def write(self) -> None:
        """Write once. What cannot be written is written the next time."""
        failed, said = 0, ""
        for name, record in self._engine.ask(UsageOfKaiQueues()):
            if not self._may_write():
                return
            body = {"metadata": {"annotations": {names.KAI_USAGE: write_record(record)}}}
            try:
                path = _KIND.find_path(name)
                await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
            except ApiError as error:
                failed, said = failed + 1, str(error)
        if failed:
            _log.warning("usage of queues not written", queues=failed, error=said, retry_seconds=_SECONDS)  # fmt: skip
