"""Workers: a bounded number of jobs at once, and stand-ins for the workers of jobs in doubt.

A job is in doubt when its first write did not settle it. It goes on until its outcome is known, which can
take as long as the API server's trouble lasts; meanwhile a stand-in does its worker's work, so that binds
that fail again and again hold up no others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from scheduler.kube.bind.fence import Gate
from scheduler.kube.bind.jobs import Job

# The most jobs in doubt that have a stand-in; further ones keep their workers.
_STAND_INS_MAX = 1000
# The most requests at once for jobs in doubt: they use the client's connections, which others need too.
_DOUBT_REQUESTS = 8


class Crew:
    """Carries jobs out, in the order they come.

    Args:
        size: the most jobs at once, without those in doubt.
        carry_out: carries one job out; an exception from it ends the crew.
    """

    def __init__(self, size: int, carry_out: Callable[[Job], Awaitable[None]]) -> None:
        self._size, self._carry_out = size, carry_out
        self._queue: asyncio.Queue[Job] = asyncio.Queue()
        self._relieved: set[Job] = set()
        self._doubt_gate = asyncio.Semaphore(_DOUBT_REQUESTS)

    @property
    def n_queued(self) -> int:
        """Number of jobs that wait for a worker."""
        return self._queue.qsize()

    def put_job(self, job: Job) -> None:
        """Carry a job out when a worker is free."""
        self._queue.put_nowait(job)

    def relieve_worker(self, job: Job) -> Gate:
        """Let a stand-in take the place of the worker whose job is in doubt; return what to enter for the job's requests."""
        if job not in self._relieved and len(self._relieved) < _STAND_INS_MAX:
            self._relieved.add(job)
            self._group.create_task(self._work())
        return self._doubt_gate

    def get_gate(self, job: Job) -> Gate:
        """Return what to enter for a request of a job, in doubt or not."""
        return self._doubt_gate if job in self._relieved else contextlib.nullcontext()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for _ in range(self._size):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            job = await self._queue.get()
            await self._carry_out(job)
            if job in self._relieved:
                self._relieved.remove(job)
                return
