"""Turns before nodes: the drawn table is the code, and each thing that may happen moves them as it says."""

import pytest

from scheduler.api.door.events import PluginSilent
from scheduler.errors import BrokenInvariant
from scheduler.kube.bind import moves
from scheduler.kube.bind.jobs import GiveBack, Start
from scheduler.kube.bind.moves import MOVES, OF_WORKERS, Event, State
from scheduler.kube.bind.turns import Turns
from tests.unit.turns_jobs import ALLOCATE, SILENCE, job


def drawn() -> dict[State, dict[Event, str]]:
    """The table of the docstring: a word for each state and event."""
    rows = [line.split() for line in (moves.__doc__ or "").splitlines() if line.startswith("    ")]
    (corner, *events), *lines = rows
    assert corner == "state"
    return {
        State[name]: {Event[event]: word for event, word in zip(events, words, strict=True)}
        for name, *words in lines
    }


def test_the_table_draws_every_state_and_event_once() -> None:
    table = drawn()
    assert list(table) == list(State)
    assert all(list(row) == list(Event) for row in table.values())


@pytest.mark.parametrize("state", State, ids=lambda one: one.name)
def test_a_turn_moves_as_the_table_draws_it(state: State) -> None:
    words = drawn()[state]
    assert {e.name: w for e, w in words.items() if w not in {".", "-"}} == {
        event.name: after.name for event, after in MOVES[state].items()
    }
    impossible = {event for event, word in words.items() if word == "-"}
    assert impossible == OF_WORKERS - MOVES[state].keys()


def test_a_worker_without_the_turn_is_a_bug() -> None:
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    turns.submitted(first)
    turns.submitted(second)
    with pytest.raises(BrokenInvariant, match="not the turn"):
        turns.bound(second, 0.0)
    turns.bound(first, 0.0)
    with pytest.raises(BrokenInvariant, match="ALLOCATING"):
        turns.failed(first)


def test_the_next_pod_goes_when_the_plugin_has_answered_and_the_lock_is_gone() -> None:
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    assert turns.submitted(first) == [Start(first)]
    assert turns.submitted(second) == []
    assert turns.taken(first) == []
    # A node that was read before it was locked says nothing of a turn that has not come so far.
    assert turns.unlocked("a") == []
    assert turns.bound(first, 1.0) == []
    assert turns.answered("1", "a", 2.0) == []
    assert turns.unlocked("a") == [Start(second)]


def test_a_lock_that_a_plugin_leaves_behind_is_waited_for_a_second() -> None:
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    turns.submitted(first)
    turns.submitted(second)
    turns.bound(first, 1.0)
    turns.answered("1", "a", 2.0)
    assert turns.passed(2.9) == []
    assert turns.passed(3.0) == [Start(second)]


def test_an_answer_that_comes_before_the_api_servers_ends_no_turn() -> None:
    """The bind's own answer may be lost, and with it the turn would go to the next while a write is out."""
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    turns.submitted(first)
    turns.submitted(second)
    turns.taken(first)
    assert turns.answered("1", "a", 1.0) == []
    assert turns.unlocked("a") == []
    assert turns.passed(100.0) == []
    assert turns.bound(first, 101.0) == []
    assert turns.unlocked("a") == [Start(second)]


def test_an_answer_for_a_pod_on_another_node_ends_no_turn() -> None:
    turns = Turns(ALLOCATE)
    first = job("1")
    turns.submitted(first)
    turns.bound(first, 1.0)
    assert turns.answered("1", "b", 2.0) == []
    assert turns.passed(2.0 + SILENCE) != []


def test_who_waits_behind_a_silent_plugin_goes_elsewhere_and_nobody_comes_before_it_answers() -> (
    None
):
    turns = Turns(ALLOCATE)
    first, second, third, fourth = (job(str(i)) for i in range(4))
    turns.submitted(first)
    turns.submitted(second)
    turns.bound(first, 0.0)
    why = "the device plugin of node a does not answer"
    assert turns.passed(SILENCE) == [
        PluginSilent("a", silent=True, waits_for=first.uid), GiveBack(second, why)
    ]  # fmt: skip
    assert turns.submitted(third) == [GiveBack(third, why)]
    assert turns.answered(first.uid, "a", 100.0) == [PluginSilent("a", silent=False)]
    assert turns.submitted(fourth) == []
    assert turns.passed(101.0) == [Start(fourth)]


