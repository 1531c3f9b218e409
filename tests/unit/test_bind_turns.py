"""Turns before nodes: the drawn table is the code, and whatever happens, in any order, certain things hold."""

from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scheduler.api.door.decisions import Bind
from scheduler.api.door.events import PluginSilent
from scheduler.errors import BrokenInvariant
from scheduler.kube.bind import moves
from scheduler.kube.bind.jobs import Job
from scheduler.kube.bind.moves import MOVES, OF_WORKERS, Event, State
from scheduler.kube.bind.turns import Effect, GiveBack, Start, Turns
from tests import make

ALLOCATE = 300.0
SILENCE = 20.0
NODES = ("a", "b")


POD = make.cluster().see_pod(make.pod(name="p"))


def job(uid: str, node: str = "a") -> Job:
    assert POD is not None
    return Job(Bind(uid, node, ((),), "HAMi"), POD, 1, 0.0)


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


def test_a_silence_is_not_made_shorter_by_another() -> None:
    turns = Turns(15.0)
    first = job("1")
    turns.submitted(first)
    turns.doubted(first, 0.0)
    assert turns.passed(15.0) == [PluginSilent("a", silent=True, waits_for="1")]
    turns.bound(first, 20.0)
    assert turns.passed(35.0) == []
    assert turns.passed(74.9) == []
    assert turns.passed(75.0) == [PluginSilent("a", silent=False)]


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
    assert turns.failed(first) == []


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


@dataclass
class Occupied:
    """By whom a node is held, as the test sees it."""

    job: Job
    is_bound: bool = False
    answered: bool = False
    bound_at: float = 0.0
    until: float = float("inf")


