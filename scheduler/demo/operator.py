"""Runs the real operator as a process of its own: starts and watches it, and starts it again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

_STOP_SECONDS = 15.0
_LOOK_SECONDS = 0.05
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 30.0
# An operator that ran for so long is started again without a longer pause.
_STEADY_SECONDS = 60.0
_TOLD_OF_LOG = 2000


class NeverStartedError(Exception):
    """The operator ended before it had ever started; the text is the end of its log."""


class Operator:
    """The process of the operator, and what is known about it.

    Attributes:
        address: the address of probes and metrics, as in ``http://127.0.0.1:8080``; empty before the first start.
        log: the file to which all its processes write.
    """

    def __init__(
        self, kubeconfig: Path, config: Path, log: Path, say: Callable[[str], None]
    ) -> None:
        self.address = ""
        self.log = log
        self._kubeconfig, self._config, self._say = kubeconfig, config, say
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0
        self._starts = 0
        self._watch: asyncio.Task[None] | None = None

    @property
    def process_id(self) -> int:
        """The id of the process that runs now, or ran last."""
        return self._process.pid if self._process else 0

    def check(self) -> None:
        """Raise the error that ended the watch over the operator.

        Raises:
            NeverStartedError: the operator cannot start at all.
        """
        if self._watch is not None and self._watch.done():
            self._watch.result()

    def begin(self) -> None:
        """Start the operator, and keep it running."""
        self._watch = asyncio.create_task(self._keep_running())

    async def end(self) -> None:
        """Stop the operator: at once if it has not started yet, else after its own orderly end."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            if self._port:
                process.terminate()
            else:
                process.kill()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            self._say(f"the operator did not stop within {_STOP_SECONDS:.0f} s and was killed")
            process.kill()
            await process.wait()

    async def _keep_running(self) -> None:
        loop = asyncio.get_running_loop()
        pause = 0.0
        while True:
            begun_at = loop.time()
            code = await self._run_once()
            if not self._starts:
                text = self.log.read_text(encoding="utf-8", errors="replace")
                raise NeverStartedError(f"the operator ended with {code}: {text[-_TOLD_OF_LOG:]}")
            steady = loop.time() - begun_at > _STEADY_SECONDS
            pause = _FIRST_PAUSE_SECONDS if steady or not pause else min(2 * pause, _LONGEST_PAUSE_SECONDS)  # fmt: skip
            how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
            self._say(f"the operator {how}; it is started again in {pause:.0f} s")
            await asyncio.sleep(pause)

    async def _run_once(self) -> int:
        """Run one process to its end; return its exit code, below 0 for a signal."""
        with self.log.open("ab") as out:
            place = out.tell()
            self._process = process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "scheduler", "run"),
                *("--kubeconfig", str(self._kubeconfig), "--config", str(self._config)),
                # The port stays the same for its users, unless another program has taken it.
                *("--port", str(self._port)),
                stdout=out,
                stderr=out,
                # Ctrl-C in the terminal is for the demo alone, which then ends everything in order.
                process_group=0,
            )
        self._port = 0
        waiting = asyncio.create_task(process.wait())
        try:
            while not waiting.done() and not self._port:
                await asyncio.wait((waiting,), timeout=_LOOK_SECONDS)
                self._port = _read_port(self.log, place)
            if self._port:
                self._note_start(process.pid)
            return await waiting
        finally:
            waiting.cancel()

    def _note_start(self, process_id: int) -> None:
        self.address = f"http://127.0.0.1:{self._port}"
        self._starts += 1
        if self._starts > 1:
            self._say(
                f"the operator runs again: process {process_id}, metrics at {self.address}/metrics"
            )


@asynccontextmanager
async def run_operator(
    kubeconfig: Path, config: Path, log: Path, say: Callable[[str], None]
) -> AsyncIterator[Operator]:
    """Run the operator until the end of the block.

    Args:
        kubeconfig: of the cluster.
        config: the configuration file of the operator.
        log: the file for its output.
        say: tells the user what happens to the operator.
    """
    operator = Operator(kubeconfig, config, log, say)
    operator.begin()
    try:
        yield operator
    finally:
        await operator.end()


def _read_port(log: Path, place: int) -> int:
    """Read the port from the line that a process writes when it has started; 0 before."""
    with log.open("rb") as lines:
        lines.seek(place)
        for line in lines:
            if line.endswith(b"\n") and b'"started"' in line:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    told = json.loads(line)
                    if told["event"] == "started":
                        return int(told["port"])
    return 0