def test_a_silent_node_is_left_alone_no_longer_than_its_plugin_had_for_the_pod() -> None:
    turns = Turns(ALLOCATE)
    first = job("1")
    turns.submitted(first)
    turns.bound(first, 0.0)
    turns.passed(SILENCE)
    assert turns.passed(ALLOCATE - 1) == []
    assert turns.passed(ALLOCATE) == [PluginSilent("a", silent=False)]


def test_a_lock_of_another_schedulers_pod_is_tried_every_second_and_not_for_ever() -> None:
    turns = Turns(ALLOCATE)
    first = job("1")
    turns.submitted(first)
    for second in range(int(SILENCE)):
        assert turns.contended(first, float(second)) == []
        assert turns.passed(second + 0.9) == []
        effects = turns.passed(second + 1.0)
        assert effects == [Start(first)] or second == SILENCE - 1
    why = "the device plugin of node a does not answer"
    assert effects == [PluginSilent("a", silent=True), GiveBack(first, why)]
    assert turns.passed(SILENCE + 59.0) == []
    assert turns.passed(SILENCE + 60.0) == [PluginSilent("a", silent=False)]
    assert turns.nodes() == set()


def test_a_lock_that_is_found_taken_after_a_silence_is_not_tried_again() -> None:
    turns = Turns(ALLOCATE)
    first = job("1")
    turns.submitted(first)
    turns.contended(first, 0.0)
    turns.passed(1.0)
    # The look at the lock takes its time.
    assert turns.passed(SILENCE) == [PluginSilent("a", silent=True, waits_for="1")]
    assert turns.contended(first, SILENCE + 1.0) == [
        GiveBack(first, "the device plugin of node a does not answer")
    ]


def test_turns_that_end_are_no_silence_however_many_they_are() -> None:
    turns = Turns(ALLOCATE)
    line = [job(str(i)) for i in range(5)]
    for one in line:
        turns.submitted(one)
    for i, one in enumerate(line):
        turns.bound(one, 15.0 * i)
        assert turns.passed(15.0 * i + 14.0) == []
        assert turns.unlocked("a") == [Start(after) for after in line[i + 1 : i + 2]]
        assert turns.passed(15.0 * i + 15.0) == []


def test_a_silence_for_a_bind_in_doubt_ends_with_the_doubt() -> None:
    turns = Turns(ALLOCATE)
    first = job("1")
    turns.submitted(first)
    turns.doubted(first, 0.0)
    assert turns.passed(SILENCE) == [PluginSilent("a", silent=True, waits_for="1")]
    bound_at = SILENCE + 5.0
    assert turns.bound(first, bound_at) == [PluginSilent("a", silent=False)]
    # From here on the plugin is asked.
    assert turns.passed(bound_at + SILENCE - 0.1) == []
    assert turns.passed(bound_at + SILENCE) == [PluginSilent("a", silent=True, waits_for="1")]


def test_a_bind_in_doubt_that_comes_to_nothing_leaves_its_node_open() -> None:
    turns = Turns(15.0)
    first = job("1")
    turns.submitted(first)
    turns.doubted(first, 0.0)
    turns.passed(15.0)
    assert turns.failed(first) == [PluginSilent("a", silent=False)]
    assert turns.nodes() == set()


def test_a_bind_in_doubt_keeps_its_turn_and_lets_the_others_go_elsewhere() -> None:
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    turns.submitted(first)
    turns.taken(first)
    turns.submitted(second)
    turns.doubted(first, 5.0)
    turns.doubted(first, 15.0)
    assert turns.passed(24.9) == []
    silent, back = turns.passed(25.0)
    assert silent == PluginSilent("a", silent=True, waits_for="1")
    assert isinstance(back, GiveBack)
    assert turns.failed(first) == [PluginSilent("a", silent=False)]


def test_a_pod_that_is_deleted_is_not_waited_for() -> None:
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    turns.submitted(first)
    turns.submitted(second)
    assert turns.pod_gone("1") == []
    turns.bound(first, 0.0)
    turns.passed(SILENCE)
    assert turns.pod_gone("1") == [PluginSilent("a", silent=False)]
    assert turns.nodes() == set()


def test_a_node_that_is_deleted_gives_back_what_waits_for_it() -> None:
    turns = Turns(ALLOCATE)
    first, second = job("1"), job("2")
    turns.submitted(first)
    turns.submitted(second)
    assert turns.node_gone("a") == [GiveBack(second, "node a is gone")]
    # What a worker has it finishes.
    assert turns.nodes() == {"a"}
    assert turns.failed(first) == []
    assert turns.nodes() == set()
