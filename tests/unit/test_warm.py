"""How many kernels are compiled is told while they are."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import pytest
from typer.testing import CliRunner

from scheduler import cli, progress
from scheduler.config import Config
from scheduler.engine import warm
from scheduler.kernels import _jit, place, preempt
from scheduler.kernels.modes import filling, places, rooms
from tests.unit.compiled import needs_jit


def test_what_a_start_compiles_is_counted_among_all_kernels() -> None:
    count = warm.Count()
    assert len(count) > 100
    warm.warm(Config())
    # With a full cache only those are read that Python calls; their parts come with them.
    assert 5 <= count.compiled() <= len(count)


def test_the_first_preemption_waits_for_no_compiler() -> None:
    warm.warm(Config(preemption=False))
    compiled: list[Any] = [preempt.ask, preempt.by_node, place.put_at]
    assert [len(kernel.signatures) for kernel in compiled] == [1, 1, 1]


def test_learning_from_many_waits_for_no_compiler() -> None:
    warm.warm(Config())
    learns: list[Any] = [filling.fill, rooms.fitting, rooms.count, places.count]
    assert [len(kernel.signatures) for kernel in learns] == [1, 1, 1, 1]


@needs_jit
def test_after_warm_no_command_waits_for_the_compiler() -> None:
    """The first `explain` after `warm` took 33 s. In a process of its own: other tests have compiled more."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.warmed"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "-f", "none.yaml"],
        ["explain", "pod", "p", "-f", "none.yaml"],
        ["audit", "-f", "none.yaml"],
        ["replay", "none", "--experiment", "fill"],
        ["rerun", "none.log"],
    ],
)
def test_the_first_command_of_a_version_compiles_with_a_bar_and_not_in_silence(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int]] = []

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Any]:
        shown.append((what, total))
        yield shown.append

    monkeypatch.setattr(warm, "is_due", lambda: True)
    monkeypatch.setattr(warm, "warm", lambda _: None)
    monkeypatch.setattr(progress, "bar", bar)
    assert CliRunner().invoke(cli.app, command).exit_code != 0
    assert shown == [("kernels compiled", len(warm.Count()))]


def test_kernels_are_due_while_their_folder_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jit, "_folder", tmp_path)
    monkeypatch.setattr(_jit, "_is_writable", True)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    assert warm.is_due()
    (tmp_path / "cold").touch()
    assert not warm.is_due()
    # Nothing that is compiled can be kept: compiling all kernels would bring nothing.
    monkeypatch.setattr(_jit, "_folder", None)
    assert not warm.is_due()
