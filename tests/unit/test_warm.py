"""How many kernels are compiled is told while they are."""

from scheduler.config import Config
from scheduler.engine import warm


def test_what_a_start_compiles_is_counted_among_all_kernels() -> None:
    count = warm.Count()
    assert len(count) > 100
    warm.warm(Config())
    # With a full cache only those are read that Python calls; their parts come with them.
    assert 5 <= count.compiled() <= len(count)
