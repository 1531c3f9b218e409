"""Tasks that go on for ever beside a block."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def keep_running(work: Sequence[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run tasks while the block runs.

    Raises:
        Exception: at the end: the error that ended one of them.
    """
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
