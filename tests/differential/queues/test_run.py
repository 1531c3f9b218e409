"""A run counts what it asks, leaves out what is chance, and keeps what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.differential.queues import newer, ours, run, worlds
from tests.differential.queues.compare import find_differences
from tests.differential.queues.outcomes import ADMITTED, PENDING, Fate, Outcome, StepOutcome
from tests.differential.queues.slices import REPLACED
from tests.differential.queues.worlds import World
from tests.model.slice_stories import check_usage

WAITS = Fate(PENDING, reason="Pending", message="1 more needed")


def answer(world: World, fate: Fate = WAITS) -> Outcome:
    names = [one["metadata"]["name"] for step in world.steps for one in step.created]
    return Outcome([StepOutcome(dict.fromkeys(names, fate))])


class Echo:
    """Says that all wait, but for what a test makes of it."""

    def __init__(
        self, change: Callable[[int, World], Fate | None] = lambda _n, _world: WAITS
    ) -> None:
        self._change = change
        self.asked: list[tuple[int, bool]] = []

    async def ask(self, world: World, *, patiently: bool = False) -> Outcome:
        self.asked.append((world.seed, patiently))
        fate = self._change(len(self.asked), world)
        if fate is None:
            raise TimeoutError
        return answer(world, fate)


def asked(
    echo: Echo, ours: run.RunOurs | None, n_worlds: int = 3, times: int = run.TIMES
) -> tuple[run.Tally, list[run.Case]]:
    cases: list[run.Case] = []
    plan = run.Plan(seed=1, numbers=range(n_worlds), times=times)
    tally = asyncio.run(run.run([echo], plan, ours, lambda _, case: cases.append(case)))
    return tally, cases


def test_each_world_is_asked_twice_and_the_second_time_with_patience() -> None:
    echo = Echo()
    tally, cases = asked(echo, None)
    assert tally.worlds == len(cases) == 3
    first = cases[0].world.seed
    assert echo.asked[:3] == [(first, False), (first, True), (first + 1, False)]
    assert "ambiguous in Kueue itself and not compared: 0" in tally.report()


def test_who_says_the_same_is_not_different() -> None:
    tally, _ = asked(Echo(), answer)
    assert not tally.failed
    assert not tally.known


def test_who_says_something_else_fails() -> None:
    tally, cases = asked(Echo(), lambda world: answer(world, Fate(ADMITTED, "queue-0")))
    assert [case.name for case in tally.failed] == [case.name for case in cases]
    assert "DIFFERENT, 3 worlds: status" in tally.report()


def test_a_world_that_differs_is_asked_once_more_with_patience() -> None:
    unfinished = Fate(PENDING, reason="Pending", message="")
    echo = Echo(lambda n, _: unfinished if n == 1 else WAITS)
    tally, cases = asked(echo, answer, times=1)
    assert [is_patient for _, is_patient in echo.asked] == [False, True, False, False]
    assert not tally.failed
    assert not tally.ambiguous
    assert {one.what for one in cases[0].chance.differences} == {"message"}
    echo = Echo(lambda *_: unfinished)
    tally, _ = asked(echo, answer, n_worlds=1, times=1)
    assert len(echo.asked) == 2
    assert len(tally.failed) == 1


def test_a_known_difference_fails_nothing() -> None:
    later = Fate(PENDING, reason="WaitingForQuota", message="1 more needed")
    tally, _ = asked(Echo(), lambda world: answer(world, later))
    assert not tally.failed
    assert list(tally.known.values()) == [3]


def test_an_ambiguous_world_is_not_compared() -> None:
    echo = Echo(lambda n, _: Fate(ADMITTED, "queue-0") if n == 1 else WAITS)
    tally, cases = asked(echo, answer)
    assert tally.ambiguous == 1
    assert [case.ours is None for case in cases] == [True, False, False]


def test_a_world_without_rest_is_given_up_and_named() -> None:
    echo = Echo(lambda n, _: None if n == 1 else WAITS)
    tally, cases = asked(echo, answer)
    assert [*tally.lost] == ["seed 1 world 0"]
    assert len(cases) == 2


@pytest.mark.parametrize("is_fair", [False, True])
def test_with_slices_ours_does_what_the_twin_does_or_as_if_the_old_slice_had_gone(
    is_fair: bool,
) -> None:
    n_replaced = 0
    for seed in range(20):
        world = worlds.build(seed, is_fair=is_fair, has_slices=True)
        play = ours.Play(world)
        mine, plain = play.answer(), ours.run_without_sparing(world)
        check_usage(play.tenants, world.objects_at_the_end)
        n_replaced += sum(fate.reason == REPLACED for fate in mine.steps[-1].fates.values())
        answers = [newer.run(world), newer.run(world, asks_in_full=True)]
        found = [
            all(one.is_of_words for one in find_differences(answer.outcome, some))
            for answer in answers
            for some in (mine, plain)
        ]
        assert any(found) or any(answer.goes_in_circles for answer in answers), seed
    assert n_replaced > 5


@pytest.mark.parametrize("is_fair", [False, True])
def test_ours_does_what_the_twin_of_the_newer_rules_does(is_fair: bool) -> None:
    for seed in range(20):
        world = worlds.build(seed, is_fair=is_fair)
        answer, mine = newer.run(world), ours.run(world)
        # By Kueue's rules some evict each other for ever; by ours nobody does.
        assert not any(step.is_endless for step in mine.steps), seed
        plain = ours.run_without_sparing(world)
        found = find_differences(answer.outcome, mine) and find_differences(answer.outcome, plain)
        assert all(one.is_of_words for one in found) or answer.goes_in_circles, seed
