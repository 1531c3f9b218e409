"""What a kubelet does for preemption: a pod that is told to go has gone as soon as that is heard of."""

from __future__ import annotations

import asyncio

from bench.beside import caller
from bench.beside.caller import PODS, Caller

_AT_ONCE = 16
_AT_ONCE_BODY = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


async def work(api: Caller) -> None:
    """Let pods go, for ever."""
    going: asyncio.Queue[str] = asyncio.Queue()

    async def let_go() -> None:
        while True:
            await api.call("DELETE", f"{PODS}/{await going.get()}", _AT_ONCE_BODY)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(let_go())
        async for change in api.changes(PODS, fieldSelector="spec.nodeName!="):
            meta = change.object["metadata"]
            if change.type == "MODIFIED" and "deletionTimestamp" in meta:
                going.put_nowait(meta["name"])


if __name__ == "__main__":
    caller.main(work)
