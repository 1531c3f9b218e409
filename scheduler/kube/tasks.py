"""Tasks that work side by side until the stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

_END_SECONDS = 10.0


class Tasks:
    """Tasks of which none may end with an error before the stop.

    Args:
        on_failure: takes the exception of a task that did.
    """

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that works until the stop."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._check_end)
        self._tasks.append(task)
        return task

    async def end(self, *, but: asyncio.Task[None] | None = None) -> None:
        """End all tasks, or all but one; a task that does not end in time is not waited for again."""
        ending = [task for task in self._tasks if task is not but]
        self._tasks = [task for task in self._tasks if task is but]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=_END_SECONDS)

    def _check_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)
