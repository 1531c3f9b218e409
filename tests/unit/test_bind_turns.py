"""Turns before nodes: the drawn table is the code, and each thing that may happen moves them as it says."""

from collections.abc import Callable

import pytest

from scheduler.api.door.events import PluginSilent
from scheduler.errors import BrokenInvariant
from scheduler.kube.bind import moves
from scheduler.kube.bind.jobs import GiveBack, Job, Release, Start
from scheduler.kube.bind.moves import MOVES, WORKER_EVENTS, Event, State
from scheduler.kube.bind.turns import Effect, Turns
from tests.unit.turns_jobs import DAY, SILENCE, UNLOCKED, job


def add(turns: Turns, one: Job) -> list[Effect]:
    """Add a job that is all that was decided."""
    return turns.add_job(one) + turns.begin_turns()


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
    assert impossible == WORKER_EVENTS - MOVES[state].keys()


def test_a_worker_without_the_turn_is_a_bug() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    add(turns, second)
    with pytest.raises(BrokenInvariant, match="not the turn"):
        turns.note_bound(second, 0.0)
    turns.note_bound(first, 0.0)
    with pytest.raises(BrokenInvariant, match="ALLOCATING"):
        turns.note_failed(first)


def test_the_next_pod_goes_when_the_plugin_has_answered_and_the_lock_is_gone() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    assert add(turns, first) == [Start(first)]
    assert add(turns, second) == []
    assert turns.note_taken(first) == []
    # A node that was read before it was locked says nothing of a turn that has not come so far.
    assert turns.note_unlocked("a") == []
    assert turns.note_bound(first, 1.0) == []
    assert turns.note_answer("1", "a", 2.0) == []
    assert turns.note_unlocked("a") == [Start(second)]


def test_a_lock_that_a_plugin_leaves_behind_is_waited_for_a_second() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    add(turns, second)
    turns.note_bound(first, 1.0)
    turns.note_answer("1", "a", 2.0)
    assert turns.pass_time(2.9) == []
    assert turns.pass_time(3.0) == [Start(second)]


def test_an_answer_that_comes_before_the_api_servers_ends_no_turn() -> None:
    """The bind's own answer may be lost, and with it the turn would go to the next while a write is out."""
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    add(turns, second)
    turns.note_taken(first)
    assert turns.note_answer("1", "a", 1.0) == []
    assert turns.note_unlocked("a") == []
    assert turns.pass_time(100.0) == []
    assert turns.note_bound(first, 101.0) == []
    assert turns.note_unlocked("a") == [Start(second)]


def test_an_answer_for_a_pod_on_another_node_ends_no_turn() -> None:
    turns = Turns()
    first = job("1")
    add(turns, first)
    turns.note_bound(first, 1.0)
    assert turns.note_answer("1", "b", 2.0) == []
    assert turns.pass_time(2.0 + SILENCE) != []


def test_who_waits_behind_a_silent_plugin_goes_elsewhere_and_nobody_comes_before_it_answers() -> (
    None
):
    turns = Turns()
    first, second, third, fourth = (job(str(i)) for i in range(4))
    add(turns, first)
    add(turns, second)
    turns.note_bound(first, 0.0)
    why = "the device plugin of node a does not answer"
    assert turns.pass_time(SILENCE) == [
        PluginSilent("a", silent=True, waits_for=first.uid), GiveBack(second, why)
    ]  # fmt: skip
    assert add(turns, third) == [GiveBack(third, why)]
    assert turns.note_answer(first.uid, "a", 100.0) == [PluginSilent("a", silent=False)]
    assert add(turns, fourth) == []
    assert turns.pass_time(101.0) == [Start(fourth)]


@pytest.mark.parametrize(
    "end",
    [
        lambda turns: turns.note_answer("1", "a", DAY),
        lambda turns: turns.note_unlocked("a"),
        lambda turns: turns.note_pod_gone("1"),
        lambda turns: turns.note_node_gone("a"),
    ],
    ids=["answer", "unlocked", "pod-gone", "node-gone"],
)
def test_no_clock_ends_the_turn_of_a_pod_that_is_not_served(
    end: Callable[[Turns], list[Effect]],
) -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    turns.note_bound(first, 0.0)
    turns.pass_time(SILENCE)
    assert turns.pass_time(DAY) == []
    assert add(turns, second) == [GiveBack(second, "the device plugin of node a does not answer")]
    # It is tried again as soon as the turn has ended.
    news = [one for one in end(turns) if not isinstance(one, Release)]
    assert news == [PluginSilent("a", silent=False)]
    assert add(turns, second) + turns.pass_time(DAY + 1.0) == [Start(second)]


