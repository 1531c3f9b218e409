"""One operator, wired by the product's own code, on the model server and without kopf and probes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from scheduler.config import Config
from scheduler.engine import rerun
from scheduler.kube.app import Operator
from scheduler.kube.client import Access
from scheduler.kube.options import Options
from scheduler.kube.report.recording import Recorder
from tests.virtual.clock import Process
from tests.virtual.network import ModelClient, Network

T = TypeVar("T")


class Recording:
    """In the place of files: a list of lines for each, and each is begun soon."""

    LINES_MAX = 150

    def __init__(self) -> None:
        self.files: list[list[bytes]] = [[]]

    @property
    def is_full(self) -> bool:
        return len(self.files[-1]) > self.LINES_MAX

    def write(self, line: bytes) -> None:
        self.files[-1].append(line)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """There is nothing to close."""

    def turn_over(self) -> None:
        self.files.append([])


class VirtualOperator(Operator):
    """An operator among hundreds in one test: what it leaves behind must be collected.

    Whatever happens to it, each of its logs gives the same decisions again.
    """

    recording: Recording | None = None

    def _make_recorder(self) -> Recorder:
        self.recording = Recording()
        return Recorder(self.options.config, "virtual", self.recording)  # type: ignore[arg-type]

    def reruns(self) -> list[rerun.Report]:
        """What comes of running every one of its logs again."""
        return [rerun.rerun(lines) for lines in (self.recording.files if self.recording else ())]

    @staticmethod
    def _freeze() -> None:
        """Nothing is frozen."""

    async def _let_go(self) -> None:
        """Nothing listens, and no connection is open."""

    @staticmethod
    def _clock() -> Callable[[], float]:
        return asyncio.get_running_loop().time


class _Here:
    """In the place of the lifeline: a model has no threads."""

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        return await work


class Replica:
    """A process with an operator in it.

    Attributes:
        is_over: it was killed or has stopped by itself.
    """

    def __init__(
        self, network: Network, config: Config, name: str, *, has_lease: bool = True
    ) -> None:
        self.name = name
        self.network = network
        self.process = Process(network.clock)
        self.api = ModelClient(network, name)
        self.is_over = False
        self.operator = VirtualOperator(
            Options(
                access=Access(url="http://model"),
                config=config,
                identity=name,
                lease_namespace="evenkeel" if has_lease else "",
            )
        )
        self._stopping: asyncio.Task[None] | None = None
        self._main = self.process.create_task(self._run())

    def pause(self, seconds: float) -> None:
        """No turns for so long, as after SIGSTOP and before SIGCONT."""
        self.process.paused_until = self.network.clock.now + seconds

    def stop(self) -> None:
        """As on SIGTERM: the process ends when it has cleaned up."""
        if self._stopping is None and self.operator._parts:
            self._stopping = self.process.create_task(self.operator._stop())

    def kill(self) -> None:
        """As on SIGKILL: what was sent is on its way all the same."""
        if not self.is_over:
            self.is_over = True
            self.api.is_cut = True
            self.process.kill()

    def is_deciding(self) -> bool:
        """Whether it leads and decides."""
        return bool(self.operator._parts) and self.process.ask(self.operator.is_deciding)

    def is_stopped(self) -> bool:
        """Whether a stop has come to its end."""
        return self._stopping is not None and self._stopping.done()

    def failures(self) -> list[str]:
        """What no operator may die of."""
        found = list(self.process.died_of)
        failure = self.operator._failure
        if failure is not None:
            found.append(repr(failure))
        over = [task for task in (self._main, self._stopping) if task is not None and task.done()]
        found += [repr(t.exception()) for t in over if not t.cancelled() and t.exception()]
        return [f"{self.name}: {one}" for one in found]

    async def _run(self) -> None:
        self.operator._make_parts(self.api, self.api)
        self.operator._lifeline = _Here()  # type: ignore[assignment]
        await self.operator._lease.look()
        await self.operator._rare.read(self.api)
        await self.operator._run_lease()
        self.operator._read_streams()
        self.operator._run_parts()
