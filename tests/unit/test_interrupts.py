"""Ctrl-C and SIGTERM end a command at any moment: without a traceback, and nothing of it goes on."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.screen import without_progress

ROOT = Path(__file__).parents[2]
LONG = (
    "replay", "bench/data/openb", "--experiment", "churn", "--arrivals", "10000000",
    "--seeds", "1..8",
)  # fmt: skip
PATIENCE = 60.0
# From the first import to the kernels, the listing and beyond, on any machine.
DELAYS = (0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """What a script runs in its background ignores Ctrl-C, and so does whatever it starts."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own, as a shell gives it one; killed whole in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scheduler", *arguments], cwd=ROOT, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        with_children = members(process.pid)
        for pid in with_children:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def members(session: int) -> list[int]:
    """Processes of a session that run; those that ended and that nobody has waited for yet do not."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, _, of = entry.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:  # ended meanwhile
                continue
            if int(of) == session and state != "Z":
                found.append(int(entry.name))
    return found


def wait_until_nobody_is_left(session: int) -> None:
    gives_up_at = time.monotonic() + PATIENCE
    while left := members(session):
        assert time.monotonic() < gives_up_at, left
        time.sleep(0.05)


def wait_for_workers(process: subprocess.Popen[str], n: int) -> None:
    """Until it has so many processes, the tracker of their resources and itself included."""
    gives_up_at = time.monotonic() + PATIENCE
    while len(members(process.pid)) < n:
        assert time.monotonic() < gives_up_at
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("later", [0.0, 0.5, 3.0])
def test_ctrl_c_ends_every_process_of_a_replay_without_a_traceback(later: float) -> None:
    with started(*LONG, "--jobs", "2") as process:
        wait_for_workers(process, 4)
        time.sleep(later)  # they import, they compile, they run
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, without_progress(errors)) == (130, "", "")
        wait_until_nobody_is_left(process.pid)


def test_ctrl_c_waits_for_no_worker_that_still_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers alone stand still, before the first line of ours.
    stand_still = (
        "import sys, time\nif '--multiprocessing-fork' in sys.orig_argv: time.sleep(3600)\n"
    )
    tmp_path.joinpath("sitecustomize.py").write_text(stand_still, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with started(*LONG, "--jobs", "4") as process:
        wait_for_workers(process, 6)  # all of them: none is started only once another has imported
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, without_progress(errors)) == (130, "", "")
        wait_until_nobody_is_left(process.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_a_replay_that_is_killed(number: signal.Signals) -> None:
    with started(*LONG, "--jobs", "2") as process:
        wait_for_workers(process, 4)
        time.sleep(2.0)  # until they work: before that they see the end of the pipe that they read
        process.send_signal(number)
        wait_until_nobody_is_left(process.pid)
        if number == signal.SIGTERM:
            out, errors = process.communicate(timeout=PATIENCE)
            assert (process.returncode, out, without_progress(errors)) == (143, "", "")


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5, 1.0, 2.0])
def test_ctrl_c_ends_a_command_that_only_begins(delay: float) -> None:
    with started(*LONG) as process:
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
        assert out == ""
        if delay >= 2.0:
            assert (process.returncode, without_progress(errors)) == (130, "")
        # What comes before the first line of ours is Python's to answer.
        assert process.returncode
        assert "in main" not in errors


@pytest.fixture(name="unanswering")
def unanswering_(tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of an API server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        path = tmp_path / "kubeconfig"
        path.write_text(
            f"{{clusters: [{{name: c, cluster: {{server: '{url}'}}}}], users: [{{name: u, user: {{token: t}}}}],"
            " contexts: [{name: c, context: {cluster: c, user: u}}], current-context: c}",
            encoding="utf-8",
        )
        yield path


@pytest.mark.parametrize("delay", DELAYS)
def test_sigterm_ends_a_start_at_any_moment_without_a_traceback(
    delay: float, unanswering: Path
) -> None:
    with started("run", "--port", "0", "--kubeconfig", str(unanswering)) as process:
        time.sleep(delay)
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE)
        # Ended by the signal itself only before the first line of ours ran: what is the first process of a
        # container would not be.
        begun = {0, 128 + signal.SIGTERM}
        assert process.returncode in (begun if delay >= 2.0 else {*begun, -signal.SIGTERM}), errors
        assert "Traceback" not in errors
        assert "Unclosed" not in errors
        assert '"level": "error"' not in errors
        wait_until_nobody_is_left(process.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_start_that_compiles_does_not_compile_to_its_end(
    number: signal.Signals, unanswering: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    with started("run", "--port", "0", "--kubeconfig", str(unanswering)) as process:
        assert process.stderr is not None
        while '"event": "getting kernels ready"' not in (line := process.stderr.readline()):
            assert '"event": "answering probes"' in line
        time.sleep(1.0)
        process.send_signal(number)
        _, rest = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + number
        assert "listing" not in rest
        assert "Traceback" not in rest


def test_a_start_tells_what_it_is_at(unanswering: Path) -> None:
    with started("run", "--port", "0", "--kubeconfig", str(unanswering)) as process:
        assert process.stderr is not None
        told = ""
        while '"event": "listing"' not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        assert '"event": "getting kernels ready"' in told
        process.terminate()
        _, rest = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert '"event": "stopped before it had started"' in rest


def complaint(errors: str) -> str:
    """The one sentence on standard error, which may be wrapped, beside what is logged and complains of nothing."""
    calm = ('"level": "info"', '"level": "warning"')
    first, *rest = [
        line for line in errors.splitlines() if not any(level in line for level in calm)
    ]
    assert all(line.startswith("  ") for line in rest)
    return " ".join([first, *map(str.strip, rest)])


def test_a_port_that_is_taken_is_told_in_one_sentence(unanswering: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with started("run", "--port", port, "--kubeconfig", str(unanswering)) as process:
            _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "Traceback" not in errors
    assert complaint(errors).startswith(
        f"--host 127.0.0.1 --port {port}: cannot listen for probes: "
    )


@pytest.mark.parametrize("host", ["not..host", "x" * 64])
def test_what_can_be_no_host_is_told_in_one_sentence(host: str, unanswering: Path) -> None:
    with started("run", "--host", host, "--port", "0", "--kubeconfig", str(unanswering)) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "Traceback" not in errors
    told = f"--host: {host} is not a host name: write parts of 1 to 63 letters, digits or -, "
    assert complaint(errors).startswith(told)