def test_of_jobs_that_were_decided_together_the_first_by_its_place_begins() -> None:
    turns = Turns()
    second, first = (
        job(name, place=(0.0, True, "2026-01-01", f"default/{name}")) for name in ("b", "a")
    )
    assert turns.add_job(second) + turns.add_job(first) == []
    assert turns.begin_turns() == [Start(first)]
    assert turns.begin_turns() == []


def test_a_node_is_forgotten_whose_jobs_are_gone_before_they_begin() -> None:
    turns = Turns()
    one = job("1")
    turns.add_job(one)
    assert turns.withdraw_job(one, "preempted") == [GiveBack(one, "preempted")]
    assert turns.begin_turns() == []
    assert turns.list_nodes() == set()


def test_the_first_by_priority_and_age_is_next_whenever_it_was_decided() -> None:
    turns = Turns()
    began = job("began")
    add(turns, began)
    young, old, urgent = (
        job("young", place=(0.0, True, "2026-01-02", "default/a")),
        job("old", place=(0.0, True, "2026-01-01", "default/b")),
        job("urgent", place=(-10.0, True, "2026-01-03", "default/c")),
    )
    for one in (young, old, urgent):
        add(turns, one)
    assert turns.list_waiting("a") == (urgent, old, young)
    turns.note_bound(began, 0.0)
    assert turns.note_unlocked("a") == [Start(urgent)]
    # What is put back has its place again, behind one that came meanwhile.
    assert turns.note_contended(urgent, 1.0) == []
    first = job("first", place=(-20.0, True, "2026-01-04", "default/d"))
    add(turns, first)
    assert turns.list_waiting("a") == (first, urgent, old, young)
    assert turns.note_unlocked("a") == [Start(first)]


@pytest.mark.parametrize(
    "end",
    [
        lambda turns: turns.note_answer("holder", "a", 0.5) + turns.note_unlocked("a"),
        lambda turns: turns.note_answer("holder", "a", 0.5) + turns.pass_time(1.5),
        lambda turns: turns.note_pod_gone("holder"),
        lambda turns: turns.note_unlocked("a"),
    ],
    ids=["served-and-unlocked", "served", "gone", "unlocked"],
)
def test_the_end_of_a_lock_that_was_found_taken_is_heard(
    end: Callable[[Turns], list[Effect]],
) -> None:
    """After a restart: the pod whose plugin is at work was bound by a process before."""
    turns = Turns()
    first = job("1")
    add(turns, first)
    assert turns.note_contended(first, 0.0, "holder") == []
    assert list(turns.list_pods()) == ["holder"]
    assert end(turns) == [Start(first)]
    assert list(turns.list_pods()) == ["1"]


def test_the_end_of_a_lock_is_heard_after_the_silence_that_it_caused() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    turns.note_contended(first, 0.0, "holder")
    for second_of_time in range(1, int(SILENCE)):
        assert turns.pass_time(second_of_time) == [Start(first)]
        turns.note_contended(first, second_of_time, "holder")
    silent, _ = turns.pass_time(SILENCE)
    assert silent == PluginSilent("a", silent=True, waits_for="holder")
    assert turns.pass_time(SILENCE + 50.0) == []
    assert turns.note_answer("holder", "a", SILENCE + 51.0) == [PluginSilent("a", silent=False)]
    add(turns, second)
    assert turns.note_unlocked("a") == [Start(second)]


def test_a_lock_of_another_schedulers_pod_is_tried_every_second_and_not_for_ever() -> None:
    turns = Turns()
    first = job("1")
    add(turns, first)
    for second in range(int(SILENCE)):
        assert turns.note_contended(first, float(second)) == []
        assert turns.pass_time(second + 0.9) == []
        effects = turns.pass_time(second + 1.0)
        assert effects == [Start(first)] or second == SILENCE - 1
    why = "the device plugin of node a does not answer"
    assert effects == [PluginSilent("a", silent=True), GiveBack(first, why)]
    assert turns.pass_time(SILENCE + 59.0) == []
    assert turns.pass_time(SILENCE + 60.0) == [PluginSilent("a", silent=False)]
    assert turns.list_nodes() == set()


def test_a_lock_that_is_found_taken_after_a_silence_is_not_tried_again() -> None:
    turns = Turns()
    first = job("1")
    add(turns, first)
    turns.note_contended(first, 0.0)
    turns.pass_time(1.0)
    # The look at the lock takes its time.
    assert turns.pass_time(SILENCE) == [PluginSilent("a", silent=True, waits_for="1")]
    assert turns.note_contended(first, SILENCE + 1.0, "holder") == [
        GiveBack(first, "the device plugin of node a does not answer")
    ]


