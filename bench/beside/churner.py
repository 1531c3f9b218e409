"""Users whose pods come and go: a bound pod is deleted for each that is created, and only so many wait at once."""

from __future__ import annotations

import asyncio

from bench.beside import caller
from bench.beside.caller import PODS, Caller
from bench.rows.row import INCOMING

# Enough that a scheduler always has some to decide for.
_WAITING_MOST = 256
AT_ONCE = 16
_NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


async def work(api: Caller) -> None:
    """Create the pods of the row, and delete as many that were there before."""
    old = sorted((await api.names(PODS, fieldSelector="spec.nodeName!="))[0])
    numbers = iter(range(api.size.pods))
    room = asyncio.Semaphore(_WAITING_MOST)

    async def churn() -> None:
        for number in numbers:
            await room.acquire()
            await api.call("POST", PODS, api.row.incoming(number, api.size, api.scheduler))
            await api.call("DELETE", f"{PODS}/{old[number]}", _NOW)

    async def hear() -> None:
        (selector,) = (f"{key}={value}" for key, value in INCOMING.items())
        heard = api.changes(PODS, fieldSelector="spec.nodeName!=", labelSelector=selector)
        async for change in heard:
            if change.type == "ADDED":
                room.release()

    async with asyncio.TaskGroup() as group:
        group.create_task(hear())
        for _ in range(AT_ONCE):
            group.create_task(churn())


if __name__ == "__main__":
    caller.main(work)
