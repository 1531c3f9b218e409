"""The console script runs Evenkeel's ``scheduler`` or none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("evenkeel")


def _run(path: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(path)}
    command = [str(SCRIPT), "simulate", "--help"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_console_script_starts_evenkeel(tmp_path: Path) -> None:
    done = _run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Show where pods would go" in done.stdout


@pytest.mark.parametrize("name", ["scheduler/__init__.py", "scheduler.py", "scheduler/other.txt"])
def test_another_package_of_that_name_is_refused_in_plain_words(name: str, tmp_path: Path) -> None:
    """Else the user reads a traceback, or runs who knows what."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("raise RuntimeError('somebody else ran')\n")
    done = _run(tmp_path)
    if name.endswith(".txt"):  # a folder without code yields to a package further down the path
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    told = " ".join(done.stderr.split())
    assert f"`scheduler` is not Evenkeel's but another's: {file}" in told
    assert "an environment of its own" in told
    lines = done.stderr.splitlines()
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in lines)