def test_turns_that_end_are_no_silence_however_many_they_are() -> None:
    turns = Turns()
    line = [job(str(i)) for i in range(5)]
    for one in line:
        add(turns, one)
    for i, one in enumerate(line):
        turns.note_bound(one, 15.0 * i)
        assert turns.pass_time(15.0 * i + 14.0) == []
        assert turns.note_unlocked("a") == [Start(after) for after in line[i + 1 : i + 2]]
        assert turns.pass_time(15.0 * i + 15.0) == []


def test_a_silence_for_a_bind_in_doubt_ends_with_the_doubt() -> None:
    turns = Turns()
    first = job("1")
    add(turns, first)
    turns.note_doubt(first, 0.0)
    assert turns.pass_time(SILENCE) == [PluginSilent("a", silent=True, waits_for="1")]
    bound_at = SILENCE + 5.0
    assert turns.note_bound(first, bound_at) == [PluginSilent("a", silent=False)]
    # From here on the plugin is asked.
    assert turns.pass_time(bound_at + SILENCE - 0.1) == []
    assert turns.pass_time(bound_at + SILENCE) == [PluginSilent("a", silent=True, waits_for="1")]


def test_a_bind_in_doubt_that_comes_to_nothing_leaves_its_node_open() -> None:
    turns = Turns()
    first = job("1")
    add(turns, first)
    turns.note_doubt(first, 0.0)
    turns.pass_time(SILENCE)
    assert turns.note_failed(first) == [PluginSilent("a", silent=False)]
    assert turns.list_nodes() == set()


def test_a_bind_in_doubt_keeps_its_turn_and_lets_the_others_go_elsewhere() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    turns.note_taken(first)
    add(turns, second)
    turns.note_doubt(first, 5.0)
    turns.note_doubt(first, 15.0)
    assert turns.pass_time(24.9) == []
    silent, back = turns.pass_time(25.0)
    assert silent == PluginSilent("a", silent=True, waits_for="1")
    assert isinstance(back, GiveBack)
    assert turns.note_failed(first) == [PluginSilent("a", silent=False)]


def test_a_pod_that_is_deleted_is_not_waited_for() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    add(turns, second)
    assert turns.note_pod_gone("1") == []
    turns.note_bound(first, 0.0)
    turns.pass_time(SILENCE)
    assert turns.note_pod_gone("1") == [PluginSilent("a", silent=False), Release(first)]
    assert turns.list_nodes() == set()


def test_the_lock_of_a_pod_that_went_is_removed_if_the_next_job_does_not_take_it() -> None:
    turns = Turns()
    first, second, third = job("1"), job("2"), job("3")
    for one in (first, second, third):
        add(turns, one)
    turns.note_bound(first, 0.0)
    assert turns.note_pod_gone("1") == [Start(second)]
    assert turns.note_failed(second) == [Start(third)]
    assert turns.note_failed(third) == [Release(first)]
    # Once another job has the lock, it is that job's.
    add(turns, first)
    add(turns, second)
    turns.note_bound(first, 0.0)
    turns.note_pod_gone("1")
    turns.note_taken(second)
    assert turns.note_failed(second) == []


def test_a_node_that_is_deleted_gives_back_what_waits_for_it() -> None:
    turns = Turns()
    first, second = job("1"), job("2")
    add(turns, first)
    add(turns, second)
    assert turns.note_node_gone("a") == [GiveBack(second, "node a is gone")]
    # What a worker has it finishes.
    assert turns.list_nodes() == {"a"}
    assert turns.note_failed(first) == []
    assert turns.list_nodes() == set()


def test_before_a_plugin_without_a_lock_a_turn_lasts_until_the_kubelet_has_admitted_the_pod() -> (
    None
):
    turns = Turns()
    first, second = (job(uid, driver=UNLOCKED) for uid in "12")
    assert add(turns, first) == [Start(first)]
    assert add(turns, second) == []
    turns.note_bound(first, 0.0)
    # No node has a lock, whichever pod the plugin has to serve.
    assert turns.note_unlocked("a") == []
    assert turns.note_admitted("2", "a", 1.0) == []
    assert turns.note_admitted("1", "a", 1.0) == []
    assert turns.pass_time(1.0) == [Start(second)]
    turns.note_bound(second, 1.0)
    silent, *_ = turns.pass_time(1.0 + SILENCE)
    assert silent == PluginSilent("a", silent=True, waits_for="2")
    assert turns.note_unlocked("a") == []
    # There is no lock that would have to be removed.
    assert turns.note_pod_gone("2") == [PluginSilent("a", silent=False)]


def test_a_plugin_with_a_lock_has_not_answered_when_the_kubelet_has_admitted_the_pod() -> None:
    turns = Turns()
    first = job("1")
    add(turns, first)
    turns.note_bound(first, 0.0)
    assert turns.note_admitted("1", "a", 1.0) == []
    assert turns.pass_time(SILENCE)[0] == PluginSilent("a", silent=True, waits_for="1")
