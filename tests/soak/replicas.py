"""Two replicas of the scheduler, killed, ended and stopped in turn."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
from collections import Counter
from collections.abc import Sequence

from tests.operator.process import Operator
from tests.operator.servers import Server

LEASE_SECONDS = 5
_PROGRAM = (sys.executable, "-m", "tests.soak.verifying")
# What uvloop says of a connection that the API server has closed while the process was paused; a new one is opened.
_PAUSED = "Fatal error on SSL protocol"


class Replicas:
    """The replicas that run.

    Attributes:
        wrongs: processes that ended when nobody had killed them, and what they should not have logged.
    """

    def __init__(self, server: Server, rng: random.Random, args: Sequence[str]) -> None:
        self.counts = Counter[str]()
        self.wrongs: list[str] = []
        self._server, self._rng = server, rng
        self._args = [*args, "--lease-seconds", str(LEASE_SECONDS)]
        self._serial = itertools.count(1)
        self._all: list[Operator] = []
        self.running: list[Operator] = []

    async def start(self) -> None:
        """Have two of them."""
        while len(self.running) < 2:
            name = f"r{next(self._serial)}"
            operator = Operator(
                self._server, name=name, args=self._args, program=_PROGRAM, records=False
            )
            self._all.append(operator)
            self.running.append(operator)
            await asyncio.to_thread(operator.wait_ready)

    async def find_leader(self) -> Operator | None:
        """The one that decides; None while none does."""
        for one in self.running:
            if await asyncio.to_thread(_is_deciding, one):
                return one
        return None

    async def trouble(self) -> None:
        """Do something to the leader, or to any replica while none leads."""
        self.check()
        chosen = await self.find_leader() or self._rng.choice(self.running)
        happen = self._rng.choice((self._kill, self._end, self._halt))
        self.counts[happen.__name__.strip("_")] += 1
        await happen(chosen)
        self.check()

    async def _kill(self, chosen: Operator) -> None:
        self.running.remove(chosen)
        await asyncio.to_thread(chosen.kill)
        await asyncio.sleep(self._rng.uniform(0.0, 8.0))
        await self.start()

    async def _end(self, chosen: Operator) -> None:
        self.running.remove(chosen)
        ended = await asyncio.to_thread(chosen.stop)
        if ended.code:
            self.wrongs.append(f"{chosen.log_path.name} ended with {ended.code} after SIGTERM")
        await self.start()

    async def _halt(self, chosen: Operator) -> None:
        """It sees nothing for longer than its lease; then it writes what it was about to write."""
        chosen.pause()
        try:
            await asyncio.sleep(LEASE_SECONDS + self._rng.uniform(1.0, 12.0))
        finally:
            chosen.resume()

    def check(self) -> None:
        """Those that nobody ended run, and none of all has failed in part."""
        for one in list(self.running):
            if not one.is_running:
                self.running.remove(one)
                self.wrongs.append(f"{one.log_path.name} ended by itself: {one.log[-3000:]}")

    def check_logs(self) -> None:
        for one in self._all:
            bad = ("Traceback", '"level": "critical"', "Forbidden", "forbidden")
            found = [
                line
                for line in one.log.splitlines()
                if any(word in line for word in bad) and _PAUSED not in line
            ]
            if found:
                self.wrongs.append(f"{one.log_path.name}: {found[:5]}")

    async def stop(self) -> None:
        for one in self.running:
            await asyncio.to_thread(one.stop)
        self.running.clear()


def _is_deciding(operator: Operator) -> bool:
    return operator.is_deciding
