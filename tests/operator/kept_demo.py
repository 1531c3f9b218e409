"""``evenkeel demo --keep`` as a process, and what it printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_START_SECONDS = 240.0
_END_SECONDS = 60.0
_READY = "Press Ctrl-C to stop the operator and the cluster."


@dataclass(slots=True)
class KeptDemo:
    """A running demo.

    Attributes:
        process: the command.
        output: the file it prints to, which is no terminal.
        folder: where its temporary folder is, and nothing else.
    """

    process: subprocess.Popen[bytes]
    output: Path
    folder: Path

    @property
    def printed(self) -> str:
        """All that it has printed so far."""
        return self.output.read_text(encoding="utf-8")

    def told(self, name: str) -> str:
        """A figure from the list that it prints, as in ``probes http://…``."""
        found = re.search(rf"^  {name} +(\S+)$", self.printed, re.MULTILINE)
        assert found, self.printed
        return found[1]

    def until_ready(self) -> None:
        """Wait until all patterns were shown and the cluster is there to be used."""
        self.until_printed(_READY)

    def until_printed(self, text: str, seconds: float = _START_SECONDS) -> None:
        """Wait until it has printed something."""
        gives_up_at = time.monotonic() + seconds
        while text not in self.printed:
            assert self.process.poll() is None, self.printed
            assert time.monotonic() < gives_up_at, self.printed
            time.sleep(0.05)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Tell it to end; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(_END_SECONDS)

    def left_behind(self) -> list[str]:
        """Command lines of processes that know its folder, and files that are in it."""
        found = [str(path) for path in self.folder.iterdir()]
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.folder) in words:
                found.append(words)
        return found


@contextmanager
def start(folder: Path) -> Iterator[KeptDemo]:
    """Start a demo that keeps its cluster; killed at the end if it still runs."""
    temporary, output = folder / "tmp", folder / "printed"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "COLUMNS": "80"}
    with output.open("wb") as out:
        process = subprocess.Popen(
            # Tests that run under nohup ignore a hangup, and what they start would too.
            ["env", "--default-signal=HUP", sys.executable, "-m", "scheduler", "demo", "--keep"],
            cwd=ROOT,
            env=environment,
            stdout=out,
            stderr=out,
        )
    try:
        yield KeptDemo(process, output, temporary)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(_END_SECONDS)
