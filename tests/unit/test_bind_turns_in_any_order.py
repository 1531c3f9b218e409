"""Turns before nodes: whatever happens, in any order, certain things hold."""

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from scheduler.api.door.events import PluginSilent
from scheduler.kube.bind.jobs import FIRST, GiveBack, Job, Release, Start
from scheduler.kube.bind.moves import MOVES, Event, State
from scheduler.kube.bind.turns import Effect, Turns
from tests import slices
from tests.unit.turns_jobs import DAY, SILENCE, UNLOCKED, job

NODES = ("a", "b")
# By node, a pod of a process before on it.
HOLDERS = {"a": "holder of a", "b": "holder of b"}


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
        self.turns = Turns()
        self.now = 0.0
        self.jobs: list[Job] = []
        self.ends: dict[Job, int] = defaultdict(int)
        # By node: who holds it, who waits in which order, from when on a taken lock may be tried again.
        self.held: dict[str, Occupied] = {}
        self.queue: dict[str, list[Job]] = defaultdict(list)
        self.retry_at: dict[str, float] = {}
        self.silent: set[str] = set()
        # By node: the pod that went before it was served, whose lock may still be there.
        self.left: dict[str, Job] = {}
        # By node: whether the pod whose turn it is, or was last, needs a lock.
        self.locked: dict[str, bool] = {}

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
                    queue = self.queue[started.node]
                    assert queue.pop(0) is started, "out of order"
                    assert all(started.place <= one.place for one in queue), "not the first"
                    assert self.now >= self.retry_at.pop(started.node, 0.0), "tried again too soon"
                    self.held[started.node] = Occupied(started)
                    self.locked[started.node] = bool(started.list_locks())
                case GiveBack(given, why):
                    assert why
                    assert all(one.job is not given for one in self.held.values())
                    self.queue[given.node].remove(given)
                    self.ends[given] += 1
                case Release(left):
                    # Nobody comes next who would take the lock over.
                    assert left.is_to_release
                    assert not self.queue[left.node]
                    assert left.node not in self.held
                    assert self.left.pop(left.node) is left
                case PluginSilent(node, silent):
                    assert (node in self.silent) != silent, "the same news twice"
                    (self.silent.add if silent else self.silent.remove)(node)

    def leave(self, node: str) -> Occupied:
        return self.held.pop(node)

    # What happens.

    @rule()
    def begin_turns(self) -> None:
        self.heed(self.turns.begin_turns())
        free = [node for node, queue in self.queue.items() if queue and node not in self.held]
        assert all(node in self.retry_at or self.is_releasing(node) for node in free)

    def is_releasing(self, node: str) -> bool:
        return self.turns._turns[node].state in {State.BUSY, State.RELEASING}

    @rule(
        node=st.sampled_from(NODES),
        urgency=st.integers(0, 2),
        begins=st.booleans(),
        driver=st.sampled_from(("HAMi", UNLOCKED)),
    )
    def submit(self, node: str, urgency: int, *, begins: bool, driver: str) -> None:
        one = job(str(len(self.jobs)), node, place=(-float(urgency), *FIRST[1:]), driver=driver)
        self.jobs.append(one)
        queue = self.queue[node]
        queue.insert(sum(other.place <= one.place for other in queue), one)
        self.heed(self.turns.add_job(one))
        if begins:
            self.begin_turns()

    def at_work(self) -> list[Occupied]:
        return [one for one in self.held.values() if not one.is_bound]

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def takes(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.at_work()))
        if MOVES[self.turns._turns[one.job.node].state].get(Event.TAKEN):
            self.left.pop(one.job.node, None)
            self.heed(self.turns.note_taken(one.job))

    @precondition(lambda self: self.at_work())
    @rule(data=st.data(), is_on_node=st.booleans())
    def finds_the_lock_taken(self, data: st.DataObject, *, is_on_node: bool) -> None:
        one = data.draw(st.sampled_from(self.at_work())).job
        if MOVES[self.turns._turns[one.node].state].get(Event.CONTENDED):
            self.contend(one, HOLDERS[one.node] if is_on_node else "")

    def contend(self, one: Job, holder: str = "") -> None:
        self.leave(one.node)
        self.left.pop(one.node, None)
        queue = self.queue[one.node]
        queue.insert(sum(other.place < one.place for other in queue), one)
        self.retry_at[one.node] = self.now + 1.0
        self.heed(self.turns.note_contended(one, self.now, holder))
        assert not holder or holder in self.turns.list_pods()

    @rule(node=st.sampled_from(NODES), is_answer=st.booleans())
    def a_holder_is_served_or_gone(self, node: str, *, is_answer: bool) -> None:
        uid = HOLDERS[node]
        is_listened_for = uid in self.turns.list_pods()
        if is_answer:
            self.heed(self.turns.note_answer(uid, node, self.now))
        else:
            if is_listened_for:
                self.retry_at.pop(node, None)
            self.heed(self.turns.note_pod_gone(uid))
            assert not (is_listened_for and self.queue[node] and node not in self.held)
        assert not (is_listened_for and node in self.silent)

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def doubts(self, data: st.DataObject) -> None:
        self.turns.note_doubt(data.draw(st.sampled_from(self.at_work())).job, self.now)

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def binds(self, data: st.DataObject) -> None:
        self.bind(data.draw(st.sampled_from(self.at_work())))

    def bind(self, one: Occupied) -> None:
        one.is_bound, one.bound_at = True, self.now
        one.until = self.now + self.wait_for_release(one) if one.answered else float("inf")
        self.ends[one.job] += 1
        self.left.pop(one.job.node, None)
        self.heed(self.turns.note_bound(one.job, self.now))

    @precondition(lambda self: self.at_work())
    @rule(data=st.data())
    def fails(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.at_work()))
        self.leave(one.job.node)
        self.ends[one.job] += 1
        self.heed(self.turns.note_failed(one.job))

    def wait_for_release(self, one: Occupied) -> float:
        """How long the lock may take to go after the plugin's answer."""
        return 1.0 if self.locked[one.job.node] else 0.0

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), node=st.sampled_from(NODES), is_plugin=st.booleans())
    def plugin_answers(self, data: st.DataObject, node: str, *, is_plugin: bool) -> None:
        """The plugin answers; or the kubelet has admitted the pod, which is an answer only where there is no lock."""
        uid = data.draw(st.sampled_from(self.jobs)).uid
        holder = self.held.get(node)
        is_answer = is_plugin or not self.locked.get(node, True)
        if holder is not None and holder.job.uid == uid and is_answer:
            holder.answered = True
            if holder.is_bound:
                holder.until = min(holder.until, self.now + self.wait_for_release(holder))
        note = self.turns.note_answer if is_plugin else self.turns.note_admitted
        self.heed(note(uid, node, self.now))

    @rule(node=st.sampled_from(NODES))
    def lock_goes(self, node: str) -> None:
        turn = self.turns._turns.get(node)
        if turn is not None and turn.state != State.FREE and not self.locked[node]:
            # That no lock is there says nothing.
            assert self.turns.note_unlocked(node) == []
            return
        self.retry_at.pop(node, None)
        if node in self.held and self.held[node].is_bound:
            self.leave(node)
        self.left.pop(node, None)
        self.heed(self.turns.note_unlocked(node))
        assert node not in self.silent

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.jobs))
        holder = self.held.get(one.node)
        if holder is not None and holder.job is one and holder.is_bound:
            self.leave(one.node)
            if not holder.answered and self.locked[one.node]:
                self.left[one.node] = one
        self.heed(self.turns.note_pod_gone(one.uid))

    @rule(node=st.sampled_from(NODES))
    def node_goes(self, node: str) -> None:
        self.retry_at.pop(node, None)
        if node in self.held and self.held[node].is_bound:
            self.leave(node)
        self.left.pop(node, None)
        self.heed(self.turns.note_node_gone(node))
        assert not self.turns.list_waiting(node)

    @precondition(lambda self: any(self.queue.values()))
    @rule(data=st.data())
    def objects(self, data: st.DataObject) -> None:
        waiting = [one for queue in self.queue.values() for one in queue]
        self.heed(self.turns.withdraw_job(data.draw(st.sampled_from(waiting)), "cordoned"))

    @rule()
    def lease_is_lost(self) -> None:
        self.heed(self.turns.give_up_waiting("no longer the leader"))
        assert not any(self.queue.values())

    @rule(seconds=st.sampled_from((0.1, 0.5, 1.0, 5.0, 20.0, 60.0, 300.0)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for node, one in list(self.held.items()):
            if one.is_bound and self.now >= one.until:
                self.leave(node)
        effects = self.turns.pass_time(self.now)
        self.heed(effects)
        for node, one in self.held.items():
            if one.is_bound and not one.answered and self.now - one.bound_at >= SILENCE:
                assert node in self.silent, "nobody was told of a plugin that does not answer"

    # What holds at any time.

    @invariant()
    def those_who_wait_are_known(self) -> None:
        for node in NODES:
            assert list(self.turns.list_waiting(node)) == self.queue[node]

    @invariant()
    def no_lock_stays_that_nobody_takes_over(self) -> None:
        assert set(self.left) <= set(self.held)

    @invariant()
    def whose_turn_it_is_is_known(self) -> None:
        known = set(self.turns.list_pods()) - set(HOLDERS.values())
        assert known == {one.job.uid for one in self.held.values()}

    @invariant()
    def jobs_end_once(self) -> None:
        assert all(n == 1 for n in self.ends.values())

    def teardown(self) -> None:
        """Nothing waits for ever, even where every lock is always taken."""
        self.begin_turns()
        for _ in range(3 * len(self.jobs) + 80):
            for one in self.at_work():
                state = self.turns._turns[one.job.node].state
                if self.contends and Event.CONTENDED in MOVES[state]:
                    self.contend(one.job)
                else:
                    self.bind(one)
            self.time_passes(1.0 if self.contends else DAY)
        self.time_passes(DAY)
        assert all(self.ends[one] == 1 for one in self.jobs)
        # Only a pod that is not served holds a node for ever.
        assert self.held.keys() <= self.turns.list_nodes()
        for held in list(self.held.values()):
            self.leave(held.job.node)
            if not held.answered and self.locked[held.job.node]:
                self.left[held.job.node] = held.job
            self.heed(self.turns.note_pod_gone(held.job.uid))
        assert self.turns.list_nodes() == set()


AnyOrder.TestCase.settings = settings(
    max_examples=slices.count_examples(150), stateful_step_count=40, deadline=None
)
TestAnyOrder = AnyOrder.TestCase
