"""Compares the known objects with a fresh list at intervals, because watches are not trusted."""

from __future__ import annotations

import asyncio
from typing import Any

from scheduler.engine.engine import Engine
from scheduler.engine.questions.measures import Totals
from scheduler.kube.client import ApiClient
from scheduler.kube.watch.rare import Rare
from scheduler.kube.watch.streams import Stream

_SECONDS = 600.0


async def verify_forever(
    engine: Engine, streams: list[Stream[Any]], rare: Rare, api: ApiClient
) -> None:
    """Recount every total and list everything again, now and then, until cancelled.

    Raises:
        BrokenInvariant: a total is not the sum of its parts.
    """
    while True:
        await asyncio.sleep(_SECONDS)
        for _ in engine.ask(Totals()):
            await asyncio.sleep(0)
        await asyncio.gather(*(stream.relist() for stream in streams), rare.relist(api))
