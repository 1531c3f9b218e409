"""Carry out decisions: a bounded number of requests in flight, each result reported once.

On HAMi's nodes pods take turns: lock, bind, wait until the device plugin is done, next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, field

import structlog

from scheduler.api import names, wire
from scheduler.api.decisions import Bind
from scheduler.api.events import BindDone, BindFailed, PluginSilent
from scheduler.errors import ApiError
from scheduler.kube.bind.binding import Binding, Fate
from scheduler.kube.bind.node_lock import NodeLock
from scheduler.state.pods import PodRecord

# The plugin sets the phase, then removes the lock; wait this long for the second after the first.
_RELEASE_GRACE_SECONDS = 1.0
_CONTENTION_RETRY_SECONDS = 1.0
# In the place of a holder's uid while another scheduler's pod has the lock.
_CONTENDED = "contended"
# A plugin answers within a second or so of the kubelet's call. One that has not after this long gets no
# more pods, until it answers, the node's lock is gone, or the time is over.
_SILENT_SECONDS = 20.0
_LEFT_ALONE_SECONDS = 60.0
# Binds whose first write did not settle them: so many at once, and so many requests of theirs at once
# (of the client's connections, which the lease needs too).
_DOUBTS_MAX, _DOUBT_REQUESTS = 1000, 8
_log = structlog.get_logger("evenkeel.binder")


@dataclass(slots=True, eq=False)
class Job:
    """A decision on its way.

    Attributes:
        term: the term of leadership it was made in.
        submitted_at: loop time.
        in_doubt: its first write did not settle it, and a stand-in does its worker's work.
    """

    bind: Bind
    pod: PodRecord
    term: int
    submitted_at: float
    in_doubt: bool = False


@dataclass(slots=True)
class _Turn:
    """The queue before one node that HAMi's plugin serves.

    ``holder`` is the uid of the pod that is locked or being allocated, empty while the node is free;
    ``until`` the loop time at which waiting for it ends, and ``silent`` whether that would mean that the
    plugin never answered. ``answered`` is true when it did before the API server answered the bind.
    ``stuck_since`` is the loop time since which nobody's turn ends, 0 while turns do.
    """

    jobs: deque[Job] = field(default_factory=deque)
    holder: str = ""
    until: float = 0.0
    silent: bool = False
    answered: bool = False
    stuck_since: float = 0.0


class Binder:
    """Binds pods; reports each result through ``report`` exactly once.

    Args:
        binding: writes one bind until its outcome is known.
        lock: node locks; the device plugin gets as long for each pod as a lock may be held.
        term: the present term of leadership, 0 when not leading; asked right before every write.
        objection: why a decision may no longer be carried out, empty when it may; asked likewise. The
            API server itself accepts a node that does not exist.
        report: takes BindDone, BindFailed and PluginSilent.
        quiet: awaited with the pod's uid before its bind, until no other write on it is under way.
        in_flight: most requests at once.
    """

    def __init__(
        self,
        binding: Binding,
        lock: NodeLock,
        *,
        term: Callable[[], int],
        objection: Callable[[Bind], str],
        report: Callable[[BindDone | BindFailed | PluginSilent], None],
        quiet: Callable[[str], Awaitable[None]],
        in_flight: int,
    ) -> None:
        self._binding, self._lock = binding, lock
        self._term, self._objection, self._report = term, objection, report
        self._quiet = quiet
        self._in_flight = in_flight
        self._queue: asyncio.Queue[Job] = asyncio.Queue()
        self._turns: dict[str, _Turn] = {}
        self._open: dict[str, Job] = {}
        self._cancelled: set[str] = set()
        # Nodes whose plugin is silent, and until when they are left alone.
        self._silent: dict[str, float] = {}
        self._n_doubts = 0
        self._doubt_gate = asyncio.Semaphore(_DOUBT_REQUESTS)
        self.durations: list[float] = []

    @property
    def backlog(self) -> int:
        """Decisions not yet settled; those that wait for a device plugin's turn included."""
        return len(self._open)

    @property
    def n_queued(self) -> int:
        """Decisions that wait for nothing but a free request."""
        return self._queue.qsize()

    def submit(self, bind: Bind, pod: PodRecord) -> None:
        """Queue a decision."""
        job = Job(bind, pod, self._term(), asyncio.get_running_loop().time())
        self._open[bind.uid] = job
        if not bind.slots:
            self._queue.put_nowait(job)
            return
        self._turns.setdefault(bind.node, _Turn()).jobs.append(job)
        self._next(bind.node)

    def cancel(self, uid: str) -> None:
        """The pod is gone: do not write if that has not begun."""
        if uid in self._open:
            self._cancelled.add(uid)
        self._allocated(uid)

    def reconcile(self, pods: Container[str]) -> None:
        """After a list: pods that are not among these are gone."""
        waited_for = [turn.holder for turn in self._turns.values() if turn.holder]
        for uid in {*self._open, *waited_for}:
            if uid not in pods:
                self.cancel(uid)

    def see_pod(self, pod: wire.Pod) -> None:
        """Watch for the plugin's answer on pods whose cards are being allocated."""
        turn = self._turns.get(pod.spec.node_name or "")
        if turn is None or turn.holder != pod.metadata.uid:
            return
        phase = (pod.metadata.annotations or {}).get(names.HAMI_BIND_PHASE)
        if phase not in {names.BIND_SUCCESS, names.BIND_FAILED}:
            return
        self._speaks(pod.spec.node_name or "")
        if turn.holder in self._open:
            # The turn is not over before the answer to the bind is in, which may have been lost.
            turn.answered = True
        else:
            self._answered(turn)

    def see_node(self, node: wire.Node) -> None:
        """A node without lock is free for its next pod; pods it no longer takes need not wait."""
        name = node.metadata.name
        turn = self._turns.get(name)
        is_locked = names.HAMI_LOCK in (node.metadata.annotations or {})
        if not is_locked:
            self._speaks(name)
        if turn is None:
            return
        for job in list(turn.jobs):
            if why := self._objection(job.bind):
                turn.jobs.remove(job)
                self._settle(job, why)
        if not turn.holder or turn.holder in self._open:
            return
        if not is_locked:
            turn.stuck_since = 0.0
            self._free(name)

    def node_gone(self, name: str) -> None:
        """Nobody will answer for this node: what waits for it is given back."""
        turn = self._turns.get(name)
        self._speaks(name)
        if turn is not None:
            self._give_back(turn, f"node {name} is gone")
            if turn.holder not in self._open:
                self._free(name)

    def reconcile_nodes(self, nodes: Container[str]) -> None:
        """After a list: nodes that are not among these are gone."""
        for name in {*self._turns, *self._silent}:
            if name not in nodes:
                self.node_gone(name)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for _ in range(self._in_flight):
                group.create_task(self._work())
            group.create_task(self._watch_turns())

    def give_back(self, why: str) -> None:
        """Give up what waits for a node's turn."""
        for turn in self._turns.values():
            self._give_back(turn, why)

    def _give_back(self, turn: _Turn, why: str) -> None:
        while turn.jobs:
            self._settle(turn.jobs.popleft(), why)

    async def drain(self, seconds: float) -> None:
        """Finish what is in flight; give back what waits for a turn. For a stop."""
        self.give_back("stopped before its turn")
        deadline = asyncio.get_running_loop().time() + seconds
        while self._open and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)

    async def _work(self) -> None:
        while True:
            job = await self._queue.get()
            try:
                await self._carry_out(job)
            except ApiError as error:
                await self._give_up(job, str(error))
            except Exception as error:  # noqa: BLE001
                # Whatever one object provokes, the others are bound.
                _log.exception("a bind failed in an unexpected way", pod=job.pod.key)
                await self._ascertain(job, f"internal error: {error!r}")
            if job.in_doubt:
                self._n_doubts -= 1
                return

    def _doubt(self, job: Job) -> asyncio.Semaphore:
        """Let a stand-in do the worker's work: binds that fail again and again hold up no others."""
        if not job.in_doubt and self._n_doubts < _DOUBTS_MAX:
            job.in_doubt = True
            self._n_doubts += 1
            self._group.create_task(self._work())
        turn = self._turns.get(job.bind.node) if job.bind.slots else None
        if turn is not None:
            turn.stuck_since = turn.stuck_since or asyncio.get_running_loop().time()
        return self._doubt_gate

    async def _carry_out(self, job: Job) -> None:
        if obstacle := self._obstacle(job):
            await self._give_up(job, obstacle, gone=job.bind.uid in self._cancelled)
            return
        if job.bind.slots and not await self._lock.take(
            job.bind.node,
            job.pod.namespace,
            job.pod.name,
            may_write=lambda: self._may_write(job),
        ):
            # Someone else's pod is being allocated: wait at the head of the node's queue.
            turn = self._turns[job.bind.node]
            turn.jobs.appendleft(job)
            turn.holder, turn.silent = _CONTENDED, False
            now = asyncio.get_running_loop().time()
            turn.until, turn.stuck_since = now + _CONTENTION_RETRY_SECONDS, turn.stuck_since or now
            return
        await self._quiet(job.bind.uid)
        await self._bind(job)

    async def _ascertain(self, job: Job, message: str) -> None:
        """End a job of which nobody knows how far it came: a write may be on its way."""
        self._doubt(job)
        fate = await self._binding.ascertain(job.bind, job.pod, lambda: self._doubt(job))
        await self._end(job, fate, message)

    def _may_write(self, job: Job) -> bool:
        """Whether this is the term of the decision: a leader in between may have given its cards away.

        A decision made while the lease lapsed has none.
        """
        return job.term != 0 and job.term == self._term()

    def _obstacle(self, job: Job) -> str:
        """Why nothing may be written for a decision at this moment, empty when nothing is in the way."""
        if job.bind.uid in self._cancelled:
            return "the pod is gone"
        if not self._may_write(job):
            return "no longer the leader"
        return self._objection(job.bind)

    async def _bind(self, job: Job) -> None:
        fate, message = await self._binding.settle(
            job.bind,
            job.pod,
            obstacle=lambda: self._obstacle(job),
            doubt=lambda: self._doubt(job),
        )
        await self._end(job, fate, message)

    async def _end(self, job: Job, fate: Fate, message: str) -> None:
        if fate == Fate.DONE:
            self._bound(job)
        else:
            gone = fate == Fate.GONE or job.bind.uid in self._cancelled
            await self._give_up(job, message, gone=gone)

    def _bound(self, job: Job) -> None:
        now = asyncio.get_running_loop().time()
        self._open.pop(job.bind.uid, None)
        gone = job.bind.uid in self._cancelled
        self._cancelled.discard(job.bind.uid)
        if job.bind.slots:
            turn = self._turns[job.bind.node]
            turn.holder, turn.until = job.bind.uid, now + self._lock.timeout_seconds
            turn.silent, turn.stuck_since = True, now
            if turn.answered:
                self._answered(turn)
            elif gone:
                self._free(job.bind.node)
        self.durations.append(now - job.submitted_at)
        self._report(BindDone(job.bind.uid))

    async def _give_up(self, job: Job, message: str, *, gone: bool = False) -> None:
        if job.bind.slots and self._may_write(job):
            # Else the lock may be a successor's by now, for the same pod; what is left it takes over.
            try:
                async with self._doubt_gate if job.in_doubt else contextlib.nullcontext():
                    await self._lock.release(job.bind.node, job.pod.namespace, job.pod.name)
            except Exception as error:  # noqa: BLE001 - the pod is given up in any case
                _log.warning("node lock not released", node=job.bind.node, error=str(error))
        if job.bind.slots:
            self._free(job.bind.node)
        self._settle(job, message, gone=gone)

    def _settle(self, job: Job, message: str, *, gone: bool = False) -> None:
        self._open.pop(job.bind.uid, None)
        self._cancelled.discard(job.bind.uid)
        self._report(BindFailed(job.bind.uid, message, gone))

    def _answered(self, turn: _Turn) -> None:
        now = asyncio.get_running_loop().time()
        turn.until, turn.silent = min(turn.until, now + _RELEASE_GRACE_SECONDS), False
        turn.stuck_since = 0.0

    def _allocated(self, uid: str) -> None:
        for node, turn in self._turns.items():
            if turn.holder == uid and uid not in self._open:
                self._speaks(node)
                self._free(node)
                return

    def _free(self, node: str) -> None:
        turn = self._turns[node]
        if turn.holder != _CONTENDED:
            turn.stuck_since = 0.0
        turn.holder = ""
        if turn.jobs:
            self._next(node)
        else:
            del self._turns[node]

    def _next(self, node: str) -> None:
        turn = self._turns[node]
        if not turn.holder and turn.jobs:
            job = turn.jobs.popleft()
            turn.holder, turn.until = job.bind.uid, float("inf")
            turn.silent = turn.answered = False
            self._queue.put_nowait(job)

    async def _watch_turns(self) -> None:
        """Free nodes whose plugin answered but left the lock; leave those alone whose plugin is silent."""
        silent_after = min(_SILENT_SECONDS, self._lock.timeout_seconds)
        while True:
            await asyncio.sleep(0.1)
            now = asyncio.get_running_loop().time()
            for node, turn in list(self._turns.items()):
                if turn.stuck_since and now - turn.stuck_since >= silent_after:
                    self._falls_silent(node, turn, now)
                if turn.holder and now >= turn.until:
                    self._free(node)
            for node in [node for node, until in self._silent.items() if now >= until]:
                self._speaks(node)

    def _falls_silent(self, node: str, turn: _Turn, now: float) -> None:
        """Nobody's turn ends: those who wait for theirs go elsewhere, and nobody comes for a while."""
        turn.stuck_since = 0.0
        until = turn.until if turn.silent else now + _LEFT_ALONE_SECONDS
        if node not in self._silent:
            self._report(PluginSilent(node, silent=True, waits_for=turn.holder))
        self._silent[node] = max(until, self._silent.get(node, 0.0))
        self._give_back(turn, f"the device plugin of node {node} does not answer")

    def _speaks(self, node: str) -> None:
        if self._silent.pop(node, None) is not None:
            self._report(PluginSilent(node, silent=False))
