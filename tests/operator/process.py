"""The operator as a process: ``python -m scheduler run`` with its log in a file."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.engine import rerun
from tests.operator.servers import OPERATOR_NAMESPACE, Server

START_SECONDS = 120.0  # two, unless every kernel has to be compiled first
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.02
# What it answers in place of its metrics while the main loop is busy, and how long that may go on.
_BUSY, _BUSY_SECONDS = 503, 60.0
_serial = itertools.count(1)


class Ended(NamedTuple):
    """How an operator ended, and how long it took to."""

    code: int
    seconds: float


class Operator:
    """One running replica. Blocking; in a test that must go on, use ``asyncio.to_thread``."""

    def __init__(
        self,
        server: Server,
        *,
        name: str = "a",
        lease: bool = True,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        program: Sequence[str] = (sys.executable, "-m", "scheduler"),
        records: bool = True,
    ) -> None:
        """``records``: as no installed operator does, it records, so that its decisions can be checked at the end."""
        self.log_path = server.folder / f"operator-{next(_serial)}-{name}.log"
        self.record_path = self.log_path.with_suffix(".events")
        self._port = 0
        command = [*program, "run", "--port", "0"]
        command += ["--kubeconfig", str(server.kubeconfig)]
        if records:
            command += ["--record", str(self.record_path)]
        if lease:
            command += ["--lease-namespace", OPERATOR_NAMESPACE]
        with self.log_path.open("wb") as log:
            self._popen = subprocess.Popen(
                [*command, *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "POD_NAME": name, **(env or {})},
            )

    @property
    def log(self) -> str:
        """All that it has logged."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._popen.poll() is None

    def said(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        return [line for line in self._lines() if line.get("event") == event]

    def wait_ready(self) -> None:
        """Return once /readyz says so; fail with the log when it never does."""
        gives_up_at = time.monotonic() + START_SECONDS
        while not (self._port and self.get("/readyz")[0] == 200):
            if not self.is_running:
                raise AssertionError(
                    f"the operator ended with {self._popen.returncode}: {self.log}"
                )
            if time.monotonic() > gives_up_at:
                raise AssertionError(f"the operator did not become ready: {self.log}")
            if not self.find_port():
                time.sleep(_POLL_SECONDS)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._popen.pid

    @property
    def port(self) -> int:
        """Of its small server; 0 until it is known."""
        return self._port

    def find_port(self) -> bool:
        """Whether its small server is known by now."""
        if started := self.said("answering probes"):
            self._port = started[0]["port"]
        return bool(started)

    def get(self, path: str, timeout_seconds: float = 10.0) -> tuple[int, str]:
        """Status and text of its own small server; 0 while it does not answer."""
        try:
            url = f"http://127.0.0.1:{self._port}{path}"
            with urllib.request.urlopen(url, timeout=timeout_seconds) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def heard(self, words: str) -> int:
        """How many lines of its record hold these words: what has come to it, and what it decided."""
        with self.record_path.open("rb") as lines:
            return sum(words.encode() in line for line in lines)

    def metrics(self) -> dict[str, float]:
        """All samples, by name with labels as the exposition format writes them; none while it is silent."""
        gives_up_at = time.monotonic() + _BUSY_SECONDS
        status, text = self.get("/metrics")
        while status == _BUSY and time.monotonic() < gives_up_at:
            status, text = self.get("/metrics")
        if status != 200:
            return {}
        samples = (line.rpartition(" ") for line in text.splitlines() if line[:1] not in {"#", ""})
        return {name: float(figure) for name, _, figure in samples}

    @property
    def is_deciding(self) -> bool:
        """Whether it leads and has caught up with the cluster."""
        return self.metrics().get("evenkeel_leader") == 1.0

    def stop(self) -> Ended:
        """SIGTERM, and wait until it is gone."""
        began = time.monotonic()
        self._popen.send_signal(signal.SIGTERM)
        try:
            code = self._popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after SIGTERM: {self.log}") from None
        return Ended(code, time.monotonic() - began)

    def pause(self) -> None:
        """SIGSTOP: it sees nothing until ``resume``."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._popen.send_signal(signal.SIGCONT)

    def be_busy(self) -> None:
        """For an operator that runs ``tests.operator.busy``: its main loop stands still from now on."""
        self._popen.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """SIGKILL; no harm if it has ended."""
        self._popen.kill()
        self._popen.wait()

    def check_log(self, *, rights_in_doubt: bool = False) -> None:
        """It was refused nothing, no part of it failed, and what it decided comes out again.

        An API server that has just started refuses everyone until it has read its roles.
        """
        self.check_record()
        log = self.log
        refusals = () if rights_in_doubt else ("Forbidden", "forbidden")
        for word in (*refusals, "Traceback", '"level": "critical"'):
            assert word not in log, "\n".join(line for line in log.splitlines() if word in line)[
                :5000
            ]

    def check_record(self) -> None:
        """The log of its engine, with all faults that it met, gives the same decisions again."""
        if self.record_path.exists():
            with self.record_path.open("rb") as lines:
                report = rerun.rerun(lines)
            assert report.difference is None, rerun.write_report(report)

    def _lines(self) -> Iterator[dict[str, Any]]:
        for line in self.log.splitlines():
            if line.startswith("{"):
                try:
                    yield json.loads(line)
                except ValueError:  # the last line, half written
                    continue
