"""Slices of elastic jobs: a workload that takes the place of a running one, and needs only what it asks beyond it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.slice_stories import SliceStory, carry_out
from tests.model.tenants import make_tenants, run_one_cycle
from tests.oracles.kueue import cases
from tests.oracles.kueue.cases import Case
from tests.oracles.kueue.cycle import run_cycles
from tests.unit.test_tenancy_cases import check_waiting, describe_admitted, describe_preempted

Json = dict[str, Any]
with_cases = pytest.mark.parametrize("case", cases.load("slices"), ids=lambda case: case.name)


@with_cases
def test_the_twin_lets_slices_take_the_place_of_others(case: Case) -> None:
    outcomes = run_cycles(case.objects, case.config, case.now, case.fields["limit"])
    moves = [
        {"admitted": one.admitted, "preempted": one.preempted, "replaced": one.replaced}
        for one in outcomes
    ]
    want = case.expected["cycles"]
    assert moves[: len(want)] == want
    assert not any(any(one.values()) for one in moves[len(want) :])
    assert outcomes[-1].pending == case.expected["pending"]


# Of these only the words differ: who can never get all that it asks is told so, and with all that it asks.
TOLD_IN_FULL = {"a slice waits for the flavor of the one before it, though another one is free"}


@with_cases
def test_slices_take_the_place_of_others(case: Case) -> None:
    tenants = make_tenants(case.objects, case.config, case.now)
    moves: list[Json] = []
    for _ in range(case.fields["limit"]):
        outcome = run_one_cycle(tenants, case.now)
        replaced = carry_out(tenants, outcome)
        moves.append(
            {
                "admitted": describe_admitted(outcome.admitted),
                "preempted": describe_preempted(outcome.preempted),
                "replaced": replaced,
            }
        )
    # In a cycle in which nothing comes of a queue, Kueue has passed over somebody who may not even be tried.
    assert [one for one in moves if any(one.values())] == case.expected["cycles"]
    if case.name not in TOLD_IN_FULL:
        check_waiting(tenants, case.expected["pending"])


def test_a_slice_that_shrinks_frees_quota_at_once() -> None:
    """As in Kueue's scheduler_test.go: should handle scale-up and in-place scale-down with workload slicing."""
    story = SliceStory(limits={"a": 10, "b": 0}, flavors=("one",))
    story.come(0, n_pods=4)
    story.decide()
    story.write(0)
    story.grow(0, more=4)
    story.decide()
    story.write(0)
    assert story.list_used()["a"] == {("one", "cpu"): 8000}
    story.come(0, n_pods=4)
    story.decide()
    assert not story.assumed
    story.shrink(0, less=2)
    assert story.list_used()["a"] == {("one", "cpu"): 6000}
    story.decide()
    story.check()
    assert story.list_used()["a"] == {("one", "cpu"): 10_000}


def make_grown(*, fair: bool = False, more: int = 2) -> SliceStory:
    """A workload with quota, and its next slice that has just got it, which no object says yet."""
    story = SliceStory(limits={"a": 8, "b": 0}, fair=fair)
    story.come(0, n_pods=2)
    story.decide()
    story.write(0)
    story.grow(0, more=more)
    story.decide()
    return story


@pytest.mark.parametrize("end", ["fail", "drop", "finish"])
def test_a_slice_that_ends_before_its_quota_is_written_gives_it_back_to_the_old_one(
    end: str,
) -> None:
    story = make_grown()
    assert list(story.assumed) == ["default/w1"]
    story.happen(end, 0 if end == "fail" else 1, 0)
    story.check()
    assert story.list_used()["a"] == {("one", "cpu"): 2000}
    assert not story.told["default/w0"].is_over


def test_who_got_quota_beside_its_next_slice_is_replaced_once_both_are_written() -> None:
    story = SliceStory(limits={"a": 8, "b": 0})
    story.come(0, n_pods=2)
    story.decide()
    # The object of the first one does not say that it has quota, so the next one gets all that it asks.
    story.grow(0, more=1)
    story.decide()
    story.check()
    assert story.list_used()["a"] == {("one", "cpu"): 5000}
    story.write(0)
    story.check()
    story.write(0)
    story.check()
    assert story.list_used()["a"] == {("one", "cpu"): 3000}
    assert story.told["default/w0"].is_over


@pytest.mark.parametrize("fair", [False, True])
def test_a_smaller_slice_leaves_no_usage_in_a_cohort(fair: bool) -> None:
    story = make_grown(fair=fair, more=-1)
    story.check()
    assert story.list_used()["a"] == {("one", "cpu"): 1000}


EVENTS = (
    "come",
    "grow",
    "decide",
    "decide",
    "write",
    "write",
    "fail",
    "evict",
    "release",
    "shrink",
    "alter",
    "finish",
    "drop",
)
events = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 9), st.integers(1, 3)),
    min_size=5,
    max_size=40,
)


@given(events=events, limits=st.tuples(st.integers(2, 9), st.integers(0, 9)), fair=st.booleans())
def test_whatever_happens_each_chain_counts_once(
    events: list[tuple[str, int, int]], limits: tuple[int, int], fair: bool
) -> None:
    story = SliceStory(limits=dict(zip("ab", limits, strict=True)), fair=fair)
    for what, i, n in events:
        story.happen(what, i, n)
        story.check()
