"""How many kernels are compiled is told while they are."""

from typing import Any

from scheduler.config import Config
from scheduler.engine import warm
from scheduler.kernels import place, preempt
from scheduler.kernels.modes import filling, places, rooms


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
