"""Turns before nodes whose device plugin serves one pod at a time: who is next, and who waits for what.

How a turn goes is drawn in ``moves``. Beside its turn a node has a voice. It falls silent when no turn has
ended for ``_SILENT_SECONDS``: the jobs that wait are given back, and none is taken until the plugin answers
a pod, the node's lock is gone, the pod that it should serve is gone, or the time is over for which it is
left alone. Where a bind in doubt held the turn, the plugin was not asked: the silence ends with the doubt.

Nothing here waits, writes or looks at a clock. What happened comes in as a call, with the time where time
counts, and what is to be done comes out as a list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from scheduler.api.door.events import PluginSilent
from scheduler.errors import BrokenInvariant
from scheduler.kube.bind.jobs import GiveBack, Job, Start
from scheduler.kube.bind.moves import MOVES, OF_WORKERS, Event, State

# The plugin says that it is done, then removes the lock; wait this long for the second after the first.
_RELEASE_SECONDS = 1.0
_CONTENTION_RETRY_SECONDS = 1.0
# A plugin answers within a second or so of the kubelet's call.
_SILENT_SECONDS = 20.0
# So long nothing is sent to a silent plugin of which nobody knows until when it should have answered.
_LEFT_ALONE_SECONDS = 60.0
_NEVER = float("inf")
# While a worker has the job: what is stuck then is a bind in doubt.
_OF_WORKERS = frozenset({State.TAKING, State.BINDING, State.EARLY})


Effect = Start | GiveBack | PluginSilent


@dataclass(slots=True)
class _Turn:
    """The turn before one node, and those who wait for the next ones.

    Attributes:
        node: the node's name.
        state: what the turn has come to.
        job: whose turn it is, None while it is nobody's of ours.
        waiting: the jobs after it.
        until: loop time at which waiting for anything ends.
        stuck_since: loop time since which no turn ends, None while they do.
    """

    node: str
    state: State = State.FREE
    job: Job | None = None
    waiting: deque[Job] = field(default_factory=deque)
    until: float = _NEVER
    stuck_since: float | None = None


class Turns:
    """The turns before all nodes.

    Args:
        allocate_seconds: how long the device plugin gets for a pod.
    """

    def __init__(self, allocate_seconds: float) -> None:
        self._allocate_seconds = allocate_seconds
        self._patience = min(_SILENT_SECONDS, allocate_seconds)
        self._turns: dict[str, _Turn] = {}
        # By the uid of the pod whose turn it is.
        self._by_pod: dict[str, _Turn] = {}
        # Nodes whose plugin is silent, and until when they are left alone.
        self._silent: dict[str, float] = {}
        # Those of which a bind in doubt held the turn.
        self._in_doubt: set[str] = set()

    def pods(self) -> Iterator[str]:
        """Uids of the pods whose turn it is."""
        return iter(self._by_pod)

    def nodes(self) -> set[str]:
        """Names of the nodes of which something is remembered."""
        return {*self._turns, *self._silent}

    def waiting(self, node: str) -> tuple[Job, ...]:
        """The jobs that wait for their turn before a node, the next one first."""
        turn = self._turns.get(node)
        return tuple(turn.waiting) if turn else ()

    # What comes from those who decide.

    def submitted(self, job: Job) -> list[Effect]:
        """A job has to go to its node."""
        if job.node in self._silent:
            # It was decided before the silence was heard of.
            return [GiveBack(job, _no_answer(job.node))]
        turn = self._turns.setdefault(job.node, _Turn(job.node))
        turn.waiting.append(job)
        return self._move(turn, Event.START)

    def withdrawn(self, job: Job, why: str) -> list[Effect]:
        """A job that waits may no longer be carried out."""
        self._turns[job.node].waiting.remove(job)
        return [GiveBack(job, why)]

    def given_up(self, why: str) -> list[Effect]:
        """Nothing that waits shall be carried out."""
        return [effect for turn in self._turns.values() for effect in _give_back(turn, why)]

    # What comes from workers.

    def taken(self, job: Job) -> list[Effect]:
        """The steps before the bind are done."""
        return self._move(self._of(job), Event.TAKEN)

    def contended(self, job: Job, now: float) -> list[Effect]:
        """Somebody else rightly holds what a step needs."""
        return self._move(self._of(job), Event.CONTENDED, now)

    def doubted(self, job: Job, now: float) -> None:
        """The first write did not settle the bind: from here on the turn may be stuck."""
        turn = self._of(job)
        if turn.stuck_since is None:
            turn.stuck_since = now

    def bound(self, job: Job, now: float) -> list[Effect]:
        """The API server has bound the pod."""
        turn = self._of(job)
        return self._settles(job.node) + self._move(turn, Event.BOUND, now)

    def failed(self, job: Job) -> list[Effect]:
        """The job came to nothing, and what it had begun is undone."""
        turn = self._of(job)
        return self._settles(job.node) + self._move(turn, Event.FAILED)

    # What comes from the watches.

    def answered(self, uid: str, node: str, now: float) -> list[Effect]:
        """The plugin of a node has said of a pod that it succeeded or failed."""
        turn = self._by_pod.get(uid)
        if turn is None or turn.node != node:
            return []
        return self._speaks(node) + self._move(turn, Event.ANSWERED, now)

    def unlocked(self, node: str) -> list[Effect]:
        """A node was seen without a lock."""
        return self._speaks(node) + self._move(self._turns.get(node), Event.UNLOCKED)

    def pod_gone(self, uid: str) -> list[Effect]:
        """A pod was deleted; whoever should have served it has nothing to answer."""
        turn = self._by_pod.get(uid)
        if turn is None or Event.POD_GONE not in MOVES[turn.state]:
            return []
        return self._speaks(turn.node) + self._move(turn, Event.POD_GONE)

    def node_gone(self, node: str) -> list[Effect]:
        """A node was deleted: nobody will answer for it."""
        turn = self._turns.get(node)
        back = _give_back(turn, f"node {node} is gone") if turn else []
        return self._speaks(node) + back + self._move(turn, Event.NODE_GONE)

    # What comes from the clock.

    def passed(self, now: float) -> list[Effect]:
        """It is ``now``, by the loop's time."""
        effects: list[Effect] = []
        for turn in list(self._turns.values()):
            if turn.stuck_since is not None and now - turn.stuck_since >= self._patience:
                effects += self._falls_silent(turn, now)
            if now >= turn.until:
                effects += self._move(turn, Event.TIME_OVER)
        for node in [node for node, until in self._silent.items() if now >= until]:
            effects += self._speaks(node)
        return effects

    # Moves.

    def _of(self, job: Job) -> _Turn:
        turn = self._turns.get(job.node)
        if turn is None or turn.job is not job:
            raise BrokenInvariant(f"it is not the turn of {job.pod.key} before node {job.node}")
        return turn

    def _move(self, turn: _Turn | None, event: Event, now: float = 0.0) -> list[Effect]:
        """Let an event happen, as the table has it, and do what its new state means."""
        if turn is None:
            return []
        before, after = turn.state, MOVES[turn.state].get(event)
        if after is None:
            if event in OF_WORKERS:
                raise BrokenInvariant(
                    f"{event.name} before node {turn.node}, which is {before.name}"
                )
            return []
        turn.state = after
        if after != State.FREE:
            return self._enter(turn, now)
        # Who finds the lock taken again and again is as stuck as who waits for an answer.
        if (before, event) != (State.BUSY, Event.TIME_OVER):
            turn.stuck_since = None
        return self._free(turn)

    def _enter(self, turn: _Turn, now: float) -> list[Effect]:
        match turn.state:
            case State.TAKING:
                return self._start(turn)
            case State.BUSY:
                return self._put_back(turn, now)
            case State.ALLOCATING:
                turn.until, turn.stuck_since = now + self._allocate_seconds, now
            case State.RELEASING:
                turn.until, turn.stuck_since = min(turn.until, now + _RELEASE_SECONDS), None
            case _:
                # The same job goes on.
                pass
        return []

    def _start(self, turn: _Turn) -> list[Effect]:
        turn.job, turn.until = turn.waiting.popleft(), _NEVER
        self._by_pod[turn.job.uid] = turn
        return [Start(turn.job)]

    def _put_back(self, turn: _Turn, now: float) -> list[Effect]:
        if job := self._left(turn):
            turn.waiting.appendleft(job)
        turn.until = now + _CONTENTION_RETRY_SECONDS
        if turn.stuck_since is None:
            turn.stuck_since = now
        return _give_back(turn, _no_answer(turn.node)) if turn.node in self._silent else []

    def _free(self, turn: _Turn) -> list[Effect]:
        self._left(turn)
        if turn.waiting:
            return self._move(turn, Event.START)
        del self._turns[turn.node]
        return []

    def _left(self, turn: _Turn) -> Job | None:
        """Nobody has the turn any more; who had it."""
        job, turn.job = turn.job, None
        if job is not None and self._by_pod.get(job.uid) is turn:
            del self._by_pod[job.uid]
        return job

    def _falls_silent(self, turn: _Turn, now: float) -> list[Effect]:
        """Those who wait go elsewhere, and nobody comes for a while."""
        turn.stuck_since = None
        if turn.state in _OF_WORKERS and turn.node not in self._silent:
            self._in_doubt.add(turn.node)
        until = turn.until if turn.state == State.ALLOCATING else now + _LEFT_ALONE_SECONDS
        news: list[Effect] = []
        if turn.node not in self._silent:
            waits_for = turn.job.uid if turn.job else ""
            news = [PluginSilent(turn.node, silent=True, waits_for=waits_for)]
        self._silent[turn.node] = max(until, self._silent.get(turn.node, 0.0))
        return news + _give_back(turn, _no_answer(turn.node))

    def _settles(self, node: str) -> list[Effect]:
        """What became of the bind is known."""
        return self._speaks(node) if node in self._in_doubt else []

    def _speaks(self, node: str) -> list[Effect]:
        self._in_doubt.discard(node)
        if self._silent.pop(node, None) is None:
            return []
        return [PluginSilent(node, silent=False)]


def _give_back(turn: _Turn, why: str) -> list[Effect]:
    effects: list[Effect] = [GiveBack(job, why) for job in turn.waiting]
    turn.waiting.clear()
    return effects


def _no_answer(node: str) -> str:
    return f"the device plugin of node {node} does not answer"
