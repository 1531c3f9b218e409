"""One scheduler, wired and run by the product's own code, on the model server and without kopf and probes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from scheduler.config import Config
from scheduler.engine import rerun
from scheduler.kube.client import Access
from scheduler.kube.options import Options
from scheduler.kube.parts import Parts
from scheduler.kube.report.recording import Recorder
from scheduler.kube.running import RunningParts
from tests.virtual.clock import Process
from tests.virtual.network import ModelClient, Network

T = TypeVar("T")


class Recording:
    """In the place of files: a list of lines for each, and each is begun soon."""

    def __init__(self) -> None:
        self.files: list[list[bytes]] = [[]]
        self.most_lines = 150

    @property
    def is_full(self) -> bool:
        return len(self.files[-1]) > self.most_lines

    def write(self, line: bytes) -> None:
        self.files[-1].append(line)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """There is nothing to close."""

    def begin_new_file(self) -> None:
        self.files.append([])

    def raise_bound(self) -> None:
        self.most_lines = max(self.most_lines, 2 * len(self.files[-1]))


class _Here:
    """In the place of the lifeline: a model has no threads."""

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        return await work


class Replica:
    """A process with a scheduler in it: one of hundreds in a test, so what it leaves behind must be collected.

    Whatever happens to it, each of its logs gives the same decisions again.

    Attributes:
        parts: the parts of the scheduler, made at the process's first turn.
        is_over: it was killed or has stopped by itself.
        n_freezes: how often its heap would have been frozen.
    """

    parts: Parts

    def __init__(
        self, network: Network, config: Config, name: str, *, has_lease: bool = True
    ) -> None:
        self.name = name
        self.network = network
        self.process = Process(network.clock)
        self.api = ModelClient(network, name)
        self.is_over = False
        self.n_freezes = 0
        self._recording: Recording | None = None
        self._options = Options(
            access=Access(url="http://model"),
            config=config,
            identity=name,
            lease_namespace="evenkeel" if has_lease else "",
        )
        self._running: RunningParts | None = None
        self._died_of: list[BaseException] = []
        self._stopping: asyncio.Task[None] | None = None
        self._main = self.process.create_task(self._run())

    def pause(self, seconds: float) -> None:
        """No turns for so long, as after SIGSTOP and before SIGCONT."""
        self.process.paused_until = self.network.clock.now + seconds

    def stop(self) -> None:
        """As on SIGTERM: the process ends when it has cleaned up."""
        if self._stopping is None and self._running is not None:
            self._stopping = self.process.create_task(self._running.stop())

    def kill(self) -> None:
        """As on SIGKILL: what was sent is on its way all the same."""
        if not self.is_over:
            self.is_over = True
            self.api.is_cut = True
            self.process.kill()

    def is_deciding(self) -> bool:
        """Whether it leads and decides."""
        return self._running is not None and self.process.ask(self.parts.is_deciding)

    def is_stopped(self) -> bool:
        """Whether a stop has come to its end."""
        return self._stopping is not None and self._stopping.done()

    def _note_freeze(self) -> None:
        self.n_freezes += 1

    def failures(self) -> list[str]:
        """What no scheduler may die of."""
        found = [*self.process.died_of, *map(repr, self._died_of)]
        over = [task for task in (self._main, self._stopping) if task is not None and task.done()]
        found += [repr(t.exception()) for t in over if not t.cancelled() and t.exception()]
        return [f"{self.name}: {one}" for one in found]

    def reruns(self) -> list[rerun.Report]:
        """What comes of running every one of its logs again."""
        return [rerun.rerun(lines) for lines in (self._recording.files if self._recording else ())]

    async def _run(self) -> None:
        self._recording = Recording()
        recorder = Recorder(self._options.config, "virtual", self._recording)  # type: ignore[arg-type]
        self.parts = Parts(
            self._options,
            self.api,
            self.api,
            recorder=recorder,
            lease_clock=asyncio.get_running_loop().time,
        )
        await self.parts.lease.observe_holder()
        await self.parts.rare.read_all(self.api)
        self._running = RunningParts(
            self.parts,
            _Here(),  # type: ignore[arg-type]
            self._died_of.append,
            freeze=self._note_freeze,
        )
        await self._running.take_lease()
        self._running.read_streams()
        self._running.run_rest()
