"""Standard output as shells give it: a full disk, a pipe that nobody reads on, a pipe with colours wanted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests import make
from tests.screen import without_progress

ROOT = Path(__file__).parents[2]
COMMANDS = ("simulate", "audit")
N_PODS = 400


@pytest.fixture(name="cluster", scope="module")
def cluster_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a cluster whose answer is longer than a line and a buffer."""
    node = msgspec.to_builtins(make.node(name="n", cpu=64, memory="64Gi"))
    items = [{"apiVersion": "v1", "kind": "Node"} | node]
    for i in range(N_PODS):
        pod = msgspec.to_builtins(make.pod(name=f"{i}-{'p' * 100}", cpu=100, memory="2Gi"))
        items.append({"apiVersion": "v1", "kind": "Pod"} | pod)
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": items}), encoding="utf-8")
    return path


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], cwd=ROOT, env=os.environ | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    done.stderr = without_progress(done.stderr)
    return done


def evenkeel(command: str, *arguments: str | Path) -> str:
    return " ".join([sys.executable, "-m", "scheduler", command, *map(str, arguments)])


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_told_in_one_line(command: str, output: str, cluster: Path) -> None:
    done = shell(evenkeel(command, "-f", cluster, "-o", output) + " > /dev/full")
    told = "output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_that_nobody_reads_on_is_silent(command: str, cluster: Path) -> None:
    done = shell(evenkeel(command, "-f", cluster, "-o", "json") + " | head -1")
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_gets_whole_lines_and_nothing_that_moves_where_colours_are_wanted(
    command: str, cluster: Path
) -> None:
    plain = shell(evenkeel(command, "-f", cluster))
    coloured = shell(
        evenkeel(command, "-f", cluster), FORCE_COLOR="1", COLUMNS="40", TERM="xterm-256color"
    )
    assert (plain.returncode, plain.stderr) == (coloured.returncode, coloured.stderr) == (0, "")
    assert "\x1b" not in coloured.stdout
    # The first line of an audit says when it was made.
    assert coloured.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:]
    assert max(map(len, coloured.stdout.splitlines())) > 100
