"""``evenkeel demo`` as installed: it comes out as told, and ends with what to type next."""

import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.demo import patterns
from scheduler.embedded.agents import nodes
from scheduler.simulate import files

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("evenkeel")


@pytest.mark.parametrize(
    "words", [[str(SCRIPT)], [sys.executable, "-m", "scheduler"]], ids=["script", "module"]
)
def test_the_last_line_works_as_typed(words: list[str]) -> None:
    done = subprocess.run([*words, "demo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    command = done.stdout.splitlines()[-1].strip()
    assert "simulate" in command
    again = subprocess.run(
        command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert "4 of 4 pods scheduled on 2 nodes" in again.stdout


def test_the_file_of_nodes_is_what_the_demo_runs_on() -> None:
    written = files.read(str(patterns.NODES), sys.stdin)
    assert [one["metadata"]["name"] for one in written] == ["node-a", "node-b"]
    for one in written:
        there = nodes.gpu_node(one["metadata"]["name"])
        assert one["status"]["allocatable"] == there["status"]["allocatable"]
        register = "hami.io/node-nvidia-register"
        assert "".join(one["metadata"]["annotations"][register].split()) == "".join(
            there["metadata"]["annotations"][register].split()
        )
