"""Virtual time, and processes that take turns on it: hours pass in milliseconds, a seed decides all.

Every process is an asyncio event loop of its own on one shared clock. When no loop has anything to do,
time jumps to the next timer. A process that is paused gets no turns, like one after SIGSTOP.
"""

import asyncio
import datetime as dt
import heapq
import itertools
import random
import selectors
from collections.abc import Callable
from typing import Any

_EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_TURN_SECONDS = 20e-6


class Clock:
    """The time that all processes share, and what is to happen when.

    Attributes:
        slowness: how likely one look at the clock finds that the machine was busy elsewhere.
    """

    def __init__(self, rng: random.Random) -> None:
        self.now = 1000.0
        self.slowness = 0.0
        self.turns = 0
        self.processes: list[Process] = []
        self._rng = rng
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = itertools.count()

    def wall(self) -> dt.datetime:
        """The time of day."""
        return _EPOCH + dt.timedelta(seconds=self.now)

    def read(self) -> float:
        """The time, as a process reads it: computing takes time, sometimes much."""
        if self.slowness and self._rng.random() < self.slowness:
            self.now += self._rng.uniform(0.002, 0.03)
        return self.now

    def after(self, seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen outside all processes."""
        heapq.heappush(self._alarms, (self.now + seconds, next(self._serial), happen))

    def run(self, until: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Give turns until then, or until ``stop`` says so between two of them."""
        while self.now < until and not stop():
            dues = [process.due() for process in self.processes]
            ready = [one for one, due in zip(self.processes, dues, strict=True) if due <= self.now]
            alarm = bool(self._alarms) and self._alarms[0][0] <= self.now
            n = len(ready) + alarm
            if not n:
                alarms = [self._alarms[0][0]] if self._alarms else []
                self.now = min([until, *dues, *alarms])
                continue
            at = self._rng.randrange(n) if n > 1 else 0
            if at < len(ready):
                ready[at].turn()
                self.now += _TURN_SECONDS
                self.turns += 1
            else:
                heapq.heappop(self._alarms)[2]()


class Process(asyncio.SelectorEventLoop):
    """One event loop; ``died_of`` holds what it let escape."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.paused_until = 0.0
        self.died_of: list[str] = []
        super().__init__(_NoFiles())
        self.set_exception_handler(self._escaped)
        clock.processes.append(self)

    def time(self) -> float:
        return self._clock.read()

    def due(self) -> float:
        """When it next has something to do."""
        if self._ready:  # type: ignore[attr-defined]
            due = 0.0
        elif self._scheduled:  # type: ignore[attr-defined]
            due = self._scheduled[0].when()  # type: ignore[attr-defined]
        else:
            due = float("inf")
        return max(due, self.paused_until)

    def turn(self) -> None:
        """One pass through the loop: what is ready runs, nothing waits."""
        self.stop()
        self.run_forever()

    def ask(self, question: Callable[[], bool]) -> bool:
        """An answer from inside the process, which may look at its clock for it."""

        async def answer() -> bool:
            return question()

        task = self.create_task(answer())
        while not task.done():
            self.turn()
        return task.result()

    def kill(self) -> None:
        """Cancel everything; no timer rings any more."""
        self._clock.processes.remove(self)
        for _ in range(100):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.turn()
        else:
            self.died_of.append(f"a task cannot be cancelled: {tasks}")
        self.turn()
        self.close()

    def _escaped(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.died_of.append(f"{context.get('message')}: {context.get('exception')!r}")


class _NoFiles(selectors.SelectSelector):
    """Nothing arrives through files."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:  # noqa: ARG002
        return []
