"""Turns before nodes whose device plugin serves one pod at a time: which job is next, and which job waits for what.

``moves`` draws how a turn goes. Jobs wait in the one order that waiting pods have: by priority, then age, whenever they
were decided. That order comes from what the API server has, so it is the same after a restart, and a job that is put back
or given back has its place again.

A device plugin falls silent when no turn before its node has ended for ``_SILENT_SECONDS``: the jobs that wait are given
back, and no job is taken until the plugin answers a pod, the node's lock is gone, or the pod that the plugin should serve
is gone. Where the lock was found with a pod that this process has not bound, a time ends the silence too: not all that
ends such a lock is heard. If a bind in doubt held the turn, the plugin had nothing to do: the silence ends with the doubt.

Some plugins have no lock. They look for their pod among all pods of the node, and take another one if two wait. Before such a
plugin a turn ends when the kubelet has admitted the pod: by then it has called the plugin.

Nothing here waits, writes or looks at a clock. A call says what happened, and at what time if the time
matters; it returns the list of what is to be done.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.api.door.events import PluginSilent
from scheduler.engine.questions.waiting import Place
from scheduler.errors import BrokenInvariant
from scheduler.kube.bind.jobs import GiveBack, Job, Release, Start
from scheduler.kube.bind.moves import MOVES, WORKER_EVENTS, Event, State

# The plugin says that it is done, then removes the lock; a turn waits so long for the removal.
_RELEASE_SECONDS = 1.0
# A lock that another pod has is mostly seen to go; what is not seen, such as the end of an unbound pod of another scheduler,
# is looked for so often.
_CONTENTION_RETRY_SECONDS = 1.0
# After a step that the API server did not let a job take: at first, and at most. The time doubles.
_TROUBLE_SECONDS, _TROUBLE_SECONDS_MAX = 0.125, 8.0
# A plugin answers within a second or so of the kubelet's call.
_SILENT_SECONDS = 20.0
# How long nothing is sent to a silent plugin whose answer may not be heard.
_LEFT_ALONE_SECONDS = 60.0
_NEVER = float("inf")
# States in which a worker has the job: what is stuck then is a bind in doubt.
_WORKER_STATES = frozenset({State.TAKING, State.BINDING, State.EARLY})
# Events after which the lock of a pod that went is not there any more.
_LOCK_CHANGES = frozenset(
    {Event.TAKEN, Event.BOUND, Event.CONTENDED, Event.UNLOCKED, Event.NODE_GONE}
)


Effect = Start | GiveBack | Release | PluginSilent


@dataclass(slots=True)
class _Turn:
    """The turn before one node, and the jobs that wait for the next turns.

    Attributes:
        node: the node's name.
        state: the state of the turn.
        job: the job whose turn it is; None if it is the turn of no job of this process.
        holder: the uid of the pod whose turn it is; empty if it is not known.
        waiting: the jobs that come next, in the order of their places.
        is_locked: whether the pod whose turn it is needs a lock of the node.
        left: the bound job whose pod went before it was served; its lock may still be there. None once another job has the lock.
        until: the loop time at which all waiting ends.
        stuck_since: the loop time since which no turn ends; None while turns end.
    """

    node: str
    state: State = State.FREE
    job: Job | None = None
    holder: str = ""
    waiting: list[Job] = field(default_factory=list)
    is_locked: bool = True
    left: Job | None = None
    until: float = _NEVER
    stuck_since: float | None = None


class Turns:
    """The turns before all nodes."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        # Nodes that had no turn when a job came, in the order in which they got one.
        self._fresh: dict[str, None] = {}
        # By the uid of the pod whose turn it is.
        self._by_pod: dict[str, _Turn] = {}
        # Nodes whose plugin is silent, and until when they are left alone.
        self._silent: dict[str, float] = {}
        # The silent ones whose turn a bind in doubt held.
        self._in_doubt: set[str] = set()

    def list_pods(self) -> Iterator[str]:
        """List the uids of the pods whose turn it is."""
        return iter(self._by_pod)

    def list_nodes(self) -> set[str]:
        """List the names of the nodes that have a turn or are silent."""
        return {*self._turns, *self._silent}

    def list_waiting(self, node: str) -> tuple[Job, ...]:
        """List the jobs that wait for their turn before a node, the next one first."""
        turn = self._turns.get(node)
        return tuple(turn.waiting) if turn else ()

    # Calls of the binder.

    def add_job(self, job: Job) -> list[Effect]:
        """Add a job that has to go to its node; it starts with ``begin_turns`` at the earliest."""
        if job.node in self._silent:
            # It was decided before the silence was known.
            job.has_lost_turn = True
            return [GiveBack(job, _describe_silence(job.node))]
        turn = self._turns.setdefault(job.node, _Turn(job.node))
        bisect.insort(turn.waiting, job, key=_get_place)
        if turn.state == State.FREE:
            self._fresh[job.node] = None
        return []

    def begin_turns(self) -> list[Effect]:
        """Begin the turns before nodes that are free. Of the jobs that were added before, the first by its place is next."""
        nodes, self._fresh = self._fresh, {}
        turns = (self._turns.get(node) for node in nodes)
        free = [turn for turn in turns if turn is not None and turn.state == State.FREE]
        return [effect for turn in free for effect in self._free_turn(turn)]

    def withdraw_job(self, job: Job, why: str) -> list[Effect]:
        """Give back a job that waits and may no longer be carried out."""
        self._turns[job.node].waiting.remove(job)
        return [GiveBack(job, why)]

    def give_up_waiting(self, why: str) -> list[Effect]:
        """Give back all jobs that wait."""
        return [effect for turn in self._turns.values() for effect in _give_back_waiting(turn, why)]

    # Calls of workers.

    def note_taken(self, job: Job) -> list[Effect]:
        """Note that the steps before the bind are done."""
        return self._move_turn(self._get_turn(job), Event.TAKEN)

    def note_contended(self, job: Job, now: float, holder: str = "") -> list[Effect]:
        """Note that another owner rightly holds what a step needs: the pod of the uid ``holder``, if it is on the node.

        Or the API server was in trouble; that says nothing about the plugin.
        """
        turn = self._get_turn(job)
        effects = self._move_turn(turn, Event.CONTENDED, now)
        if holder and turn.state == State.BUSY:
            turn.holder = holder
            self._by_pod[holder] = turn
        return effects

    def note_doubt(self, job: Job, now: float) -> None:
        """Note that the first write did not settle the bind: from now on the turn may be stuck."""
        turn = self._get_turn(job)
        if turn.stuck_since is None:
            turn.stuck_since = now

    def note_bound(self, job: Job, now: float) -> list[Effect]:
        """Note that the API server has bound the pod."""
        turn = self._get_turn(job)
        return self._end_doubt(job.node) + self._move_turn(turn, Event.BOUND, now)

    def note_failed(self, job: Job) -> list[Effect]:
        """Note that the job came to nothing, and that what it had begun is undone."""
        turn = self._get_turn(job)
        return self._end_doubt(job.node) + self._move_turn(turn, Event.FAILED)

    # Calls of the watches.

    def note_answer(self, uid: str, node: str, now: float) -> list[Effect]:
        """Note that the plugin of a node has reported that it succeeded or failed for a pod."""
        turn = self._by_pod.get(uid)
        if turn is None or turn.node != node:
            return []
        return self._end_silence(node) + self._move_turn(turn, Event.ANSWERED, now)

    def note_admitted(self, uid: str, node: str, now: float) -> list[Effect]:
        """Note that the kubelet of a node has admitted a pod. A plugin with a lock may have to write its answer yet."""
        turn = self._by_pod.get(uid)
        return [] if turn is None or turn.is_locked else self.note_answer(uid, node, now)

    def note_unlocked(self, node: str) -> list[Effect]:
        """Note that a node has no lock."""
        turn = self._turns.get(node)
        if turn is not None and not turn.is_locked:
            return []
        return self._end_silence(node) + self._move_turn(turn, Event.UNLOCKED)

    def note_pod_gone(self, uid: str) -> list[Effect]:
        """Note that a pod was deleted or is finished: the plugin that should have served it has nothing to answer."""
        turn = self._by_pod.get(uid)
        if turn is None or Event.POD_GONE not in MOVES[turn.state]:
            return []
        return self._end_silence(turn.node) + self._move_turn(turn, Event.POD_GONE)

    def note_node_gone(self, node: str) -> list[Effect]:
        """Note that a node was deleted: no plugin will answer for it."""
        turn = self._turns.get(node)
        back = _lose_turns(turn, f"node {node} is gone") if turn else []
        return self._end_silence(node) + back + self._move_turn(turn, Event.NODE_GONE)

    # The call of the clock.

    def pass_time(self, now: float) -> list[Effect]:
        """Note that the loop's time is ``now``."""
        effects: list[Effect] = []
        for turn in list(self._turns.values()):
            if turn.stuck_since is not None and now - turn.stuck_since >= _SILENT_SECONDS:
                effects += self._begin_silence(turn, now)
            if now >= turn.until:
                effects += self._move_turn(turn, Event.TIME_OVER)
        for node in [node for node, until in self._silent.items() if now >= until]:
            effects += self._end_silence(node)
        return effects

    # Moves.

    def _get_turn(self, job: Job) -> _Turn:
        turn = self._turns.get(job.node)
        if turn is None or turn.job is not job:
            raise BrokenInvariant(f"it is not the turn of {job.pod.key} before node {job.node}")
        return turn

    def _move_turn(self, turn: _Turn | None, event: Event, now: float = 0.0) -> list[Effect]:
        """Move a turn as the table says for an event, and do what its new state means."""
        if turn is None:
            return []
        before, after = turn.state, MOVES[turn.state].get(event)
        if after is None:
            if event in WORKER_EVENTS:
                raise BrokenInvariant(
                    f"{event.name} before node {turn.node}, which is {before.name}"
                )
            return []
        turn.state = after
        if (before, event) == (State.ALLOCATING, Event.POD_GONE):
            turn.left = turn.job if turn.is_locked else None
        elif event in _LOCK_CHANGES:
            turn.left = None
        if after != State.FREE:
            return self._enter_state(turn, now)
        # A turn that finds the lock taken again and again is as stuck as one that waits for an answer.
        if (before, event) != (State.BUSY, Event.TIME_OVER):
            turn.stuck_since = None
        return self._free_turn(turn)

    def _enter_state(self, turn: _Turn, now: float) -> list[Effect]:
        match turn.state:
            case State.TAKING:
                return self._start_job(turn)
            case State.BUSY:
                return self._put_back_job(turn, now)
            case State.ALLOCATING:
                turn.until, turn.stuck_since = _NEVER, now
            case State.RELEASING:
                # Without a lock, there is none to be removed.
                seconds = _RELEASE_SECONDS if turn.is_locked else 0.0
                turn.until, turn.stuck_since = min(turn.until, now + seconds), None
            case _:
                # The same job goes on.
                pass
        return []

    def _start_job(self, turn: _Turn) -> list[Effect]:
        turn.job, turn.until = turn.waiting.pop(0), _NEVER
        turn.holder, turn.is_locked = turn.job.uid, bool(turn.job.list_locks())
        self._by_pod[turn.holder] = turn
        return [Start(turn.job)]

    def _put_back_job(self, turn: _Turn, now: float) -> list[Effect]:
        seconds, is_trouble = _CONTENTION_RETRY_SECONDS, False
        if job := self._clear_turn(turn):
            bisect.insort_left(turn.waiting, job, key=_get_place)
            if is_trouble := job.n_unanswered > 0:
                seconds = min(_TROUBLE_SECONDS * 2.0**job.n_unanswered, _TROUBLE_SECONDS_MAX)
        turn.until = max(now + seconds, self._silent.get(turn.node, 0.0))
        if turn.stuck_since is None and not is_trouble:
            turn.stuck_since = now
        return _lose_turns(turn, _describe_silence(turn.node)) if turn.node in self._silent else []

    def _free_turn(self, turn: _Turn) -> list[Effect]:
        self._clear_turn(turn)
        if turn.waiting:
            return self._move_turn(turn, Event.START)
        del self._turns[turn.node]
        # The next job would take the lock over; without one, the lock would stay.
        if turn.left is None:
            return []
        turn.left.is_to_release = True
        return [Release(turn.left)]

    def _clear_turn(self, turn: _Turn) -> Job | None:
        """Take the turn from its job, and return the job."""
        job, turn.job = turn.job, None
        if self._by_pod.get(turn.holder) is turn:
            del self._by_pod[turn.holder]
        turn.holder = ""
        return job

    def _begin_silence(self, turn: _Turn, now: float) -> list[Effect]:
        """Give the jobs that wait back, and take no job for a while."""
        turn.stuck_since = None
        if turn.state in _WORKER_STATES and turn.node not in self._silent:
            self._in_doubt.add(turn.node)
        until = _NEVER if turn.state == State.ALLOCATING else now + _LEFT_ALONE_SECONDS
        news: list[Effect] = []
        if turn.node not in self._silent:
            news = [PluginSilent(turn.node, silent=True, waits_for=turn.holder)]
        self._silent[turn.node] = max(until, self._silent.get(turn.node, 0.0))
        if turn.state == State.BUSY:
            # Until then the end of the pod that has the lock is listened for.
            turn.until = self._silent[turn.node]
        return news + _lose_turns(turn, _describe_silence(turn.node))

    def _end_doubt(self, node: str) -> list[Effect]:
        """End the silence if it was due to a bind in doubt: what became of the bind is known."""
        return self._end_silence(node) if node in self._in_doubt else []

    def _end_silence(self, node: str) -> list[Effect]:
        self._in_doubt.discard(node)
        if self._silent.pop(node, None) is None:
            return []
        return [PluginSilent(node, silent=False)]


def _get_place(job: Job) -> Place:
    return job.place


def _lose_turns(turn: _Turn, why: str) -> list[Effect]:
    """Give all jobs back that wait, as their turns do not come."""
    for job in turn.waiting:
        job.has_lost_turn = True
    return _give_back_waiting(turn, why)


def _give_back_waiting(turn: _Turn, why: str) -> list[Effect]:
    effects: list[Effect] = [GiveBack(job, why) for job in turn.waiting]
    turn.waiting.clear()
    return effects


def _describe_silence(node: str) -> str:
    return f"the device plugin of node {node} does not answer"
