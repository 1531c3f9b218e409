"""The schedulers that are attacked, and what is seen of their processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.operator.process import Operator
from tests.operator.servers import Server

# A kubelet that waits five seconds for /livez, every ten, kills after the third failure.
_LIVEZ_SECONDS, _LIVEZ_EVERY, _LIVEZ_FAILURES = 5.0, 10.0, 3
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Candidate(Protocol):
    """One scheduler for the pods that name ``evenkeel``.

    Attributes:
        kinds: the kinds of normal pods that it can place.
        rss_mib: the most that one of its processes has taken, resident.
        restarts: how often a kubelet would have killed one of its containers.
    """

    kinds: tuple[str, ...]
    rss_mib: int
    restarts: int

    async def start(self) -> None:
        """Start it, and return when it decides."""

    async def watch(self) -> None:
        """Measure memory and liveness, until cancelled."""

    async def replace_leader(self) -> None:
        """Stop the process that decides; another takes over."""

    def read_rss(self) -> int:
        """Resident MiB of the largest process, 0 when none is there."""

    def count_lost_terms(self) -> int:
        """How often a leader lost its lease."""

    def kill(self) -> None:
        """End all processes."""


def _read_rss(pid: int) -> int:
    with contextlib.suppress(OSError):
        statm = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
        return int(statm.split()[1]) * _PAGE_BYTES >> 20
    return 0


class Evenkeel:
    """Two replicas, as installed."""

    def __init__(self, server: Server, kinds: Sequence[str]) -> None:
        self.kinds = tuple(kinds)
        self.rss_mib = self.restarts = 0
        self._server = server
        self._started: list[Operator] = []
        self._running: list[Operator] = []

    async def start(self) -> None:
        """Start both, and return when one of them decides."""
        self._started = [Operator(self._server, name=f"bench-{i}", records=False) for i in range(2)]
        self._running = list(self._started)
        for operator in self._started:
            await asyncio.to_thread(operator.wait_ready)
        while not await asyncio.to_thread(self._find_leader):
            await asyncio.sleep(0.1)

    async def watch(self) -> None:
        """Measure memory and liveness, until cancelled."""
        await asyncio.gather(self._watch_memory(), *map(self._probe, self._started))

    async def replace_leader(self) -> None:
        """Stop the leader and start another replica."""
        if leader := await asyncio.to_thread(self._find_leader):
            self._running.remove(leader)
            await asyncio.to_thread(leader.stop)
            self._started.append(Operator(self._server, name="bench-2", records=False))
            self._running.append(self._started[-1])

    def read_rss(self) -> int:
        """Resident MiB of the larger process."""
        return max((_read_rss(one.pid) for one in self._running), default=0)

    def count_lost_terms(self) -> int:
        """How often a leader said that it leads no longer."""
        return sum(len(one.said("no longer leading")) for one in self._started)

    def kill(self) -> None:
        """End all replicas."""
        for operator in self._started:
            operator.kill()

    def _find_leader(self) -> Operator | None:
        return next((one for one in self._running if one.is_deciding), None)

    async def _watch_memory(self) -> None:
        while True:
            self.rss_mib = max(self.rss_mib, self.read_rss())
            await asyncio.sleep(0.2)

    async def _probe(self, operator: Operator) -> None:
        """Probe as a kubelet would, and count how often it would have killed the container."""
        failures = 0
        while operator in self._running:
            status, _ = await asyncio.to_thread(operator.get, "/livez", _LIVEZ_SECONDS)
            failures = 0 if status == 200 else failures + 1
            if failures == _LIVEZ_FAILURES or not operator.is_running:
                self.restarts += operator in self._running
                failures = 0
            await asyncio.sleep(_LIVEZ_EVERY)


class KubeScheduler:
    """The real kube-scheduler, one process, under Evenkeel's name; it cannot place a share of a card."""

    def __init__(self, server: Server, kinds: Sequence[str]) -> None:
        assert server.plane is not None
        self.kinds = tuple(kind for kind in kinds if kind != "gpu")
        self.rss_mib = self.restarts = 0
        self._plane = server.plane

    async def start(self) -> None:
        """Start it; it is ready when it decides."""
        profile = {"schedulerName": "evenkeel"}
        await asyncio.to_thread(self._plane.start_scheduler, config={"profiles": [profile]})

    async def watch(self) -> None:
        """Measure memory, and start the process again when it ended, until cancelled."""
        while True:
            self.rss_mib = max(self.rss_mib, self.read_rss())
            if not self._plane.is_running("kube-scheduler"):
                self.restarts += 1
                await self.start()
            await asyncio.sleep(0.2)

    async def replace_leader(self) -> None:
        """Nothing: there is one process, and it holds no lease."""

    def read_rss(self) -> int:
        """Resident MiB of the process."""
        if not self._plane.is_running("kube-scheduler"):
            return 0
        return self._plane.rss("kube-scheduler") >> 20

    def count_lost_terms(self) -> int:
        """None: it holds no lease."""
        return 0

    def kill(self) -> None:
        """End the process."""
        self._plane.kill("kube-scheduler")


ALL: Mapping[str, Callable[[Server, Sequence[str]], Candidate]] = {
    "evenkeel": Evenkeel,
    "kube-scheduler": KubeScheduler,
}
