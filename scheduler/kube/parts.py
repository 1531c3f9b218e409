"""The parts of a scheduler that work side by side until the stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

_END_SECONDS = 10.0


class Parts:
    """Tasks of which none may end before the stop.

    Args:
        on_failure: told of the exception with which one ended all the same.
    """

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: list[asyncio.Task[None]] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let a part work until the stop."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    async def end(self, *, but: asyncio.Task[None] | None = None) -> None:
        """End all parts, or all but one."""
        ending = [task for task in self._tasks if task is not but]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=_END_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)
