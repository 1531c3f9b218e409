"""Child processes that do not outlive us: start, measure, kill, and read what they logged."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Below every usual range of ephemeral ports: nobody's outgoing connection takes a port between
# our asking and our using it, nor while an API server is down between two runs. Three workers that run
# tests beside each other have a third each.
_THIRD = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 3
PORTS = range(20_000 + 4_000 * _THIRD, 24_000 + 4_000 * _THIRD)
_END_SECONDS = 30.0
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A running (or dead) program, leader of its own process group."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    def is_running(self) -> bool:
        """Tell whether it has not ended."""
        return self.popen.poll() is None

    def tail(self, lines: int = 30) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def rss(self) -> int:
        """Return its resident memory in bytes (Linux only)."""
        pages = Path(f"/proc/{self.popen.pid}/statm").read_text().split()[1]
        return int(pages) * _PAGE_BYTES

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has used so far, user and system (Linux only)."""
        stat = Path(f"/proc/{self.popen.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
        return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


class Nursery:
    """All the children of one owner, and the watchdog that ends them if the owner cannot.

    The folder takes their logs, and goes when they go.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.children: dict[str, Process] = {}
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py"))],
            stdin=subprocess.PIPE,
            start_new_session=True,  # an interrupt at the terminal must not end it first
            text=True,
        )
        self._tell(f"remove {folder}")

    def spawn(
        self, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a program; what it prints is appended to `<folder>/<name>.log`."""
        if (old := self.children.get(name)) and old.is_running():
            raise ValueError(f"{name} is running already")
        if env is None:  # etcd would read its options from there too
            env = {key: value for key, value in os.environ.items() if not key.startswith("ETCD_")}
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                start_new_session=True,
            )
        self._tell(f"watch {popen.pid}")
        child = self.children[name] = Process(name=name, popen=popen, log=log)
        return child

    def kill(self, name: str) -> None:
        """Kill one child with its whole group, and wait for it; no harm if it is dead."""
        child = self.children[name]
        if child.is_running():
            os.killpg(child.popen.pid, signal.SIGKILL)
        child.popen.wait()
        self._tell(f"forget {child.popen.pid}")

    def terminate(self, name: str) -> None:
        """Ask one child to end, and wait until it has."""
        child = self.children[name]
        child.popen.terminate()
        child.popen.wait(_END_SECONDS)
        self._tell(f"forget {child.popen.pid}")

    def close(self) -> None:
        """Kill all, last started first, and let the watchdog go and remove the folder."""
        for name in reversed(list(self.children)):
            self.kill(name)
        if self._watchdog.stdin:
            self._watchdog.stdin.close()
        self._watchdog.wait()

    def _tell(self, order: str) -> None:
        pipe = self._watchdog.stdin
        if pipe and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):  # without a watchdog we still work
                pipe.write(order + "\n")
                pipe.flush()


def free_ports(count: int) -> list[int]:
    """Return distinct ports of the loopback address that nobody listens on."""
    ports: list[int] = []
    for port in random.sample(PORTS, k=len(PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"no {count} free ports between {PORTS.start} and {PORTS.stop - 1}")
