"""One agent on every node, as a real node has a kubelet and plugins of its own; each may die and come again."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from scheduler.embedded.agents import fleet, hami_plugin, kubelet
from scheduler.embedded.agents.apiclient import CallError
from tests.operator.servers import Server


class NodeAgents:
    """The agents that run, by node.

    Attributes:
        since: when the present agent of a node began; absent while it is dead.
    """

    def __init__(self, server: Server) -> None:
        self.since: dict[str, float] = {}
        self._server = server
        self._tasks: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}

    async def start(self, node: str) -> None:
        """Start the agent of a node; no harm if it runs."""
        if node in self._tasks:
            return
        ends, begun = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(self._play(node, begun, ends))
        self._tasks[node] = task, ends
        await begun.wait()
        self.since[node] = time.monotonic()

    async def stop(self, node: str) -> None:
        """Let the agent of a node die at once, whatever it is doing; no harm if it is dead.

        Raises:
            Exception: what has ended a part of it before.
        """
        self.since.pop(node, None)
        if found := self._tasks.pop(node, None):
            task, ends = found
            ends.set()
            # It may be refused a write about what is gone in the very moment in which it ends.
            with suppress(CallError):
                await task

    async def stop_all(self) -> None:
        for node in list(self._tasks):
            await self.stop(node)

    async def _play(self, node: str, begun: asyncio.Event, ends: asyncio.Event) -> None:
        server = self._server
        knobs = hami_plugin.Knobs(delay_seconds=0.05, seed=len(self._tasks), register_seconds=15.0)
        pace = kubelet.Pace(start_seconds=0.1, stop_seconds=0.1)
        async with fleet.run(
            server.url, nodes=[node], token=server.token, ssl=server.tls, pace=pace, knobs=knobs
        ):
            begun.set()
            await ends.wait()
