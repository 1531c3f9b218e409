"""How many kernels are compiled is told while they are."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from scheduler.config import Config
from scheduler.engine import warm
from scheduler.kernels import place, preempt
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
