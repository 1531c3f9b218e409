"""A turn of a tree of queues: when another cycle may bring something, and when it may be left for later."""

from __future__ import annotations

from scheduler.tenancy.outcomes import AGAIN, PARKED, Outcome
from scheduler.tenancy.turns import Turn
from tests.model.tenants import make_tenants, make_work
from tests.oracles.kueue import cases

TWO_FLAVORS = {"quotas": [{"fast": {"cpu": 1}, "slow": {"cpu": 1}}]}
WORK = make_work(cases.make_workload("team/w", {"in": "q", "uid": "w"}), "q")
OTHER = make_work(cases.make_workload("team/v", {"in": "q", "uid": "v"}), "q")


def make_turn() -> Turn:
    tenants = make_tenants(cases.make_objects({"queues": {"q": TWO_FLAVORS}}), {}, cases.NOW)
    [turn] = tenants.list_due(0.0)
    return turn


def test_who_asks_again_is_tried_once_for_each_flavor_and_once_more() -> None:
    turn, n_cycles = make_turn(), 0
    while not turn.is_over([WORK]):
        turn.note_cycle([WORK], Outcome(left=[(WORK, AGAIN)]))
        n_cycles += 1
    assert n_cycles == 3


def test_to_leave_a_turn_and_take_it_up_again_gives_no_more_tries() -> None:
    turn, n_cycles = make_turn(), 0
    while not turn.is_over([WORK]):
        turn.note_cycle([WORK], Outcome(left=[(WORK, AGAIN)]))
        n_cycles += 1
        turn.leave(0)
        turn.take_up(0)
        assert turn.is_over([WORK]) == turn.is_over([WORK])
    assert n_cycles == 3


def test_what_happens_in_the_meantime_is_a_reason_to_try_again() -> None:
    turn = make_turn()
    turn.note_cycle([WORK], Outcome(left=[(WORK, PARKED)]))
    assert turn.is_over([WORK])
    assert turn.is_over([])
    assert not turn.is_over([OTHER])
    turn.note_due()
    assert not turn.is_over([WORK])


def test_what_was_found_is_kept_until_a_workload_or_quota_changes() -> None:
    turn = make_turn()
    for n_changes, generation, is_kept in ((7, 0, True), (8, 0, False), (8, 1, False)):
        turn.kept = {"team/w": None}  # type: ignore[dict-item]
        turn.leave(7)
        turn.tree.generations[0] += generation
        turn.take_up(n_changes)
        assert bool(turn.kept) == is_kept


def test_a_turn_that_begins_anew_may_be_left_after_twice_as_many_cycles_each_time() -> None:
    turn = make_turn()
    for least in (1, 2, 4, 8):
        n_cycles = 0
        while not n_cycles or not turn.may_be_left:
            turn.note_cycle([WORK], Outcome())
            n_cycles += 1
        assert n_cycles == least
        turn.is_retried = True
        turn.take_up(0)
        # Its first cycle needs leave.
        assert turn.may_be_left