class AnyOrder(RuleBasedStateMachine):
    """Workers, plugins, watches and the clock in any order; judged by books kept beside the turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns(ALLOCATE)
        self.now = 0.0
        self.jobs: list[Job] = []
        self.ends: dict[Job, int] = defaultdict(int)
        # By node: who holds it, who waits in which order, from when on a taken lock may be tried again.
        self.held: dict[str, Occupied] = {}
        self.queue: dict[str, list[Job]] = defaultdict(list)
        self.retry_at: dict[str, float] = {}
        self.silent: set[str] = set()

    @initialize(contends=st.booleans())
    def begin(self, *, contends: bool) -> None:
        self.contends = contends

    # What the turns say.

    def heed(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Start(started):
                    assert started.node not in self.held, "two pods between lock and answer"
                    assert started.node not in self.silent, "a job for a silent node"
                    assert self.queue[started.node].pop(0) is started, "out of order"
                    assert self.now >= self.retry_at.pop(started.node, 0.0), "tried again too soon"
                    self.held[started.node] = Occupied(started)
                case GiveBack(given, why):
                    assert why
                    assert all(one.job is not given for one in self.held.values())
                    self.queue[given.node].remove(given)
                    self.ends[given] += 1
                case PluginSilent(node, silent):
                    assert (node in self.silent) != silent, "the same news twice"
                    (self.silent.add if silent else self.silent.remove)(node)

    def leave(self, node: str) -> Occupied:
        return self.held.pop(node)

    # What happens.

    @rule(node=st.sampled_from(NODES))
    def submit(self, node: str) -> None:
        one = job(str(len(self.jobs)), node)
        self.jobs.append(one)
        self.queue[node].append(one)
        self.heed(self.turns.submitted(one))

    def at_work(self) -> list[Occupied]:
        return [one for one in self.held.values() if not one.is_bound]

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def takes(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.at_work()))
        if MOVES[self.turns._turns[one.job.node].state].get(Event.TAKEN):
            self.heed(self.turns.taken(one.job))

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def finds_the_lock_taken(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.at_work())).job
        if MOVES[self.turns._turns[one.node].state].get(Event.CONTENDED):
            self.contend(one)

    def contend(self, one: Job) -> None:
        self.leave(one.node)
        self.queue[one.node].insert(0, one)
        self.retry_at[one.node] = self.now + 1.0
        self.heed(self.turns.contended(one, self.now))

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def doubts(self, data: st.DataObject) -> None:
        self.turns.doubted(data.draw(st.sampled_from(self.at_work())).job, self.now)

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def binds(self, data: st.DataObject) -> None:
        self.bind(data.draw(st.sampled_from(self.at_work())))

    def bind(self, one: Occupied) -> None:
        one.is_bound, one.bound_at = True, self.now
        one.until = self.now + (1.0 if one.answered else ALLOCATE)
        self.ends[one.job] += 1
        self.heed(self.turns.bound(one.job, self.now))

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def fails(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.at_work()))
        self.leave(one.job.node)
        self.ends[one.job] += 1
        self.heed(self.turns.failed(one.job))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), node=st.sampled_from(NODES))
    def plugin_answers(self, data: st.DataObject, node: str) -> None:
        uid = data.draw(st.sampled_from(self.jobs)).uid
        holder = self.held.get(node)
        if holder is not None and holder.job.uid == uid:
            holder.answered = True
            if holder.is_bound:
                holder.until = min(holder.until, self.now + 1.0)
        self.heed(self.turns.answered(uid, node, self.now))

    @rule(node=st.sampled_from(NODES))
    def lock_goes(self, node: str) -> None:
        self.retry_at.pop(node, None)
        if node in self.held and self.held[node].is_bound:
            self.leave(node)
        self.heed(self.turns.unlocked(node))
        assert node not in self.silent

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.jobs))
        holder = self.held.get(one.node)
        if holder is not None and holder.job is one and holder.is_bound:
            self.leave(one.node)
        self.heed(self.turns.pod_gone(one.uid))

    @rule(node=st.sampled_from(NODES))
    def node_goes(self, node: str) -> None:
        self.retry_at.pop(node, None)
        if node in self.held and self.held[node].is_bound:
            self.leave(node)
        self.heed(self.turns.node_gone(node))
        assert not self.turns.waiting(node)

    @precondition(lambda self: any(self.queue.values()))
    @rule(data=st.data())
    def objects(self, data: st.DataObject) -> None:
        waiting = [one for queue in self.queue.values() for one in queue]
        self.heed(self.turns.withdrawn(data.draw(st.sampled_from(waiting)), "cordoned"))

    @rule()
    def lease_is_lost(self) -> None:
        self.heed(self.turns.given_up("no longer the leader"))
        assert not any(self.queue.values())

    @rule(seconds=st.sampled_from((0.1, 0.5, 1.0, 5.0, 20.0, 60.0, 300.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for node, one in list(self.held.items()):
            if one.is_bound and self.now >= one.until:
                self.leave(node)
        effects = self.turns.passed(self.now)
        self.heed(effects)
        for node, one in self.held.items():
            if one.is_bound and not one.answered and self.now - one.bound_at >= SILENCE:
                assert node in self.silent, "nobody was told of a plugin that does not answer"

    # What holds at any time.

    @invariant()
    def those_who_wait_are_known(self) -> None:
        for node in NODES:
            assert list(self.turns.waiting(node)) == self.queue[node]

    @invariant()
    def whose_turn_it_is_is_known(self) -> None:
        assert set(self.turns.pods()) == {one.job.uid for one in self.held.values()}

    @invariant()
    def jobs_end_once(self) -> None:
        assert all(n == 1 for n in self.ends.values())

    def teardown(self) -> None:
        """Nothing waits for ever, even where every lock is always taken."""
        for _ in range(3 * len(self.jobs) + 80):
            for one in self.at_work():
                state = self.turns._turns[one.job.node].state
                if self.contends and Event.CONTENDED in MOVES[state]:
                    self.contend(one.job)
                else:
                    self.bind(one)
            self.time_passes(1.0 if self.contends else ALLOCATE)
        self.time_passes(ALLOCATE)
        assert all(self.ends[one] == 1 for one in self.jobs)
        assert self.turns.nodes() == set()


AnyOrder.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
