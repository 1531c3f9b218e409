"""How much one turn of the loop may do."""

import time

from scheduler.engine.allowance import Work
from scheduler.kube import slices


def test_a_slice_allows_work_until_its_time_is_over() -> None:
    now = 100.0
    budget = slices.Slice(lambda: now, pods=3)
    assert budget.allows(Work.BATCH)
    now += slices.SECONDS
    assert not budget.allows(Work.BATCH)
    assert budget.spent[Work.BATCH] == 1


def test_decisions_are_timed_finer_than_the_clock_of_the_loop() -> None:
    """uvloop's clock ticks in milliseconds, and a decision takes tens of microseconds."""
    budget = slices.Slice(lambda: 100.0, pods=3)
    assert budget.decided_from == 0.0
    before = time.perf_counter()
    assert budget.allows(Work.BATCH)
    assert before <= budget.decided_from <= time.perf_counter()
    first = budget.decided_from
    assert budget.allows(Work.BATCH)
    assert budget.decided_from == first


def test_one_expensive_piece_leaves_a_part_to_looks_and_decisions() -> None:
    now = 100.0
    budget = slices.Slice(lambda: now, pods=3)
    assert budget.allows(Work.COMPILE)
    now += 5 * slices.SECONDS
    assert not budget.allows(Work.COMPILE)
    for work in (Work.CHORE, Work.BATCH):
        pieces = 0
        while budget.allows(work):
            pieces += 1
            now += slices.SECONDS / 20
        assert 3 <= pieces <= 10
    assert budget.spent == [1, *budget.spent[1:]]
